//! From an event with its settlement to the pool of its handler; shared by inputs and the loopback.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
};

use greenroom::TrySendError;
use tokio::sync::watch;

use super::{
    held_back::HeldBackCounts,
    held_by::HeldByShare,
    input::Input,
    overflow::{BesidePools, gone},
};
use crate::{
    dead_letter::Reason,
    engine::{
        account::order_audit::OrderLine,
        config::NoHandler,
        egress::dead_letters::Given,
        lifecycle::phase::Phase,
        process::{
            job::{JobAddress, PoolJob},
            loopback::Reserved,
            managed::Managed,
            origin::Origin,
            share_rooms::named,
        },
        shared::Shared,
    },
    event::Event,
    name::Name,
    router::{OnFull, Route},
    settlement::{Ack, Outcome, Refusal},
};

/// The way from one input to the pools.
pub(crate) struct Routing {
    pub(crate) shared: Arc<Shared>,
    /// The place of the input.
    pub(crate) input: u32,
    pools: BesidePools,
    /// By the place of the pool.
    managed: Arc<[Managed]>,
    budget_of: Arc<Input>,
    /// Events that wait for room on the way back, by the place of their handler.
    unreserved: Vec<VecDeque<PoolJob>>,
}

/// Makes the settlement of an event for its line.
pub(crate) type Settles<'a> = &'a dyn Fn(Option<&OrderLine>) -> Ack;

impl Routing {
    pub(crate) fn new(
        shared: Arc<Shared>,
        input: u32,
        pools: Vec<JobAddress>,
        managed: Arc<[Managed]>,
    ) -> Self {
        let budget_of = shared.inputs.get(input);
        let pools = BesidePools::new(shared.clone(), pools, budget_of.partitions.come_and_go);
        let unreserved = shared.process.handlers.iter().map(|_| VecDeque::new()).collect();
        Self { shared, input, pools, managed, budget_of, unreserved }
    }

    /// Events that no pool has taken yet.
    pub(crate) fn held_back(&self) -> usize {
        self.pools.held_back() + self.unreserved.iter().map(VecDeque::len).sum::<usize>()
    }

    /// The pool that most of them wait for.
    pub(crate) fn held_by(&self) -> Option<Name> {
        self.pools.held_by()
    }

    /// The share of most of them.
    pub(crate) fn held_by_share(&self) -> Option<HeldByShare> {
        self.pools.held_by_share()
    }

    /// How many of them there are of each assignment. Takes time for all that are held back.
    pub(crate) fn count_held_back(&self) -> HashMap<u32, usize> {
        let mut counts = HeldBackCounts::default();
        self.pools.each_held_back(|assigned| counts.add(assigned));
        self.unreserved.iter().flatten().for_each(|job| counts.add(job.origin.assigned));
        counts.finish()
    }

    /// Gives up all that waits of an assignment that was revoked: here, in every pool, and on the
    /// way back. Nothing of it is started from here on.
    pub(crate) fn withdraw(&mut self, assigned: u32) {
        self.give_up_waiting();
        if let Some(loopback) = &self.shared.loopback {
            loopback.withdraw(|of| of == assigned);
        }
        for managed in &*self.managed {
            managed.admin.withdraw(|job| job.origin.assigned == assigned);
        }
    }

    /// Gives up the waiting events of assignments that were given up.
    pub(crate) fn give_up_waiting(&mut self) {
        let revocations = self.shared.inputs.revocations.clone();
        self.pools.give_up(&|assigned| revocations.has(assigned));
        for waiting in &mut self.unreserved {
            waiting.retain(|job| !revocations.has(job.origin.assigned));
        }
    }

    /// Hands an event to the pools of its handlers, or settles it.
    pub(crate) fn route(
        &mut self,
        event: Event,
        origin: Origin,
        reserved: Option<Reserved>,
        settles: Settles<'_>,
    ) {
        match self.shared.routing.routes.route(&event) {
            Route::One(handler) => self.route_to(event, handler, origin, reserved, settles),
            Route::Several(handlers) => {
                self.route_to_all(event, &handlers, origin, reserved, settles)
            }
            Route::NoHandler => {
                let error = format!("no handler is named for the type {:?}", event.ty());
                let option = self.shared.routing.no_handler;
                self.unhandled(event, origin, option, Reason::NoHandler, error, settles(None));
            }
            Route::Rejected => {
                let (ty, option) = (event.ty(), self.shared.routing.handler_rejected);
                let error = format!("no matcher of the handlers for the type {ty:?} takes it");
                self.unhandled(
                    event,
                    origin,
                    option,
                    Reason::HandlerRejected,
                    error,
                    settles(None),
                );
            }
            Route::Panicked { handler, panic } => {
                let name = &self.shared.process.handlers[handler].name;
                let error = format!("the matcher of the handler {name:?} panicked: {panic}");
                let job = PoolJob::new(event, handler, None, origin, settles(None));
                self.shared.give_up(job, Reason::Rejected, error);
            }
        }
    }

