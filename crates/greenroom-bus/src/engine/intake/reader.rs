//! From a source to the pools: events are routed, given their settlement and their place in line.
//!
//! A full pool does not stop the others: its events wait for it, in order, up to a limit, and only
//! then does the source pause. If a source has several partitions, each has a limit of its own: the
//! source gets the full list of partitions that have reached theirs, and continues with the others
//! (D15).

use std::{
    future::{Future, pending, poll_fn},
    hint::black_box,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::Poll,
    vec,
};

use tokio::{sync::watch, time::Instant};

use super::{
    budget::Budget,
    held_back::HeldBack,
    input::{Input, StillReading, UnderWay, WhyStop},
    inputs::Arrival,
    partition::Assigned,
    replay,
    route::Routing,
    ticket::{Batch, PlacedTicket, Ticket},
};
use crate::{
    dead_letter::Reason,
    engine::{
        account::{ledger::Ledger, order_audit::OrderLine},
        egress::dead_letters::Given,
        lifecycle::phase::Phase,
        process::{job::JobAddress, managed::Managed, origin::Origin},
        shared::Shared,
    },
    event::Event,
    router::Matcher,
    settlement::{Ack, Outcome},
    source::{Malformed, Partition, Pull, Receipts, Source, SourceError, Taken},
};

/// Events routed before they are handed to the pools, and other tasks get a turn. Waking workers is
/// paid once for all of them; the workers that are woken sit behind this task on its thread.
pub(crate) const EVENTS_PER_TURN: usize = 256;

/// Events that are fetched into the caches at a time: enough that their misses overlap, and few
/// enough that they are still there.
const FETCHED: usize = 16;

/// Brings the next events into the caches of this core. Their source has mostly read them on
/// another one.
fn fetch(ahead: &[Taken]) {
    let events = ahead.iter().take(FETCHED).filter_map(|taken| taken.event.as_ref().ok());
    black_box(events.fold(0, |all, event| all ^ event.fetch()));
}

/// Items in order, the first of which can be peeked at.
trait PeekableItems: Iterator<Item = Taken> {
    fn ahead(&self) -> &[Taken];

    fn first(&self) -> Option<&Taken> {
        self.ahead().first()
    }
}

impl PeekableItems for vec::IntoIter<Taken> {
    fn ahead(&self) -> &[Taken] {
        self.as_slice()
    }
}

impl PeekableItems for vec::Drain<'_, Taken> {
    fn ahead(&self) -> &[Taken] {
        self.as_slice()
    }
}

pub(crate) struct InputReader {
    shared: Arc<Shared>,
    /// The place of the input.
    place: u32,
    input: Arc<Input>,
    /// Until it is read no more.
    source: Option<Box<dyn Source>>,
    /// Which events it gives; `None`: all of them.
    takes: Option<Matcher>,
    routing: Routing,
    /// Those that have given items, until they are revoked.
    parts: Vec<ReadPartition>,
    /// Those that the source is not to give items of.
    paused: Vec<Partition>,
    /// The waiting events by partition, if there are several.
    held_back: HeldBack,
    /// The number of the last event taken.
    number: u64,
    reading: Option<StillReading>,
    /// Until nothing waits here any more.
    under_way: Option<UnderWay>,
}

/// One partition, as its intake sees it.
struct ReadPartition {
    assigned: Arc<Assigned>,
    /// Taken, and waiting for room in the budget; empty while anything more of it is taken.
    rest: vec::IntoIter<Taken>,
    /// When that was taken.
    taken_at: Instant,
    /// The receiver of settlements in its source, if it has one.
    receipts: Option<Arc<dyn Receipts>>,
}

impl ReadPartition {
    fn new(assigned: Arc<Assigned>) -> Self {
        let rest = Vec::new().into_iter();
        Self { assigned, rest, taken_at: Instant::now(), receipts: None }
    }

    fn budget(&self) -> &Budget {
        &self.assigned.budget
    }

    fn batch(&self, ledger: &Arc<Ledger>, input: &Arc<Input>) -> Arc<Batch> {
        Batch::new(ledger, input, &self.assigned, self.taken_at, self.receipts.clone())
    }

    /// Items that wait for room in the budget are not handed on.
    fn refuse_rest(&mut self, ledger: &Arc<Ledger>, input: &Arc<Input>) {
        let batch = self.batch(ledger, input);
        for taken in self.rest.by_ref() {
            drop(settlement(&batch, (taken.position, 0), None));
        }
    }
}

