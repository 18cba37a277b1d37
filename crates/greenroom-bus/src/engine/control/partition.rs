//! Pausing and draining single partitions of an input (D15).

use std::sync::Arc;

use super::{change::ChangeError, handle::Control};
use crate::{
    engine::{intake::input::Input, lifecycle::phase::Phase},
    source::Partition,
};

impl Control {
    /// Takes no more events of this partition until it is [resumed](Self::resume_partition); events
    /// already taken are handled. It also applies if the partition is not assigned yet, or is
    /// reassigned later. An input whose source has no partitions is paused as [`Partition::ONLY`].
    /// Does nothing if the partition is already paused.
    ///
    /// # Errors
    /// There is no such input, or the engine is ending.
    pub fn pause_partition(&self, input: &str, partition: Partition) -> Result<(), ChangeError> {
        self.read_input(input)?.partitions.set_paused(partition, true);
        Ok(())
    }

    /// Resumes a partition that was [paused](Self::pause_partition).
    ///
    /// # Errors
    /// There is no such input, or the engine is ending.
    pub fn resume_partition(&self, input: &str, partition: Partition) -> Result<(), ChangeError> {
        self.read_input(input)?.partitions.set_paused(partition, false);
        Ok(())
    }

    /// [Pauses](Self::pause_partition) this partition. The future resolves when all events taken
    /// from it are settled; immediately if it is not assigned; and if it is revoked, once its
    /// handlers' events in hand are settled. It also resolves at the end of the run, even if events
    /// are not settled then.
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
