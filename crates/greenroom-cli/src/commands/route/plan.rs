//! The parts of a configuration that decide the route of an event.

use std::sync::Arc;

use greenroom::event_pool::Engine;
use greenroom_bus::{
    engine::NoHandler,
    event::Event,
    handler::pass::PassFactory,
    pattern::Pattern,
    router::{self, Choice, Considered, Interests, PoolConfig, Route, Router},
};

use super::way::{Handled, Made, Other, Outcome, SampleEvent, Sharing, Way};
use crate::{
    config::{Config, HandlerConfig, Kinds, Word},
    run::assemble,
};

pub(super) struct Plan<'c> {
    config: &'c Config,
    router: Router,
    /// As the router has them, each at its place.
    handlers: Vec<router::HandlerConfig>,
    outputs: Interests,
    loopback: Vec<Pattern>,
}

impl<'c> Plan<'c> {
    pub(super) fn new(config: &'c Config) -> Result<Self, String> {
        let mut router = Router::new(PoolConfig::default());
        let mut handlers = Vec::new();
        for handler in &config.handlers {
            // Only the route is computed, and nothing is handled.
            let routed = assemble::routed(handler, Arc::new(PassFactory))?;
            router.add_handler(&handler.name, routed.clone()).map_err(|error| error.to_string())?;
            handlers.push(routed);
        }
        let outputs = config.outputs.iter().map(assemble::interest).collect::<Result<_, _>>()?;
        let loopback = match &config.loopback {
            Some(loopback) => assemble::patterns(&loopback.on)?,
            None => Vec::new(),
        };
        Ok(Self { config, router, handlers, outputs: Interests::new(outputs), loopback })
    }

    pub(super) fn way(&self, event: &Event) -> Way {
        let route = self.router.route(event);
        let considered = self.router.explain(event);
        let takes = |found: &&Considered| found.choice == Choice::Takes;
        let handlers: Vec<_> =
            considered.iter().filter(takes).map(|found| self.handled(event, found)).collect();
        let (outcome, then) = match route {
            Route::NoHandler => (Outcome::NoHandler, Some(self.config.no_handler)),
            Route::Rejected => (Outcome::HandlerRejected, Some(self.config.handler_rejected)),
            _ if handlers.iter().any(|handled| handled.key_missing.is_some()) => {
                (Outcome::KeyMissing, Some(NoHandler::DeadLetter))
            }
            _ => (Outcome::Handled, None),
        };
        let others = considered.into_iter().filter(|found| found.choice != Choice::Takes);
        let (ty, source, id) =
            (event.ty().to_owned(), event.source().to_owned(), event.id().to_owned());
        Way {
            event: SampleEvent { ty, source, id },
            outcome,
            then: then.map(Word::word),
            handlers,
            other_handlers: others.map(|found| self.other(found)).collect(),
        }
    }

    fn other(&self, found: Considered) -> Other {
        let name = self.config.handlers[found.handler].name.clone();
        let fails = match found.choice {
            Choice::Refuses(why) => Some(why),
            _ => None,
        };
        Other { name, shadowed: fails.is_none(), fails }
    }

    fn handled(&self, event: &Event, found: &Considered) -> Handled {
        let handler = &self.config.handlers[found.handler];
        let pool = self.config.pools.iter().find(|pool| pool.name == handler.pool);
        let keeps_order = pool.is_some_and(|pool| pool.engine != Engine::Shared);
        let key = self.handlers[found.handler].key(event);
        let result = Made::from(handler.kind.makes());
        let goes_on = key.is_ok() && result != Made::None;
        let loopback = goes_on && self.loopback.iter().any(|on| on.matches(event.ty()));
        let outputs = if goes_on && !loopback { self.takers(event) } else { Vec::new() };
        let other_outputs =
            if goes_on && !loopback { self.others(event, &outputs) } else { Vec::new() };
        let name = |place: &usize| self.config.outputs[*place].name.clone();
        Handled {
            handler: handler.name.clone(),
            on: found.on.clone(),
            fan_out: found.fan_out,
            pool: handler.pool.clone(),
            workers: pool.map_or(0, |pool| pool.workers),
            order_by: handler.order_by.clone().filter(|_| keeps_order),
            key: key
                .as_ref()
                .ok()
                .cloned()
                .flatten()
                .filter(|_| keeps_order)
                .map(|key| key.to_string()),
            key_missing: key.err(),
            sharing: handler.share_by.clone().map(|share_by| {
                let share = self.handlers[found.handler].share(event);
                Sharing { share_by, share: share.map(|share| share.to_string()) }
            }),
            layers: layers(handler),
            kind: handler.kind.key(),
            result,
            loopback,
            outputs: outputs.iter().map(name).collect(),
            other_outputs,
        }
    }

    /// The outputs that the event goes to. Configured conditions do not panic.
    fn takers(&self, event: &Event) -> Vec<usize> {
        let most = if self.config.all_outputs { usize::MAX } else { 1 };
        self.outputs.takers(event).filter_map(Result::ok).take(most).collect()
    }

    fn others(&self, event: &Event, taken: &[usize]) -> Vec<Other> {
        let name = |place: usize| self.config.outputs[place].name.clone();
        let shadowed = self.outputs.takers(event).filter_map(Result::ok);
        let shadowed = shadowed.filter(|place| !taken.contains(place));
        let shadowed =
            shadowed.map(|place| Other { name: name(place), shadowed: true, fails: None });
        let refusing = self.outputs.refusing(event).into_iter();
        let refusing = refusing.map(|(place, why)| Other {
            name: name(place),
            shadowed: false,
            fails: Some(why),
        });
        shadowed.chain(refusing).collect()
    }
}

fn layers(handler: &HandlerConfig) -> Vec<&'static str> {
    handler.layers.iter().map(Kinds::key).collect()
}