    /// Like [`route`](Self::route), for an event that may be for one handler only.
    pub(crate) fn route_again(
        &mut self,
        event: Event,
        to: Option<usize>,
        origin: Origin,
        reserved: Option<Reserved>,
        settles: Settles<'_>,
    ) {
        match to {
            Some(handler) => self.route_to(event, handler, origin, reserved, settles),
            None => self.route(event, origin, reserved, settles),
        }
    }

    /// Each with a part of the whole settlement. The first has the room that the event has brought;
    /// the others reserve theirs.
    fn route_to_all(
        &mut self,
        event: Event,
        handlers: &[usize],
        origin: Origin,
        mut reserved: Option<Reserved>,
        settles: Settles<'_>,
    ) {
        let (whole, shared) = (settles(None), self.shared.clone());
        let partition = self.budget_of.partitions.partition_of(origin.assigned);
        let came_back = reserved.is_some();
        for handler in handlers {
            let brought = reserved.take().or_else(|| {
                // A loopback event never waits for room: it brings none, and fails if it needs some
                // and finds none.
                let loopback = shared.loopback.as_ref().filter(|_| came_back);
                loopback.and_then(|loopback| loopback.room.try_reserve(0))
            });
            let part =
                |line: Option<&OrderLine>| shared.ledger.part(whole.child(), line, partition);
            self.route_to(event.clone(), *handler, origin, brought, &part);
        }
        whole.confirm();
    }

    fn route_to(
        &mut self,
        event: Event,
        handler: usize,
        origin: Origin,
        reserved: Option<Reserved>,
        settles: Settles<'_>,
    ) {
        match line_of(&self.shared, &event, handler, self.input) {
            // Dropped, its settlement refuses the event.
            Ok(Some(line)) if self.may_not_wait(&line, handler) => {
                self.shared.process.parked.refuses();
                drop(settles(None));
            }
            Ok(line) => {
                let ack = settles(line.as_ref());
                let share = self.shared.process.handlers[handler].config.share(&event);
                let mut job = PoolJob::new(event, handler, line, origin, ack);
                job.set_share(share);
                match reserved {
                    Some(_) => self.reserve(job.with_reserved(reserved)),
                    None => self.reserve(job),
                }
            }
            Err(error) => {
                let job = PoolJob::new(event, handler, None, origin, settles(None));
                self.shared.give_up(job, Reason::KeyMissing, error);
            }
        }
    }

    /// Parked keys hold so many of their input's events in flight that they may take no more, and
    /// this is one of them.
    fn may_not_wait(&self, line: &OrderLine, handler: usize) -> bool {
        if !self.budget_of.partitions.parked.is_full() {
            return false;
        }
        let keys = self.managed[self.shared.process.handlers[handler].pool].keys.as_ref();
        keys.is_some_and(|keys| keys.is_parked(line))
    }

    fn unhandled(
        &self,
        event: Event,
        origin: Origin,
        option: NoHandler,
        reason: Reason,
        error: String,
        ack: Ack,
    ) {
        match option {
            NoHandler::Ignore => {
                ack.set_outcome(Outcome::Ignored);
                ack.confirm();
            }
            NoHandler::Refuse => ack.refuse(match reason {
                Reason::HandlerRejected => Refusal::HandlerRejected,
                _ => Refusal::NoHandler,
            }),
            NoHandler::DeadLetter => {
                let given = Given {
                    event: Some(event),
                    raw: None,
                    reason,
                    error,
                    attempts: 0,
                    handler: None,
                    rejected: Vec::new(),
                };
                self.shared.dead_letter(origin, ack, given);
            }
        }
    }

    /// Admits a job that needs no room on the way back, or has brought or found some;
    /// others wait for it, in order.
    fn reserve(&mut self, job: PoolJob) {
        let declared = self.shared.process.handlers[job.handler()].config.loopback;
        let has_reserved = job.extras().is_some_and(|extras| extras.reserved.is_some());
        if declared == 0 || has_reserved {
            return self.admit(job);
        }
        let Some(loopback) = &self.shared.loopback else { return self.admit(job) };
        let waiting = &mut self.unreserved[job.handler()];
        match waiting.is_empty().then(|| loopback.room.try_reserve(declared)).flatten() {
            Some(reserved) => self.admit(job.with_reserved(Some(reserved))),
            None => waiting.push_back(job),
        }
    }

