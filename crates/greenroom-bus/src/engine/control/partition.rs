//! Partitions of an input that are paused and drained while the others go on (D15).

use std::sync::Arc;

use super::{change::ChangeError, handle::Control};
use crate::{
    engine::{intake::input::Input, lifecycle::phase::Phase},
    source::Partition,
};

impl Control {
    /// Takes nothing more of this partition until it is [resumed](Self::resume_partition); what
    /// was taken is handled. It holds also where the partition is not assigned yet, or comes
    /// back later. An input whose source has no parts is paused as [`Partition::ONLY`]. Done
    /// where it is paused already.
    ///
    /// # Errors
    /// There is no such input, or the engine is ending.
    pub fn pause_partition(&self, input: &str, partition: Partition) -> Result<(), ChangeError> {
        self.read_input(input)?.partitions.set_paused(partition, true);
        Ok(())
    }

    /// Goes on with a partition that was [paused](Self::pause_partition).
    ///
    /// # Errors
    /// There is no such input, or the engine is ending.
    pub fn resume_partition(&self, input: &str, partition: Partition) -> Result<(), ChangeError> {
        self.read_input(input)?.partitions.set_paused(partition, false);
        Ok(())
    }

    /// [Pauses](Self::pause_partition) this partition. The future is over when all that was taken
    /// of it is settled; at once where it is not assigned, and when it is taken away also once what
    /// its handlers had in hand is settled. It is over with the run as well, whatever is not
    /// settled then.
    ///
    /// # Errors
    /// There is no such input, or the engine is ending.
    ///
    /// # Cancel safety
    /// The partition is paused whether or not the future is awaited.
    pub fn drain_partition(
        &self,
        input: &str,
        partition: Partition,
    ) -> Result<impl Future<Output = ()> + Send + use<>, ChangeError> {
        let input = self.read_input(input)?;
        let assigned = input.partitions.set_paused(partition, true);
        Ok(async move {
            let Some(assigned) = assigned else { return };
            tokio::select! {
                () = assigned.done() => {}
                () = input.gone() => {}
            }
        })
    }

    fn read_input(&self, name: &str) -> Result<Arc<Input>, ChangeError> {
        match self.phase() {
            Phase::Run => self.shared.inputs.named(name),
            _ => Err(ChangeError::Ending),
        }
    }
}
