//! Shared by the inputs, the workers and the run of one engine: a part for each station that an
//! event passes.

use std::sync::Arc;

use super::{
    account::ledger::Ledger,
    egress::{
        dead_letters::{Addressed, Given},
        exits::Exits,
    },
    intake::{destinations::Destinations, inputs::Inputs},
    process::{
        job::PoolJob, loopback::Loopback, origin::Origin, processing::Processing,
        produced::HandlerFailure, replaying::Replaying,
    },
};
use crate::{dead_letter::Reason, settlement::Ack};

/// One for each engine. Each part is a file of its own, and knows nothing of the others.
pub(crate) struct Shared {
    /// The inputs, and their limits on events in flight.
    pub(crate) inputs: Inputs,
    /// The destinations of events.
    pub(crate) routing: Destinations,
    /// Their processing.
    pub(crate) process: Processing,
    /// The loopback, if there is one.
    pub(crate) loopback: Option<Arc<Loopback>>,
    /// Dead letters that are handled again, where their store can tell.
    pub(crate) replaying: Option<Arc<Replaying>>,
    /// Their exits.
    pub(crate) egress: Exits,
    /// The outcomes of all of them.
    pub(crate) ledger: Arc<Ledger>,
}

impl Shared {
    /// Hands a dead letter to its store; the event is settled when it is stored.
    pub(crate) fn dead_letter(&self, origin: Origin, ack: Ack, given: Given) {
        let handler = given.handler.map(|place| &self.process.handlers[place]);
        let pool =
            handler.map(|handler| (handler.pool, self.process.pools[handler.pool].name.as_str()));
        let place = self.inputs.place(&origin);
        let key = handler.zip(given.event.as_ref()).and_then(|(handler, event)| {
            // A key that cannot be read is the reason of the letter.
            handler.config.key(event).unwrap_or_default()
        });
        let share = handler.zip(given.event.as_ref());
        let share = share.and_then(|(handler, event)| handler.config.share(event));
        let addressed = Addressed {
            input: self.inputs.name(origin.input),
            source: place.source,
            position: place.position,
            taken_at: origin.taken_at,
            handler: handler.map(|handler| handler.name.as_str()),
            pool,
            key,
            share,
        };
        self.egress.dead_letters.give(given, &addressed, ack);
    }

    /// A job that no attempt will help any more.
    pub(crate) fn give_up(&self, job: PoolJob, reason: Reason, error: String) {
        let (attempts, handler) = (job.attempts, Some(job.handler()));
        let (manual, produced) = job
            .extras()
            .map_or((None, None), |extras| (extras.manual.as_ref(), extras.produced.as_ref()));
        if let Some(manual) = manual {
            manual.acknowledge();
        }
        if let Some(produced) = produced {
            let name = self.process.handlers[job.handler()].name;
            produced.failed(HandlerFailure::new(name, reason, error.clone(), attempts));
        }
        let (event, rejected) = (Some(job.event), Vec::new());
        let given = Given { event, raw: None, reason, error, attempts, handler, rejected };
        self.dead_letter(job.origin, job.ack, given);
    }
}
