//! What of a run changes its options while it goes on: handlers, outputs, and inputs that others
//! send to.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use greenroom::Backoff;
use greenroom_bus::{
    handler::{HandlerFactory, HandlerKind, LiveHandler, OpenHandler},
    sink::{LiveOutput, OpenOutput, OutputKind, Sink},
    source::{InputKind, InputServer, InputSetup},
};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::kafka;
use crate::config::{DurationRange, HandlerConfig, OutputConfig};
use crate::report::{AllAnswers, Answers};

/// Those that there are, by name.
#[derive(Default)]
pub(crate) struct Targets {
    handlers: Mutex<HashMap<String, Arc<dyn LiveHandler>>>,
    /// Of each name the last one, which its engine holds: also while it is removed and not done.
    outputs: Mutex<HashMap<String, Weak<dyn LiveOutput>>>,
    /// Of inputs that others send to.
    servers: Mutex<HashMap<String, Arc<dyn InputServer>>>,
    /// Dead letters that go to a topic.
    letters: Mutex<Option<Arc<kafka::Letters>>>,
}

impl Targets {
    /// The factory of a handler.
    ///
    /// # Errors
    /// Why its options cannot be used.
    pub(super) fn factory(
        &self,
        handler: &HandlerConfig,
    ) -> Result<Arc<dyn HandlerFactory>, String> {
        let OpenHandler { factory, live } = handler.kind.open()?;
        if let Some(live) = live {
            self.handlers.lock().insert(handler.name.clone(), live);
        }
        Ok(factory)
    }

    /// Handles by other options from now on; false where they are the same.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub(super) fn reconfigure_handler(
        &self,
        name: &str,
        wanted: &dyn HandlerKind,
    ) -> Result<bool, String> {
        let live = self.handlers.lock().get(name).cloned();
        live.map_or(Ok(false), |live| live.reconfigure(wanted))
    }

    /// The sink of an output. Called on the runtime of the engine.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(super) async fn sink(&self, output: &OutputConfig) -> Result<Arc<dyn Sink>, String> {
        let OpenOutput { sink, live } = output.kind.open().await?;
        if let Some(live) = live {
            self.outputs.lock().insert(output.name.clone(), live);
        }
        Ok(sink)
    }

    /// Delivers by other options from now on; false where they are the same.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub(super) fn reconfigure_output(
        &self,
        name: &str,
        wanted: &dyn OutputKind,
    ) -> Result<bool, String> {
        let live = self.outputs.lock().get(name).and_then(Weak::upgrade);
        live.map_or(Ok(false), |live| live.reconfigure(wanted))
    }
}

impl Targets {
    /// Where dead letters go, which is a topic.
    pub(super) fn letters(&self, letters: Arc<kafka::Letters>) {
        *self.letters.lock() = Some(letters);
    }

    /// Where dead letters go, if that is a topic.
    pub(super) fn known_letters(&self) -> Option<Arc<kafka::Letters>> {
        self.letters.lock().clone()
    }

    /// The server of an input, which is there from now on.
    pub(super) fn server(&self, name: &str, server: Arc<dyn InputServer>) {
        self.servers.lock().insert(name.to_owned(), server);
    }

    /// It was not added, or is removed: what it is storing is stored, and it takes nothing more.
    pub(super) fn forget_server(&self, name: &str) -> Option<Arc<dyn InputServer>> {
        let server = self.servers.lock().remove(name)?;
        server.close();
        Some(server)
    }

    /// Judges what is sent to it by other options from now on; false where they are the same.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub(super) fn reconfigure_input(
        &self,
        wanted: &dyn InputKind,
        setup: &InputSetup,
    ) -> Result<bool, String> {
        let server = self.servers.lock().get(&setup.name).cloned();
        server.map_or(Ok(false), |server| server.reconfigure(wanted, setup))
    }

    /// How many requests an input that others send to has answered with each status.
    pub(super) fn answers(&self, input: &str) -> Option<Answers> {
        self.servers.lock().get(input).map(|server| server.answers())
    }

    /// What of such an input finds no room, and why.
    pub(super) fn trouble(&self, input: &str) -> Option<String> {
        self.servers.lock().get(input)?.trouble()
    }

    /// Takes nothing more, and waits until what was being stored is answered, but no longer than
    /// this. What each has answered, by its name.
    pub(super) async fn close_servers(&self, within: Duration) -> AllAnswers {
        let all: Vec<_> = self.servers.lock().drain().collect();
        all.iter().for_each(|(_, server)| server.close());
        let until = Instant::now() + within;
        let mut answers = AllAnswers::new();
        for (name, server) in all {
            server.answered(until.saturating_duration_since(Instant::now())).await;
            answers.insert(name, server.answers());
        }
        answers
    }
}

pub(super) fn backoff(waits: DurationRange) -> Backoff {
    Backoff::new(waits.from, waits.to)
}
