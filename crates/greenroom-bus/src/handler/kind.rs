//! What a program asks of the options of a handler.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use greenroom_config::{AnyOptions, At};

use super::{HandlerFactory, stand_in::StandInFactory};
use crate::{kind::Live, stand_in::StandIn};

/// The options of a handler of one kind. Its own checks are in its declaration (`then`); those that
/// look at several sections, or outside of the file, ask these methods.
pub trait HandlerKind: AnyOptions {
    /// Which events it makes of one.
    fn makes(&self) -> Makes;

    /// How long it lets an attempt take, by an option `timeout`.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// How many workers of the pool share what it runs, by an option `in_flight`.
    fn in_flight(&self) -> Option<usize> {
        None
    }

    /// What follows from an answer of its target, where it posts to one, by an option `status`: the
    /// rows that differ from the usual.
    fn status(&self) -> Option<&[(String, String)]> {
        None
    }

    /// The option by which it needs the share of each event, if it does.
    fn needs_share(&self) -> Option<&'static str> {
        None
    }

    /// Reports what cannot be used of what lies outside of the configuration: programs,
    /// certificates. No target is asked.
    fn reach(&self, at: &mut At<'_>) {
        let _ = at;
    }

    /// Makes the factory.
    ///
    /// # Errors
    /// What cannot be used, and what to do next.
    fn open(&self) -> Result<OpenHandler, String>;

    /// Makes a factory that asks a stand-in in place of a target, for tests of a configuration:
    /// nothing is connected to, started or written. Without a method of its own, an attempt does as
    /// the stand-in says.
    ///
    /// # Errors
    /// Which option cannot be used.
    fn stand_in(&self, answers: StandIn) -> Result<OpenHandler, String> {
        Ok(OpenHandler::fixed(StandInFactory { answers, passes: self.makes() != Makes::Nothing }))
    }
}

greenroom_config::kinds! {
    /// A kind of handler, by its key, with a sentence on what it does.
    pub fn handler: dyn HandlerKind;
}

/// Which events a handler makes of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Makes {
    /// None.
    Nothing,
    /// The same.
    Same,
    /// Those that its target answers with.
    Answers,
}

/// A handler that can be started.
pub struct OpenHandler {
    /// What makes one for each worker.
    pub factory: Arc<dyn HandlerFactory>,
    /// The same, if its options change while it runs.
    pub live: Option<Weak<dyn Live>>,
}

impl OpenHandler {
    /// One whose options do not change.
    pub fn fixed(factory: impl HandlerFactory) -> Self {
        Self { factory: Arc::new(factory), live: None }
    }
}
