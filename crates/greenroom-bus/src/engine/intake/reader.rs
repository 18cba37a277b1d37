//! From a source to the pools: events are routed, given their settlement and their place in line.
//!
//! A pool that is full does not stop the others: its events wait beside it, in order, up to a bound, and only then is
//! the source asked for nothing more.

use std::{
    iter::Peekable,
    sync::{Arc, atomic::Ordering},
    vec,
};

use tokio::{sync::watch, time::Instant};

use super::{
    budget,
    input::{Input, Reading, UnderWay, WhyStop},
    inputs::Arrival,
    route::Routing,
    ticket::{Batch, PlacedTicket, Ticket},
};
use crate::{
    dead_letter::Reason,
    engine::{
        account::order_audit::Line,
        egress::dead_letters::Given,
        lifecycle::phase::Phase,
        process::{
            job::{JobAddress, Origin},
            managed::Managed,
        },
        shared::Shared,
    },
    router::Matcher,
    settlement::{Ack, Outcome},
    source::{Pull, Source, SourceError, Taken},
};

/// Events routed before they are handed to the pools, and other tasks get a turn. Waking workers is paid once for all of
/// them; the workers that are woken sit behind this task on its thread.
pub(crate) const EVENTS_PER_TURN: usize = 256;

/// What of a batch has no room yet.
type Rest = Peekable<vec::IntoIter<Taken>>;

pub(crate) struct Intake {
    shared: Arc<Shared>,
    /// The place of the input.
    place: u32,
    input: Arc<Input>,
    /// Until it is read no more.
    source: Option<Box<dyn Source>>,
    /// Which events it gives; `None`: all of them.
    takes: Option<Matcher>,
    routing: Routing,
    /// Taken, and waiting for room in the budget; empty while anything more is taken.
    rest: Rest,
    /// The number of the last event taken.
    number: u64,
    /// The batch being routed.
    batch: Arc<Batch>,
    reading: Option<Reading>,
    /// Until nothing waits here any more.
    _under_way: UnderWay,
}

impl Intake {
    pub(crate) fn new(
        shared: Arc<Shared>,
        arrival: Arrival,
        pools: Vec<JobAddress>,
        managed: Arc<[Managed]>,
    ) -> Self {
        let Arrival { place, source, takes, reading, under_way } = arrival;
        let (input, taken_at) = (shared.inputs.at(place), Instant::now());
        let batch = Batch::of(&shared.ledger, &input, taken_at, None);
        let routing = Routing::new(shared.clone(), place, pools, managed);
        Self {
            shared,
            place,
            input,
            source: Some(source),
            takes,
            routing,
            rest: Vec::new().into_iter().peekable(),
            number: 0,
            batch,
            reading: Some(reading),
            _under_way: under_way,
        }
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
        self.source = None;
        self.reading = None;
        self.finish(&mut phase).await;
        ended
    }

    /// Takes turns between the source and the pools beside which events wait, so that neither keeps the other waiting.
    async fn read(&mut self, phase: &mut watch::Receiver<Phase>) -> Result<(), SourceError> {
        let mut batch = Vec::new();
        while *phase.borrow_and_update() == Phase::Run {
            let reads = self.rest.peek().is_none()
                && self.routing.held_back() < self.input.budget.run_ahead;
            let pulled = tokio::select! {
                biased;
                _ = phase.changed() => continue,
                why = self.input.stop.told() => return match why {
                    WhyStop::Fatal(why) => Err(SourceError::new(&*self.input.label, why)),
                    WhyStop::Removed => Ok(()),
                },
                pulled = pull(&self.shared, &self.input.budget, &mut self.source, &mut batch), if reads => {
                    Some(pulled)
                }
                () = fits(&self.input.budget, &mut self.rest) => None,
                () = self.routing.go_on() => None,
            };
            match pulled {
                Some(_) => self.take(&mut batch).await,
                // The next pull returns again what this one, dropped, has put here.
                None => batch.clear(),
            }
            self.go_on().await;
            self.show_progress();
            match pulled {
                Some(Ok(Pull::End)) => break,
                Some(Err(error)) => return Err(error),
                Some(Ok(Pull::More)) | None => {}
            }
        }
        Ok(())
    }

    /// Hands over what was taken, unless the run is told to stop now: what is left then is refused.
    async fn finish(&mut self, phase: &mut watch::Receiver<Phase>) {
        self.show_progress();
        while self.rest.peek().is_some() && *phase.borrow_and_update() != Phase::Now {
            tokio::select! {
                biased;
                _ = phase.changed() => {}
                () = fits(&self.input.budget, &mut self.rest) => self.go_on().await,
                () = self.routing.go_on() => {}
            }
            self.show_progress();
        }
        for taken in self.rest.by_ref() {
            drop(settlement(&self.batch, (taken.position, 0), None));
        }
        self.routing.finish(phase).await;
    }

