//! A worker that is played.

use std::{
    sync::Arc,
    task::{Context, Waker},
};

use greenroom_queue::{
    deque::Deque,
    sync::{Notify, Ordering},
    wake::{ParkToken, own_waker},
};

use super::{
    Handler, PoolOf, UNKNOWN,
    message::{Keyed, Numbers, key_of},
};
use crate::pool::core::{mail::re_home, park::park, parked::park_key, place::suspend};
use crate::{
    DeadLetterReason,
    checker::{block_on, yield_now},
    delivery::Extra,
    life::Signal,
    pool::{
        core::Core,
        failed::Failed,
        membership::{mailbox::Mailbox, slot_state::SIGNAL},
        pool_payload::Queued,
        worker::{
            Driver, Step,
            in_flight::{InFlight, RunState, Source, Taken},
        },
    },
};

/// As in the product, where it is more than a model has messages: so there are messages within and
/// between two turns.
const QUICK_ATTEMPTS: u32 = 3;

/// As in the product, but fewer.
const WAITING_ATTEMPTS: u32 = 2;

/// A worker: the product's driver and what it has in flight, and the shell around them without what
/// users give.
pub(super) struct Player<'a, K: Keyed> {
    pool: &'a PoolOf<K>,
    core: &'a Core<Numbers, K>,
    in_flight: InFlight<Numbers, K>,
    driver: Driver,
}

impl<'a, K: Keyed> Player<'a, K> {
    pub(super) fn new(pool: &'a PoolOf<K>, worker: usize, run_state: RunState) -> Self {
        let mut in_flight = InFlight::new(&pool.core, worker);
        in_flight.worker.run_state = run_state;
        Self { pool, core: &pool.core, in_flight, driver: Driver::new(&pool.core.settings) }
    }

    /// The product's `work`.
    pub(super) fn work(&mut self) {
        loop {
            match self.driver.next(&mut self.in_flight, false) {
                Step::Run => {
                    let attempts = self.attempt();
                    self.driver.ran(&mut self.in_flight, attempts);
                }
                Step::Park => {
                    self.idle();
                    self.driver.unparked();
                }
                Step::Search => {
                    self.in_flight.worker.begin_search();
                    yield_now();
                    self.in_flight.worker.end_search();
                }
                Step::Yield => {
                    self.core.serve_waiters();
                    yield_now();
                }
                Step::Defer => yield_now(),
                Step::Hear => self.hear(),
                Step::End => break,
                Step::Exit | Step::Pass | Step::Fair => {
                    unreachable!("no actor asks to end, and no pool has limits")
                }
            }
        }
        self.in_flight.worker.give_up_place();
        self.in_flight.worker.rest();
    }

    /// The token of a shard is in its hands.
    fn drains(&self) -> bool {
        matches!(self.in_flight.worker.source, Source::Head { .. })
    }

    /// The product's `hear`: signals come before every message.
    fn hear(&mut self) {
        self.in_flight.worker.give_up_place();
        while self.in_flight.slot_state.has(SIGNAL) {
            let signal = self.in_flight.own_mailbox().and_then(Mailbox::pop_signal);
            let Some(Signal(_)) = signal else { return };
            if self.pool.hears() {
                self.core.end();
            }
        }
    }

    /// The product's `idle`, where no caller hands it anything.
    fn idle(&mut self) {
        block_on(async {
            let (park_token, has_woken) = self.in_flight.park(own_waker().await);
            self.sleep(park_token, has_woken).await;
        });
    }

    pub(super) async fn sleep(&mut self, park_token: ParkToken, has_woken: bool) {
        let wake_reason = self.core.queue.wake.woken(self.in_flight.worker.slot, park_token).await;
        self.in_flight.worker.run_state = RunState::Awake;
        self.in_flight.resume(wake_reason);
        if has_woken {
            // It steps aside for the one that it has woken as it parked.
            yield_now();
        }
    }

    /// What the handler does with a message that it may have had before.
    fn handler(&self, number: u32) -> Handler {
        match (self.pool.script)(number) {
            Handler::Fails | Handler::PutsBack | Handler::ParksKey
                if self.pool.ledger().failed.contains(&number) =>
            {
                Handler::Returns
            }
            handler => handler,
        }
    }