    /// Reserves room on the loopback for waiting events.
    fn reserve_waiting(&mut self) {
        let Some(loopback) = self.shared.loopback.clone() else { return };
        for handler in 0..self.unreserved.len() {
            let declared = self.shared.process.handlers[handler].config.loopback;
            while !self.unreserved[handler].is_empty()
                && let Some(reserved) = loopback.room.try_reserve(declared)
                && let Some(job) = self.unreserved[handler].pop_front()
            {
                self.admit(job.with_reserved(Some(reserved)));
            }
        }
    }

    fn admit(&mut self, mut job: PoolJob) {
        let pool = self.shared.process.handlers[job.handler()].pool;
        let rooms = self.shared.process.pools[pool].rooms.as_ref();
        if let Some(rooms) = rooms.filter(|rooms| rooms.on_full != OnFull::Pause).cloned()
            && !job.enters(&rooms)
        {
            let (share, most) = (named(job.share()), rooms.bound());
            let why = format!(
                "has as many events of {share} waiting as one share may \
                 ({most}, and fewer while the queue fills)"
            );
            return self.full(pool, rooms.on_full, job, &why);
        }
        // Events that may wait are handed over together, at the end of the turn.
        let on_full = self.shared.process.pools[pool].on_full;
        if on_full == OnFull::Pause {
            self.pools.wait(pool, job);
            return;
        }
        match self.pools.address(pool).try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(job)) => self.full(pool, on_full, job, "is full"),
            Err(TrySendError::KeyFull(job)) => {
                self.full(pool, on_full, job, "has as many events of this key waiting as may");
            }
            Err(other) => {
                let why = other.without_message();
                if let Some(job) = other.into_message() {
                    gone(&self.shared, why, job);
                }
            }
        }
    }

    fn full(&mut self, pool: usize, on_full: OnFull, job: PoolJob, why: &str) {
        match on_full {
            OnFull::Pause => self.pools.wait(pool, job),
            OnFull::Reject => job.ack.refuse(Refusal::PoolFull),
            OnFull::DeadLetter => {
                let error = format!("the pool {:?} {why}", self.shared.process.pools[pool].name);
                self.shared.give_up(job, Reason::PoolFull, error);
            }
        }
    }

    /// Hands over events that wait for pools, as far as there is room and no earlier one waits for
    /// it.
    pub(crate) fn feed(&mut self) {
        self.reserve_waiting();
        self.pools.feed();
    }

    /// Hands over the events that still wait, unless the run is stopped immediately.
    pub(crate) async fn finish(&mut self, phase: &mut watch::Receiver<Phase>) {
        while self.held_back() > 0 && *phase.borrow_and_update() != Phase::Now {
            tokio::select! {
                biased;
                _ = phase.changed() => self.give_up_waiting(),
                () = self.go_on() => {}
            }
        }
    }

    /// Waits until a waiting event can be handed over, and hands it over. Never resolves if nothing
    /// waits.
    ///
    /// # Cancel safety
    /// A dropped future has lost nothing.
    pub(crate) async fn go_on(&mut self) {
        let Self { shared, pools, unreserved, .. } = self;
        tokio::select! {
            biased;
            () = pools.hand_one_over() => {}
            () = reservable(shared, unreserved) => {}
        }
        self.feed();
    }
}

/// Waits until there may be room on the loopback for one of those that wait for it.
async fn reservable(shared: &Shared, unreserved: &[VecDeque<PoolJob>]) {
    let waits = |handler: &usize| !unreserved[*handler].is_empty();
    let declared = |handler: usize| shared.process.handlers[handler].config.loopback;
    let least = (0..unreserved.len()).filter(waits).map(declared).min();
    match (least, &shared.loopback) {
        (Some(least), Some(loopback)) => loopback.room.has(least).await,
        _ => std::future::pending().await,
    }
}

/// The line of an event of this input, if its pool keeps order. If the key cannot be read, that is
/// an error if a key is required. A missing key is counted.
pub(crate) fn line_of(
    shared: &Shared,
    event: &Event,
    handler: usize,
    input: u32,
) -> Result<Option<OrderLine>, String> {
    let entry = &shared.process.handlers[handler];
    let key = entry.config.key(event)?;
    if entry.config.order_by.is_none() || !shared.process.pools[entry.pool].keeps_order {
        return Ok(None);
    }
    if key.is_none() {
        entry.without_key.fetch_add(1, Ordering::Relaxed);
    }
    Ok(key.map(|key| shared.ledger.audit.line(input, handler, key)))
}
