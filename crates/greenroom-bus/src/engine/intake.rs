//! From a source to the pools: events are routed, given their settlement and their place in line.
//!
//! A pool that is full does not stop the others: its events wait beside it, in order, up to a bound, and only then is
//! the source asked for nothing more.

use std::sync::{Arc, atomic::Ordering};

use greenroom::Address;
use tokio::{sync::watch, time::Instant};

use super::{
    inputs::{Arrival, Input, Reading, UnderWay},
    ledger::{Batch, PlacedTicket, Ticket},
    order_audit::Line,
    phase::Phase,
    routing::Routing,
    shared::{Given, Job, Origin, Shared, WhyStop},
    worker::BusError,
};
use crate::{
    dead_letter::Reason,
    router::Matcher,
    settlement::{Ack, Outcome},
    source::{Pull, Source, SourceError, Taken},
};

/// Events that may wait beside full pools before their source pauses (R05).
const RUN_AHEAD: usize = 10_000;

/// Events routed before they are handed to the pools, and other tasks get a turn. Waking workers is paid once for all of
/// them; the workers that are woken sit behind this task on its thread.
pub(super) const EVENTS_PER_TURN: usize = 256;

pub(crate) type JobAddress = Address<Job, (), BusError>;

pub(crate) struct Intake {
    shared: Arc<Shared>,
    /// The place of the input.
    place: u32,
    input: Arc<Input>,
    source: Box<dyn Source>,
    /// Which events it gives.
    takes: Matcher,
    routing: Routing,
    /// The number of the last event taken.
    number: u64,
    /// The batch being routed.
    batch: Arc<Batch>,
    reading: Reading,
    /// Until nothing waits here any more.
    _under_way: UnderWay,
}

impl Intake {
    pub(crate) fn new(shared: Arc<Shared>, arrival: Arrival, pools: Vec<JobAddress>) -> Self {
        let Arrival { place, source, takes, reading, under_way } = arrival;
        let input = shared.inputs.at(place);
        let batch = Batch::of(&shared.ledger, &input, Instant::now(), None);
        let routing = Routing::new(shared.clone(), place, pools);
        let _under_way = under_way;
        Self { shared, place, input, source, takes, routing, number: 0, batch, reading, _under_way }
    }

    /// Runs until the source has ended and nothing waits, or until the engine stops its inputs. What still waits then is
    /// handed to the pools while they drain.
    ///
    /// # Errors
    /// The source could not go on.
    pub(crate) async fn run(
        mut self,
        mut phase: watch::Receiver<Phase>,
    ) -> Result<(), SourceError> {
        let ended = self.read(&mut phase).await;
        self.input.ended(&ended);
        drop(self.source);
        drop(self.reading);
        self.routing.finish(&mut phase).await;
        ended
    }

    /// Takes turns between the source and the pools beside which events wait, so that neither keeps the other waiting.
    async fn read(&mut self, phase: &mut watch::Receiver<Phase>) -> Result<(), SourceError> {
        let mut batch = Vec::new();
        while *phase.borrow_and_update() == Phase::Run {
            let reads = self.routing.held_back() < RUN_AHEAD;
            let pulled = tokio::select! {
                biased;
                _ = phase.changed() => continue,
                why = self.input.stop.told() => return match why {
                    WhyStop::Fatal(why) => Err(SourceError::new(&*self.input.label, why)),
                    WhyStop::Removed => Ok(()),
                },
                pulled = pull(&self.shared, &mut self.source, &mut batch), if reads => Some(pulled),
                () = self.routing.go_on() => None,
            };
            match pulled {
                Some(_) => self.route(&mut batch).await,
                // The next pull returns again what this one, dropped, has put here.
                None => batch.clear(),
            }
            self.routing.feed();
            self.show_progress();
            match pulled {
                Some(Ok(Pull::End)) => break,
                Some(Err(error)) => return Err(error),
                Some(Ok(Pull::More)) | None => {}
            }
        }
        Ok(())
    }

    fn show_progress(&self) {
        if let Some(part) = self.source.progress() {
            self.input.read.store((part.clamp(0.0, 1.0) * 1e6) as u64, Ordering::Relaxed);
        }
    }

    async fn route(&mut self, batch: &mut Vec<Taken>) {
        let taken_at = Instant::now();
        let count = batch.len() as u64;
        self.shared.ledger.taken.fetch_add(count, Ordering::AcqRel);
        self.input.taken.fetch_add(count, Ordering::AcqRel);
        if batch.is_empty() {
            greenroom::step_aside().await;
        }
        let receipts = self.source.receipts();
        let mut rest = batch.drain(..).peekable();
        while rest.peek().is_some() {
            let (ledger, receipts) = (&self.shared.ledger, receipts.clone());
            self.batch = Batch::of(ledger, &self.input, taken_at, receipts);
            for taken in rest.by_ref().take(EVENTS_PER_TURN) {
                self.number += 1;
                let (input, position, number) = (self.place, taken.position, self.number);
                self.route_one(taken, Origin { input, position, number, taken_at });
            }
            self.routing.feed();
            greenroom::step_aside().await;
        }
    }

    fn route_one(&mut self, taken: Taken, origin: Origin) {
        let batch = &self.batch;
        let settles = |line: Option<&Line>| settlement(batch, taken.position, line);
        match taken.event {
            Ok(event) => match self.takes.try_matches(&event) {
                Ok(true) => self.routing.route(event, origin, None, &settles),
                Ok(false) => {
                    let ack = settles(None);
                    ack.set_outcome(Outcome::Ignored);
                    ack.confirm();
                }
                Err(panic) => {
                    let given = Given {
                        event: Some(event),
                        raw: None,
                        reason: Reason::Rejected,
                        error: format!("the matcher of its input panicked: {panic}"),
                        attempts: 0,
                        handler: None,
                    };
                    self.shared.dead_letter(origin, settles(None), given);
                }
            },
            Err(malformed) => {
                let given = Given {
                    event: None,
                    raw: Some(malformed.raw),
                    reason: Reason::Malformed,
                    error: malformed.reason,
                    attempts: 0,
                    handler: None,
                };
                self.shared.dead_letter(origin, settles(None), given);
            }
        }
    }
}

fn settlement(batch: &Arc<Batch>, position: u64, line: Option<&Line>) -> Ack {
    if let Some(line) = line {
        batch.ledger.audit.taken(line);
    }
    let ticket = Ticket { batch: batch.clone(), line: line.cloned() };
    match batch.receipts {
        None => Ack::new(ticket),
        Some(_) => Ack::new(PlacedTicket { ticket, position }),
    }
}

/// Waits until not too many dead letters are on their way, then for the next batch.
async fn pull(
    shared: &Shared,
    source: &mut Box<dyn Source>,
    into: &mut Vec<Taken>,
) -> Result<Pull, SourceError> {
    shared.ledger.letters.room().await;
    source.pull(into).await
}