impl InputReader {
    pub(crate) fn new(
        shared: Arc<Shared>,
        arrival: Arrival,
        pools: Vec<JobAddress>,
        managed: Arc<[Managed]>,
    ) -> Self {
        let Arrival { place, source, takes, reading, under_way } = arrival;
        let input = shared.inputs.get(place);
        let routing = Routing::new(shared.clone(), place, pools, managed);
        let parts = input.partitions.all().into_iter().map(ReadPartition::new).collect();
        Self {
            shared,
            place,
            input,
            source: Some(source),
            takes,
            routing,
            parts,
            paused: Vec::new(),
            held_back: HeldBack::default(),
            number: 0,
            reading: Some(reading),
            under_way: Some(under_way),
        }
    }

    /// Runs until the source has ended and nothing waits, or until the engine stops its inputs.
    /// Items that still wait then are handed to the pools while they drain.
    pub(crate) async fn run(mut self, mut phase: watch::Receiver<Phase>) -> Ended {
        let how = self.read(&mut phase).await;
        self.input.ended(&how);
        if !self.input.partitions.come_and_go {
            self.source = None;
        }
        self.reading = None;
        // A source of partitions is still asked, and its events belong to the owner of their
        // partitions at that time.
        if how.is_ok() && !self.input.partitions.come_and_go {
            self.linger(&mut phase).await;
        }
        self.input.replays.close();
        self.finish(&mut phase).await;
        self.under_way = None;
        let attended = self.source.is_some().then(|| Attended(self));
        Ended { how, attended }
    }

    /// Its source has ended. While others are read, and while dead letters wait for their replay,
    /// it takes the letters of its own events.
    async fn linger(&mut self, phase: &mut watch::Receiver<Phase>) {
        let Some(replaying) = self.shared.replaying.clone() else { return };
        while *phase.borrow_and_update() == Phase::Run && !replaying.is_closed() {
            let has_handed_over = !self.waits() && self.routing.held_back() == 0;
            let _lingers = has_handed_over.then(|| replaying.linger());
            let Self { input, routing, parts, .. } = self;
            tokio::select! {
                biased;
                _ = phase.changed() => {}
                _ = input.stop.told() => return,
                () = input.replays.came() => self.route_replays(),
                () = replaying.closed() => {}
                () = fits(parts) => self.go_on().await,
                () = routing.go_on() => {}
            }
            self.show_progress();
        }
    }

    /// Routes dead letters that are handled again: behind all that was routed before of their key.
    fn route_replays(&mut self) {
        for again in self.input.replays.take() {
            self.number += 1;
            self.input.taken.fetch_add(1, Ordering::AcqRel);
            let origin = Origin::of_replay(self.place, self.number);
            let batch = Batch::of_replay(&self.shared.ledger, &self.input);
            replay::route(again, &mut self.routing, origin, batch);
        }
        self.routing.feed();
    }

    /// Takes turns between the source and the pools that events wait for, so that neither blocks
    /// the other.
    async fn read(&mut self, phase: &mut watch::Receiver<Phase>) -> Result<(), SourceError> {
        let mut batch = Vec::new();
        while *phase.borrow_and_update() == Phase::Run {
            let reads = self.tell_paused();
            let Self { shared, input, source, routing, parts, .. } = self;
            let come_and_go = input.partitions.come_and_go;
            let letters = &shared.egress.dead_letters.letters;
            let pulled = tokio::select! {
                biased;
                _ = phase.changed() => continue,
                why = input.stop.told() => return match why {
                    WhyStop::Fatal(why) => Err(SourceError::new(&*input.label, why)),
                    WhyStop::Removed => Ok(()),
                },
                () = input.replays.came() => {
                    self.route_replays();
                    None
                }
                pulled = pull(shared, only(parts, come_and_go), reads, source, &mut batch) => {
                    Some(pulled)
                }
                () = fits(parts) => None,
                () = opens(parts), if come_and_go => None,
                () = letters.room(), if come_and_go && !letters.has_room() => None,
                () = input.partitions.changed.notified() => None,
                () = routing.go_on() => None,
            };
            match pulled {
                Some(_) => self.take(&mut batch).await,
                // This pull was dropped: the next one returns its items again.
                None => batch.clear(),
            }
            if let Some(Ok(Pull::Revoke)) = pulled {
                self.revoke();
            }
            self.go_on().await;
            self.show_progress();
            match pulled {
                Some(Ok(Pull::End)) => {
                    self.source = None;
                    break;
                }
                Some(Err(error)) => {
                    self.source = None;
                    return Err(error);
                }
                Some(Ok(Pull::More | Pull::Revoke)) | None => {}
            }
        }
        Ok(())
    }

