//! The parts of a run with live options: handlers, outputs, and inputs that act as servers.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use greenroom_bus::{
    dead_letter::DeadLetterStore,
    engine,
    handler::{HandlerFactory, OpenHandler},
    kind::Live,
    sink::{OpenOutput, Sink},
    source::{InputServer, OpenInput, Source},
};
use greenroom_config::AnyOptions;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::stand_ins::StandIns;
use crate::{
    config::{HandlerConfig, InputConfig, OutputConfig, PoolConfig},
    report::{AllAnswers, Answers},
};

/// All current ones, by name. None is called or dropped while a map is locked.
#[derive(Default)]
pub(crate) struct Targets {
    /// By place: `outputs.erp`. The engine holds each; a removed output only until it is done.
    live: Mutex<HashMap<String, Weak<dyn Live>>>,
    /// Inputs that act as servers.
    servers: Mutex<HashMap<String, Arc<dyn InputServer>>>,
    /// The place of dead letters.
    letters: Mutex<Option<Arc<dyn DeadLetterStore>>>,
    /// In place of all that would be opened.
    stand_ins: Option<Arc<StandIns>>,
}

impl Targets {
    /// With stand-ins in place of all that would be opened.
    pub(crate) fn standing_in(stand_ins: Arc<StandIns>) -> Self {
        Self { stand_ins: Some(stand_ins), ..Self::default() }
    }

    /// The same handler; one with a stand-in is watched.
    pub(super) fn watch(
        &self,
        added: engine::HandlerConfig,
        pools: &[PoolConfig],
    ) -> engine::HandlerConfig {
        match &self.stand_ins {
            Some(stand_ins) => stand_ins.watch(added, pools),
            None => added,
        }
    }

    /// Where dead letters go in place of a store.
    pub(super) fn stand_in_letters(&self) -> Option<Arc<dyn DeadLetterStore>> {
        self.stand_ins.as_ref().map(|stand_ins| stand_ins.letters.clone() as _)
    }

    /// The factory of a handler.
    ///
    /// # Errors
    /// Why its options cannot be used.
    pub(super) fn factory(
        &self,
        handler: &HandlerConfig,
    ) -> Result<Arc<dyn HandlerFactory>, String> {
        let stand_in = self.stand_ins.as_ref().map(|all| all.handlers.get(&handler.name));
        let OpenHandler { factory, live } = match stand_in {
            None => handler.kind.open()?,
            Some(stand_in) => handler.kind.stand_in(stand_in.cloned().unwrap_or_default())?,
        };
        self.note(format!("handlers.{}", handler.name), live);
        Ok(factory)
    }

    /// The sink of an output. Called on the runtime of the engine.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(super) async fn sink(&self, output: &OutputConfig) -> Result<Arc<dyn Sink>, String> {
        let stand_in = self.stand_ins.as_ref().map(|all| all.outputs.get(&output.name));
        let OpenOutput { sink, live } = match stand_in {
            None => output.kind.open().await?,
            Some(stand_in) => output.kind.stand_in(stand_in.cloned().unwrap_or_default())?,
        };
        self.note(format!("outputs.{}", output.name), live);
        Ok(sink)
    }

    /// The source of an input. Called on the runtime of the engine.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(super) async fn source(
        &self,
        input: &InputConfig,
        pools: &[PoolConfig],
    ) -> Result<Box<dyn Source>, String> {
        if let Some(stand_ins) = &self.stand_ins {
            return Ok(stand_ins.source());
        }
        if let Some(letters) = self.known_letters() {
            add_to_letters(&*letters, input)?;
        }
        let OpenInput { source, server, live } = input.kind.open(&input.setup(pools)?).await?;
        self.note(format!("inputs.{}", input.name), live);
        if let Some(server) = server {
            let _before = self.servers.lock().insert(input.name.clone(), server);
        }
        Ok(source)
    }

    pub(super) fn note(&self, place: String, live: Option<Weak<dyn Live>>) {
        if let Some(live) = live {
            let _before = self.live.lock().insert(place, live);
        }
    }

    /// Applies the live options of `wanted`; false if they are the same. `None`: no part applies
    /// them.
    pub(super) fn reconfigure(
        &self,
        place: &str,
        wanted: &dyn AnyOptions,
    ) -> Option<Result<bool, String>> {
        let live = self.live.lock().get(place).and_then(Weak::upgrade);
        live.map(|live| live.reconfigure(wanted))
    }
}

