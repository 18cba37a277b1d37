//! Inputs that come and go while the engine runs (G01).

use super::{
    change::ChangeError,
    handle::Control,
    removal::{NotAdded, Removal},
};
use crate::{
    engine::{account::report::InputReport, intake::budget::InputConfig, lifecycle::phase::Phase},
    source::Source,
};

impl Control {
    /// Also reads from this source the events that the matcher takes; the others are acknowledged
    /// and count as ignored. A [`Matcher`](crate::router::Matcher) is a configuration with the
    /// default limits. If the engine has been built and does not run yet, reading begins when it
    /// does.
    ///
    /// # Errors
    /// The name is taken, or empty; or the engine is ending, as one does whose last input has
    /// ended. The source is given back.
    pub fn add_input(
        &self,
        name: &str,
        config: impl Into<InputConfig>,
        source: Box<dyn Source>,
    ) -> Result<(), NotAdded<Box<dyn Source>>> {
        if self.phase() != Phase::Run {
            return Err(NotAdded::new(ChangeError::Ending, source));
        }
        let added = self.shared.inputs.add(name, config, source);
        added.map_err(|(why, source)| NotAdded::new(why, source))
    }

    /// Takes nothing more from this input: its source is dropped at its next await, within 100 ms
    /// unless it blocks its thread. Events already taken are handled. The returned removal is done
    /// when all of them are settled, and its positions are stored, if it keeps any. Then the name
    /// is free; until then a key of it may be parked, or its pool paused. It is also done when the
    /// run ends, even if events are not settled. A source of several partitions is polled until
    /// then, and gives nothing.
    ///
    /// With the last input, the engine ends.
    ///
    /// # Errors
    /// There is no such input, or the engine is ending.
    pub fn remove_input(&self, name: &str) -> Result<Removal<InputReport>, ChangeError> {
        if self.phase() != Phase::Run {
            return Err(ChangeError::Ending);
        }
        let input = self.shared.inputs.remove(name)?;
        Ok(Removal::new(async move {
            input.gone().await;
            input.report()
        }))
    }

    /// The inputs that there are and were, in the order in which they were added.
    pub fn inputs(&self) -> Vec<InputReport> {
        self.shared.inputs.report()
    }
}