    /// Passes the list of paused partitions to the source. Returns whether it is to be polled for
    /// more.
    fn tell_paused(&mut self) -> bool {
        let held_back = self.routing.held_back();
        if !self.input.partitions.come_and_go {
            return self.parts.iter().all(|part| {
                let has_room = held_back < part.budget().run_ahead();
                part.rest.first().is_none() && has_room && !part.assigned.is_paused()
            });
        }
        let mut paused = self.input.partitions.paused();
        let stores_letters = self.shared.egress.dead_letters.letters.has_room();
        let Self { parts, routing, held_back: known, .. } = self;
        for ReadPartition { assigned, rest, .. } in parts {
            let (budget, number) = (&assigned.budget, assigned.number);
            let is_behind = held_back >= budget.run_ahead()
                && known
                    .is_behind(number, budget.run_ahead(), held_back, || routing.count_held_back());
            if is_behind || budget.is_full() || rest.first().is_some() || !stores_letters {
                paused.push(assigned.partition);
            }
        }
        self.set_paused(paused);
        true
    }

    fn set_paused(&mut self, mut paused: Vec<Partition>) {
        paused.sort_unstable();
        paused.dedup();
        if let Some(source) = &mut self.source
            && paused != self.paused
        {
            source.set_paused(&paused);
            self.paused = paused;
        }
    }

    /// Partitions are revoked: their waiting events are given up, and none is started from now on.
    fn revoke(&mut self) {
        let Some(mut source) = self.source.take() else { return };
        for partition in source.revoking() {
            if let Some(assigned) = self.input.partitions.revoke(partition) {
                self.give_up(&assigned);
            }
            source.revoked(partition);
        }
        self.source = Some(source);
    }

    /// A stop came: gives up the waiting events that it does not wait for.
    fn give_up_waiting(&mut self) {
        for part in self.parts.iter_mut().filter(|part| part.assigned.is_given_up()) {
            part.refuse_rest(&self.shared.ledger, &self.input);
        }
        self.routing.give_up_waiting();
    }

    fn give_up(&mut self, assigned: &Arc<Assigned>) {
        if let Some(at) = self.parts.iter().position(|part| Arc::ptr_eq(&part.assigned, assigned)) {
            let mut part = self.parts.swap_remove(at);
            part.refuse_rest(&self.shared.ledger, &self.input);
        }
        self.routing.withdraw(assigned.number);
        self.held_back.forget(assigned.number);
        assigned.budget.show_waiting(0, 0);
    }

    /// Hands over all events that were taken, unless the run is stopped immediately: the rest is
    /// refused then. The source is still polled, if there is one.
    async fn finish(&mut self, phase: &mut watch::Receiver<Phase>) {
        self.pause_all(None);
        let mut source = self.source.take();
        loop {
            let asked = tokio::select! {
                biased;
                asked = ask(&mut source) => asked,
                () = self.hand_over(phase) => break,
            };
            self.source = source;
            self.heard(asked);
            source = self.source.take();
        }
        self.source = source;
    }

    /// The source is to give nothing any more, of any partition that is known.
    fn pause_all(&mut self, another: Option<Partition>) {
        let known = self.parts.iter().map(|part| part.assigned.partition);
        let paused = known.chain(self.paused.iter().copied()).chain(another).collect();
        self.set_paused(paused);
    }

    /// The answer of a source that is to give nothing any more.
    fn heard(&mut self, asked: Result<Pull, SourceError>) {
        match asked {
            // Items of a partition that had given none before are not taken.
            Ok(Pull::More) => {
                let partition = self.source.as_ref().map(|source| source.partition());
                self.pause_all(partition);
            }
            Ok(Pull::Revoke) => self.revoke(),
            Ok(Pull::End) => self.source = None,
            Err(error) => {
                self.input.ended(&Err(error));
                self.source = None;
            }
        }
    }

    /// Like [`finish`](Self::finish), for the events that were taken.
    ///
    /// # Cancel safety
    /// A dropped future has lost nothing.
    async fn hand_over(&mut self, phase: &mut watch::Receiver<Phase>) {
        self.give_up_waiting();
        self.show_progress();
        while self.waits() && *phase.borrow_and_update() != Phase::Now {
            tokio::select! {
                biased;
                _ = phase.changed() => self.give_up_waiting(),
                () = fits(&self.parts) => self.go_on().await,
                () = self.routing.go_on() => {}
            }
            self.show_progress();
        }
        for part in &mut self.parts {
            part.refuse_rest(&self.shared.ledger, &self.input);
        }
        self.routing.finish(phase).await;
        self.show_progress();
    }

    /// True if something was taken that has no room yet.
    fn waits(&self) -> bool {
        self.parts.iter().any(|part| part.rest.first().is_some())
    }