    fn show_progress(&self) {
        self.input.budget.show_waiting(self.routing.held_back(), self.rest.len());
        if let Some(part) = self.source.as_ref().and_then(|source| source.progress()) {
            self.input.read.store((part.clamp(0.0, 1.0) * 1e6) as u64, Ordering::Relaxed);
        }
    }

    /// Routes what has been pulled, as far as the budget has room for it. The rest waits.
    async fn take(&mut self, batch: &mut Vec<Taken>) {
        let count = batch.len() as u64;
        self.shared.ledger.takes(count);
        self.input.taken.fetch_add(count, Ordering::AcqRel);
        let receipts = self.source.as_ref().and_then(|source| source.receipts());
        self.batch = Batch::of(&self.shared.ledger, &self.input, Instant::now(), receipts);
        if batch.is_empty() {
            greenroom::step_aside().await;
        }
        let mut taken = batch.drain(..).peekable();
        let mut fits = true;
        while fits && taken.peek().is_some() {
            fits = self.turn(&mut taken);
            greenroom::step_aside().await;
        }
        if !fits {
            self.rest = taken.collect::<Vec<_>>().into_iter().peekable();
        }
    }

    /// Routes what has waited for room in the budget and finds some, and hands over what waits beside pools.
    async fn go_on(&mut self) {
        let mut rest = std::mem::replace(&mut self.rest, Vec::new().into_iter().peekable());
        let mut fits = true;
        while fits && rest.peek().is_some() {
            fits = self.turn(&mut rest);
            greenroom::step_aside().await;
        }
        self.rest = rest;
        self.routing.feed();
    }

    /// Routes as many as belong to one turn. False where the next one has no room.
    fn turn(&mut self, from: &mut Peekable<impl Iterator<Item = Taken>>) -> bool {
        let input = self.input.clone();
        let mut turn = input.budget.turn();
        self.batch = self.batch.another();
        let (mut bytes, mut fits) = (0, true);
        for _ in 0..EVENTS_PER_TURN {
            let next = from.next_if(|next| {
                let admitted = turn.admit(next);
                bytes = admitted.unwrap_or_default();
                fits = admitted.is_some();
                fits
            });
            let Some(taken) = next else { break };
            self.number += 1;
            let (position, number) = (taken.position, self.number);
            let taken_at = self.batch.taken_at;
            let origin = Origin { input: self.place, position, number, taken_at };
            self.route_one(taken, bytes, origin);
        }
        drop(turn);
        self.routing.feed();
        fits
    }

    fn route_one(&mut self, taken: Taken, bytes: u32, origin: Origin) {
        let batch = &self.batch;
        let place = (taken.position, bytes);
        let settles = |line: Option<&Line>| settlement(batch, place, line);
        match taken.event {
            Ok(event) => {
                match self.takes.as_ref().map_or(Ok(true), |takes| takes.try_matches(&event)) {
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
                }
            }
            Err(malformed) => {
                let given = Given {
                    event: None,
                    raw: Some(malformed.raw),
                    reason: if malformed.too_large { Reason::TooLarge } else { Reason::Malformed },
                    error: malformed.reason,
                    attempts: 0,
                    handler: None,
                };
                self.shared.dead_letter(origin, settles(None), given);
            }
        }
    }
}

/// The settlement of what stood at this position and has so many bytes.
fn settlement(batch: &Arc<Batch>, (position, bytes): (u64, u32), line: Option<&Line>) -> Ack {
    if let Some(line) = line {
        batch.ledger.audit.taken(line);
    }
    let ticket = Ticket { batch: batch.clone(), bytes, line: line.cloned() };
    match batch.receipts {
        None => Ack::new(ticket),
        Some(_) => Ack::new(PlacedTicket { ticket, position }),
    }
}

/// Waits until not too many dead letters are on their way, and not too many bytes in flight, then for the next batch.
async fn pull(
    shared: &Shared,
    budget: &budget::Budget,
    source: &mut Option<Box<dyn Source>>,
    into: &mut Vec<Taken>,
) -> Result<Pull, SourceError> {
    shared.egress.dead_letters.letters.room().await;
    budget.room(1).await;
    match source {
        Some(source) => source.pull(into).await,
        None => Ok(Pull::End),
    }
}

/// Waits until the next of those that wait for room in the budget has some. For ever, where none waits.
async fn fits(budget: &budget::Budget, rest: &mut Rest) {
    match rest.peek() {
        Some(next) => budget.room(budget.weight(next)).await,
        None => std::future::pending().await,
    }
}
