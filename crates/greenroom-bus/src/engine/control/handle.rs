//! The handle to a running engine: how far it has come, and its end.

use std::sync::Arc;

use tokio::sync::watch;

use crate::engine::{
    account::report::Progress, lifecycle::phase::Phase, process::managed::Managed, shared::Shared,
};

/// Looks at a running engine, changes it, and stops it. Cheap to clone; outlives its run,
/// and then changes nothing.
#[derive(Clone)]
pub struct Control {
    pub(crate) shared: Arc<Shared>,
    pub(crate) phase: watch::Sender<Phase>,
    /// By the pool's place.
    pub(crate) managed: Arc<[Managed]>,
}

impl Control {
    /// Stops the inputs and handles the events in hand, within the deadline. Inputs that keep their
    /// positions take waiting events [back](crate::engine::RunReport::given_back); waiting events
    /// of other inputs are handled too, unless [`Finish`](crate::engine::Finish) says otherwise. At
    /// the deadline the rest is refused, which includes all events that a paused pool or handler
    /// still holds.
    pub fn drain(&self) {
        // First: a task that sees the phase also sees which assignments are given up.
        self.shared.inputs.stop();
        self.advance(Phase::Drain);
    }

    /// Drops handlers at their next await and refuses all remaining events.
    pub fn stop_now(&self) {
        self.shared.inputs.revocations.cut_off();
        self.advance(Phase::Now);
    }

    fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let forward = *phase < to;
            *phase = to.max(*phase);
            forward
        });
    }

    /// How far the run has come.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// The progress of the run so far. Never more settled than taken.
    pub fn progress(&self) -> Progress {
        let (ledger, letters) = (&self.shared.ledger, &self.shared.egress.dead_letters.letters);
        let counts = ledger.counts();
        let read = self.shared.inputs.read();
        let known = read.iter().all(|read| *read <= 1_000_000);
        let mean = read.iter().sum::<u64>() as f64 / (read.len().max(1) as f64 * 1e6);
        let parked = self.shared.process.parked.counts();
        Progress {
            parked_keys: parked.keys,
            parked_events: parked.events,
            taken: counts.taken,
            settled: counts.settled(),
            dead_lettered: counts.outcomes.dead_lettered,
            dead_letters_open: letters.open() as u64,
            dead_letters_lost: letters.lost(),
            in_flight_bytes: self
                .shared
                .inputs
                .views()
                .iter()
                .map(|input| input.in_flight_bytes)
                .sum(),
            queued: ledger.queued.now(),
            read: known.then_some(mean),
            behind: self.shared.inputs.behind(),
        }
    }

    /// Why the run makes no progress, if all remaining events wait behind parked keys and no input
    /// can be read. A run whose inputs are finite ends then.
    pub fn standstill(&self) -> Option<String> {
        self.shared.process.parked.standstill()
    }
}
