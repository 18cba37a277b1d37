//! In place of all that a run opens, for tests of a configuration (C23): nothing is connected to,
//! started or written.

use std::{collections::HashMap, mem, sync::Arc};

use greenroom::event_pool::Engine as PoolEngine;
use greenroom_bus::{
    dead_letter::{DeadLetter, DeadLetterStore},
    engine::HandlerConfig,
    handler::HandlerResult,
    layer::{Around, Layer, Layers, Request, Surrounded},
    settlement::Ack,
    source::{Pull, Pulling, Source, Taken},
    stand_in::StandIn,
};
use parking_lot::Mutex;

use crate::config::PoolConfig;

/// The stand-ins of a run, and all that it did with them.
#[derive(Default)]
pub(crate) struct StandIns {
    /// By the name of the handler.
    pub(crate) handlers: HashMap<String, StandIn>,
    /// By the name of the output.
    pub(crate) outputs: HashMap<String, StandIn>,
    /// Everything that the input gives.
    pub(crate) items: Mutex<Vec<Taken>>,
    /// Every attempt, in the order of their starts.
    pub(crate) attempts: Arc<Mutex<Vec<SeenAttempt>>>,
    /// Every dead letter. Its part of the settlement is confirmed.
    pub(crate) letters: Arc<MemoryLetters>,
}

/// An attempt at an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenAttempt {
    pub(crate) handler: String,
    pub(crate) pool: String,
    /// The key by which the handler orders it.
    pub(crate) key: Option<String>,
    /// Its share at the handler.
    pub(crate) share: Option<String>,
    /// 1 for the first.
    pub(crate) number: u32,
}

impl StandIns {
    /// The source that gives the items, once.
    pub(super) fn source(&self) -> Box<dyn Source> {
        Box::new(ListSource(mem::take(&mut *self.items.lock())))
    }

    /// The same handler, with its attempts noted. Pools that keep no order know no key.
    pub(super) fn watch(&self, config: HandlerConfig, pools: &[PoolConfig]) -> HandlerConfig {
        let pool = pools.iter().find(|pool| pool.name == config.pool);
        let has_order = pool.is_none_or(|pool| pool.engine != PoolEngine::Shared);
        let (attempts, keyed) = (self.attempts.clone(), Arc::new(config.clone()));
        let layers = Layers::new().layer(Watching { attempts, keyed, has_order });
        HandlerConfig { factory: layers.around(config.factory.clone()), ..config }
    }
}

/// Notes each attempt.
#[derive(Clone)]
struct Watching {
    attempts: Arc<Mutex<Vec<SeenAttempt>>>,
    keyed: Arc<HandlerConfig>,
    has_order: bool,
}

impl Around for Watching {
    type Pass = ();

    fn before(&self, request: &mut Request) -> Result<(), HandlerResult> {
        let key = self.keyed.key(&request.event).ok().flatten().filter(|_| self.has_order);
        let attempt = &request.attempt;
        let seen = SeenAttempt {
            handler: attempt.handler.to_string(),
            pool: attempt.pool.to_string(),
            key: key.map(|key| key.to_string()),
            share: self.keyed.share(&request.event).map(|share| share.to_string()),
            number: attempt.number,
        };
        self.attempts.lock().push(seen);
        Ok(())
    }
}

impl<S> Layer<S> for Watching {
    type Service = Surrounded<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Surrounded::new(self.clone(), inner)
    }
}

/// Gives a list, once.
struct ListSource(Vec<Taken>);

impl Source for ListSource {
    fn describe(&self) -> String {
        "a test".to_owned()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        into.append(&mut self.0);
        Box::pin(async { Ok(Pull::End) })
    }

    fn replayable(&self) -> bool {
        false
    }
}

/// Keeps dead letters.
#[derive(Default)]
pub(crate) struct MemoryLetters(pub(crate) Mutex<Vec<DeadLetter>>);

impl DeadLetterStore for MemoryLetters {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn store(&self, mut letter: DeadLetter) {
        let ack = mem::replace(&mut letter.ack, Ack::detached());
        self.0.lock().push(letter);
        ack.confirm();
    }
}