    /// The product's `attempt`: the message in hand, and where handlers are quick those behind it
    /// in the same run. Says how many.
    fn attempt(&mut self) -> u32 {
        let core = self.core;
        if core.queue.wake.waits() {
            return self.attempt_after_waits();
        }
        let quick = core.queue.wake.is_quick();
        let run = if quick { self.in_flight.left_of_run(core, QUICK_ATTEMPTS - 1) } else { None };
        let (shard, most) = run.unwrap_or((&core.queue.shards[0], 0));
        let mut left = most;
        let last = loop {
            self.handle();
            if left == 0 {
                break None;
            }
            match self.in_flight.take_in_run(core, shard) {
                Some(Taken::InHand) => left -= 1,
                last => break last,
            }
        };
        self.in_flight.slot_state.set_free();
        self.in_flight.count_in_run(most - left, last);
        most - left + 1
    }

    /// The product's `attempt_after_waits`.
    fn attempt_after_waits(&mut self) -> u32 {
        let mut attempts = 1;
        loop {
            self.handle();
            let goes_on = attempts < WAITING_ATTEMPTS;
            if !goes_on || !self.in_flight.take_again_after_wait(self.core) {
                break;
            }
            attempts += 1;
        }
        self.in_flight.slot_state.set_free();
        attempts
    }

    fn handle(&mut self) {
        let number = self.in_flight.delivery.message.take().expect("a message is in hand");
        drop(self.in_flight.delivery.extra.take());
        self.pool.begins(number);
        let is_counted = self.in_flight.worker.run_state == RunState::Awake;
        assert!(is_counted || !self.drains(), "the watch looks at who drains a shard");
        let handler = self.handler(number);
        match handler {
            Handler::Returns | Handler::Fails | Handler::PutsBack | Handler::ParksKey => {}
            Handler::Suspends => self.suspend(),
            Handler::Collects => self.collect(),
            Handler::Computes => yield_now(),
            Handler::EndsPool => {
                self.suspend();
                self.pool.bars(key_of(number));
                self.core.end();
            }
        }
        let handled = !matches!(handler, Handler::Fails | Handler::PutsBack | Handler::ParksKey);
        if self.pool.ends(number, handled) {
            self.core.end();
        }
        if handled && self.pool.expected == UNKNOWN {
            let settled = &self.in_flight.slot_state.settled;
            settled.store(settled.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        match handler {
            Handler::Fails => self.park(number),
            Handler::ParksKey => self.park_key(number),
            Handler::PutsBack => self.put_back(number),
            _ => {}
        }
    }

    fn entry(&self, message: u32, extra: Option<Box<Extra<(), ()>>>) -> Queued<Numbers, K> {
        let delivery = &self.in_flight.delivery;
        let (urgent, stamp) = (delivery.class.is_urgent(), delivery.stamp);
        Queued::<Numbers, K> { message, extra, key: None, hash: 0, urgent, stamp }
    }

    fn park(&mut self, number: u32) {
        let entry = self.entry(number, Some(Extra::parked(None)));
        let source = std::mem::replace(&mut self.in_flight.worker.source, Source::None);
        self.in_flight.worker.source = park(
            self.core,
            self.in_flight.worker.slot,
            source,
            Deque::only(entry),
            std::time::Duration::ZERO,
        );
    }

    fn park_key(&mut self, number: u32) {
        let failed = Failed::new(DeadLetterReason::Failed, Some(()));
        let entry = self.entry(number, Some(Extra::parked(Some(failed.clone()))));
        let source = std::mem::replace(&mut self.in_flight.worker.source, Source::None);
        self.in_flight.worker.source =
            park_key(self.core, self.in_flight.worker.slot, source, Deque::only(entry), failed);
    }

    /// The product's `expect_more`, before it suspends.
    fn collect(&mut self) {
        self.in_flight.worker.source =
            suspend(&self.core.queue, self.in_flight.worker.slot, self.in_flight.worker.source);
        if let Source::Lane { index, id, .. } = self.in_flight.worker.source {
            let mut outbox = self.core.queue.shards[index].outbox.lock();
            if let Some(lane) = outbox.lanes.get(id) {
                lane.expect(1, Arc::new(Notify::default()));
            }
        }
        self.suspend();
    }

    fn put_back(&mut self, number: u32) {
        self.core.queue.permits.take_back();
        re_home(self.core, Deque::only(self.entry(number, None)));
    }

    /// The handler is pending for one poll.
    fn suspend(&mut self) {
        self.in_flight.worker.suspend(&Context::from_waker(Waker::noop()));
        yield_now();
        self.in_flight.worker.go_on();
    }
}