    fn show_progress(&self) {
        let (held_back, partitions) = (self.routing.held_back(), &self.input.partitions);
        let by = match held_back {
            0 => (None, None),
            _ => (self.routing.held_by(), self.routing.held_by_share()),
        };
        partitions.show_held_back(&self.input.name, held_back, by);
        for ReadPartition { assigned, rest, .. } in &self.parts {
            let of_it = match partitions.come_and_go {
                true => self.held_back.at_most(assigned.number, held_back),
                false => held_back,
            };
            assigned.budget.show_waiting(of_it, rest.len());
            assigned.look_again();
        }
        if let Some(source) = &self.source {
            self.input.show_progress(&**source);
        }
    }

    /// Routes the pulled events as far as the budget has room. The rest waits.
    async fn take(&mut self, batch: &mut Vec<Taken>) {
        let count = batch.len() as u64;
        self.shared.ledger.takes(count);
        self.input.taken.fetch_add(count, Ordering::AcqRel);
        if batch.is_empty() {
            return greenroom::step_aside().await;
        }
        let at = self.part_pulled();
        let rest = &mut self.parts[at].rest;
        if rest.first().is_some() {
            // The source returned more of a partition than it was asked for: these events go behind
            // those that wait.
            *rest = rest.chain(batch.drain(..)).collect::<Vec<_>>().into_iter();
            return;
        }
        let mut taken = batch.drain(..);
        let mut fits = true;
        while fits && taken.first().is_some() {
            fits = self.turn(at, &mut taken);
            greenroom::step_aside().await;
        }
        if !fits {
            self.parts[at].rest = taken.collect::<Vec<_>>().into_iter();
        }
    }

    /// The index of the partition that was just pulled from, which is assigned now if it was not.
    fn part_pulled(&mut self) -> usize {
        let source = self.source.as_ref();
        let partition = source.map_or(Partition::ONLY, |source| source.partition());
        let receipts = source.and_then(|source| source.receipts());
        let known = self.parts.iter().position(|part| part.assigned.partition == partition);
        let at = known.unwrap_or_else(|| {
            self.parts.push(ReadPartition::new(self.input.partitions.assign(partition)));
            self.parts.len() - 1
        });
        let part = &mut self.parts[at];
        (part.taken_at, part.receipts) = (Instant::now(), receipts);
        at
    }

    /// Routes events that waited for the budget and now have room, and hands over events that wait
    /// for pools.
    ///
    /// # Cancel safety
    /// A dropped future has lost nothing.
    async fn go_on(&mut self) {
        for at in 0..self.parts.len() {
            let mut fits = true;
            while fits && self.parts[at].rest.first().is_some() {
                let mut rest = std::mem::take(&mut self.parts[at].rest);
                fits = self.turn(at, &mut rest);
                self.parts[at].rest = rest;
                greenroom::step_aside().await;
            }
        }
        self.routing.feed();
    }

    /// Routes as many of this part as belong to one turn. False if the next one has no room.
    fn turn(&mut self, at: usize, from: &mut impl PeekableItems) -> bool {
        let part = &self.parts[at];
        let (assigned, taken_at) = (part.assigned.clone(), part.taken_at);
        let batch = part.batch(&self.shared.ledger, &self.input);
        let mut turn = assigned.budget.turn();
        let (mut fits, before) = (true, self.number);
        for count in 0..EVENTS_PER_TURN {
            if count % FETCHED == 0 {
                fetch(from.ahead());
            }
            let Some(next) = from.first() else { break };
            let admitted = turn.admit(next);
            fits = admitted.is_some();
            let Some(bytes) = admitted else { break };
            let Some(taken) = from.next() else { break };
            self.number += 1;
            let (position, number) = (taken.position, self.number);
            let (input, assigned) = (self.place, assigned.number);
            let origin = Origin { input, assigned, position, number, taken_at };
            self.route_one(&batch, taken, bytes, origin);
        }
        drop(turn);
        if self.input.partitions.come_and_go {
            self.held_back.came(assigned.number, (self.number - before) as usize);
        }
        self.routing.feed();
        fits
    }

    fn route_one(&mut self, batch: &Arc<Batch>, taken: Taken, bytes: u32, origin: Origin) {
        let place = (taken.position, bytes);
        let settles = |line: Option<&OrderLine>| settlement(batch, place, line);
        let most = self.input.partitions.max_depth();
        let read = taken.event.and_then(|event| match event.is_deeper_than(most) {
            true => Err(too_deep(&event, most)),
            false => Ok(event),
        });
        match read {
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
                            rejected: Vec::new(),
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
                    rejected: Vec::new(),
                };
                self.shared.dead_letter(origin, settles(None), given);
            }
        }
    }
}