impl Targets {
    /// Sets the place of dead letters.
    pub(super) fn letters(&self, letters: Arc<dyn DeadLetterStore>) {
        let _before = self.letters.lock().replace(letters);
    }

    fn known_letters(&self) -> Option<Arc<dyn DeadLetterStore>> {
        self.letters.lock().clone()
    }

    /// For an input that was not added, or is being removed: finishes storing, and accepts no more.
    pub(super) fn forget_server(&self, name: &str) -> Option<Arc<dyn InputServer>> {
        let server = self.servers.lock().remove(name)?;
        server.close();
        Some(server)
    }

    /// How many requests a server input has answered with each status.
    pub(super) fn answers(&self, input: &str) -> Option<Answers> {
        self.server(input).map(|server| server.answers())
    }

    /// Why such an input has no room, if so.
    pub(super) fn trouble(&self, input: &str) -> Option<String> {
        self.server(input)?.trouble()
    }

    fn server(&self, input: &str) -> Option<Arc<dyn InputServer>> {
        self.servers.lock().get(input).cloned()
    }

    /// Accepts nothing more, and waits until the requests being stored are answered, but no longer
    /// than this. Returns the answers of each, by its name.
    pub(crate) async fn close_servers(&self, within: Duration) -> AllAnswers {
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

/// Includes the events of this input in the letters.
///
/// # Errors
/// The option that cannot be used.
pub(super) fn add_to_letters(
    letters: &dyn DeadLetterStore,
    input: &InputConfig,
) -> Result<(), String> {
    let added = letters.add_input(&*input.kind, &input.setup(&[])?);
    added.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;
    use crate::config::PoolConfig as SomeOptions;

    /// A part that calls back into the map whenever it is called.
    #[derive(Default)]
    struct Asks(OnceLock<Arc<Targets>>);

    impl Asks {
        fn targets(&self) -> &Targets {
            self.0.get().unwrap()
        }
    }

    impl InputServer for Asks {
        fn close(&self) {}

        fn answered(&self, _: Duration) -> greenroom_bus::BoxFuture<'_, ()> {
            Box::pin(async {})
        }

        fn ended(&self, _: Duration) -> greenroom_bus::BoxFuture<'_, ()> {
            Box::pin(async {})
        }

        fn answers(&self) -> Vec<(u16, u64)> {
            self.targets().trouble("i").map(|_| (202, 1)).into_iter().collect()
        }

        fn trouble(&self) -> Option<String> {
            self.targets().server("i").map(|_| "no room".to_owned())
        }
    }

    impl Live for Asks {
        fn reconfigure(&self, _: &dyn AnyOptions) -> Result<bool, String> {
            let live = Arc::new(Self::default());
            self.targets().note("inputs.i".to_owned(), Some(Arc::downgrade(&live) as _));
            Ok(true)
        }
    }

    #[test]
    fn c09_a_server_and_what_is_live_may_ask_after_others_while_they_are_asked() {
        let (targets, asks) = (Arc::new(Targets::default()), Arc::new(Asks::default()));
        asks.0.set(targets.clone()).ok().unwrap();
        targets.servers.lock().insert("i".to_owned(), asks.clone());
        targets.note("inputs.i".to_owned(), Some(Arc::downgrade(&asks) as _));
        assert_eq!(targets.answers("i"), Some(vec![(202, 1)]));
        let options = greenroom_config::defaults::<SomeOptions>("p").unwrap();
        assert_eq!(targets.reconfigure("inputs.i", &options), Some(Ok(true)));
        assert_eq!(targets.reconfigure("inputs.i", &options), None, "what came after has gone");
    }
}
