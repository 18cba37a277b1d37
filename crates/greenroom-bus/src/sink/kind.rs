//! What a program asks of the options of an output.

use std::sync::{Arc, Weak};

use greenroom_config::{AnyOptions, At};

use super::{Sink, stand_in::StandInSink};
use crate::{
    BoxFuture,
    kind::{Live, WrittenFile},
    stand_in::StandIn,
};

/// The options of an output of one kind. Its own checks are in its declaration (`then`); those that
/// look at several outputs, or outside of the file, ask these methods.
pub trait OutputKind: AnyOptions {
    /// The file that it writes to.
    fn writes(&self) -> Option<WrittenFile<'_>> {
        None
    }

    /// What follows from an answer of its target, where it posts to one: the rows that differ from
    /// the usual.
    fn status(&self) -> Option<&[(String, String)]> {
        None
    }

    /// Reports what else cannot be used of what lies outside of the configuration: certificates,
    /// properties of a library. No server is asked.
    fn reach(&self, at: &mut At<'_>) {
        let _ = at;
    }

    /// Opens the sink, on the runtime of the engine.
    ///
    /// # Errors
    /// What could not be opened, and what to do next.
    fn open(&self) -> BoxFuture<'_, Result<OpenOutput, String>>;

    /// A sink that asks a stand-in in place of a target, which keeps the stored events, for tests
    /// of a configuration: nothing is connected to or written. Called on the runtime of the engine.
    ///
    /// # Errors
    /// Which option cannot be used.
    fn stand_in(&self, answers: StandIn) -> Result<OpenOutput, String> {
        let sink = StandInSink::open(answers).map_err(|error| error.to_string())?;
        Ok(OpenOutput::fixed(sink))
    }
}

greenroom_config::kinds! {
    /// A kind of output, by its key, with a sentence on what it is for.
    pub fn output: dyn OutputKind;
}

/// An output that was opened.
pub struct OpenOutput {
    /// What the engine writes to.
    pub sink: Arc<dyn Sink>,
    /// The same, if its options change while it runs.
    pub live: Option<Weak<dyn Live>>,
}

impl OpenOutput {
    /// One whose options do not change.
    pub fn fixed(sink: impl Sink) -> Self {
        Self { sink: Arc::new(sink), live: None }
    }
}