/// An event that is too deep for any handler.
fn too_deep(event: &Event, most: u32) -> Malformed {
    let mut json = Vec::new();
    event.write_json(&mut json);
    let reason = "levels of arrays and objects in its data (`max_depth` of the input)";
    Malformed::new(json, format!("more than {most} {reason}"))
}

/// How the reading of an input has ended.
pub(crate) struct Ended {
    /// The error that ended the source, if any.
    pub(crate) how: Result<(), SourceError>,
    /// A source that has not ended, and is to be asked on.
    pub(crate) attended: Option<Attended>,
}

/// A source that has ended and is still polled while its events are in hand (D11): revoked
/// partitions are given up, its broker keeps it in the group, and its last positions can be stored.
pub(crate) struct Attended(InputReader);

impl Attended {
    /// Runs until all events that it gave are settled and its positions are stored, or the run is
    /// stopped immediately.
    pub(crate) async fn run(self, mut phase: watch::Receiver<Phase>) {
        let Self(mut intake) = self;
        let input = intake.input.clone();
        let mut source = intake.source.take();
        while source.is_some() && *phase.borrow_and_update() != Phase::Now {
            let asked = tokio::select! {
                biased;
                _ = phase.changed() => continue,
                () = input.gone() => return,
                asked = ask(&mut source) => asked,
            };
            intake.source = source;
            intake.heard(asked);
            source = intake.source.take();
        }
    }
}

/// Polls a source that is to give nothing. Never resolves if there is none.
async fn ask(source: &mut Option<Box<dyn Source>>) -> Result<Pull, SourceError> {
    let Some(source) = source else { return std::future::pending().await };
    greenroom::step_aside().await;
    source.pull(&mut Vec::new()).await
}

/// The settlement of the item at this position, which has this many bytes.
fn settlement(batch: &Arc<Batch>, (position, bytes): (u64, u32), line: Option<&OrderLine>) -> Ack {
    if let Some(line) = line {
        batch.ledger.takes_in_line(line, batch.partition);
    }
    let ticket = Ticket::new(batch.clone(), bytes, line.map(OrderLine::id));
    match batch.receipts {
        None => Ack::new(ticket),
        Some(_) => Ack::new(PlacedTicket { ticket, position }),
    }
}

/// The budget of a source that is one partition.
fn only(parts: &[ReadPartition], come_and_go: bool) -> Option<&Budget> {
    parts.first().filter(|_| !come_and_go).map(ReadPartition::budget)
}

/// Waits until not too many dead letters are on their way, and not too many bytes in flight, then
/// for the next batch. A source with several partitions is asked whatever is in flight (D11), and
/// knows which of them are to wait.
async fn pull(
    shared: &Shared,
    only: Option<&Budget>,
    reads: bool,
    source: &mut Option<Box<dyn Source>>,
    into: &mut Vec<Taken>,
) -> Result<Pull, SourceError> {
    let room = async {
        if !reads {
            pending().await
        }
        if let Some(budget) = only {
            shared.egress.dead_letters.letters.room().await;
            budget.room(1).await;
        }
    };
    match source.as_mut().and_then(|source| source.held_up()) {
        None => room.await,
        Some(held_up) => tokio::select! {
            biased;
            () = room => {}
            () = held_up => {}
        },
    }
    match source {
        Some(source) => source.pull(into).await,
        None => Ok(Pull::End),
    }
}

/// Waits until the next of those that wait for room in a budget has some. Never resolves if none
/// waits.
async fn fits(parts: &[ReadPartition]) {
    let mut waits = Vec::new();
    for ReadPartition { assigned, rest, .. } in parts {
        if let Some(next) = rest.first() {
            let bytes = assigned.budget.weight(next);
            waits.push(Box::pin(assigned.budget.room(bytes)));
        }
    }
    any(waits).await;
}

/// Waits until a partition that is paused because of its events in flight may be read again. Never
/// resolves if no partition is.
async fn opens(parts: &[ReadPartition]) {
    let full = parts.iter().filter_map(|part| {
        let waits = part.rest.first().is_none() && part.budget().is_full();
        waits.then(|| Box::pin(part.assigned.budget.room(1)))
    });
    any(full.collect()).await;
}

/// Waits until one of them is over. Never resolves if there is none.
async fn any(mut waits: Vec<impl Future<Output = ()> + Unpin>) {
    poll_fn(|task| {
        let is_over = waits.iter_mut().any(|wait| Pin::new(wait).poll(task).is_ready());
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
