//! A pool that is played: the product's queues, permits, wake-ups and drivers of workers, and
//! handlers that do what a script says.

use std::{
    collections::{BTreeMap, BTreeSet},
    marker::PhantomData,
    pin::pin,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU32},
    task::{Context, Poll, Waker},
};

use greenroom_queue::{
    discard::discard,
    lanes::LaneState,
    permits::{Closed, Refused},
    sync::{Notify, Ordering, fence, run_on},
    urgency::Urgency,
    wake::{ParkToken, own_waker},
};

use crate::{
    Actor, Class, DeadLetterReason, ExitReason, ReplyPort,
    checker::{JoinHandle, block_on, spawn, yield_now},
    delivery::Extra,
    life::Signal,
    pool::{
        core::{Core, Plan, sweep::Predicate},
        failed::Failed,
        membership::{
            mailbox::Mailbox,
            slot_state::{LEAVE, SIGNAL},
        },
        outgoing::Outgoing,
        pool_payload::{Queued, ShardOf},
        worker::{
            Driver, Step,
            in_flight::{InFlight, RunState, Source, Taken},
            in_place::is_run_by_caller,
        },
    },
};

/// Messages are numbers. Those below ten have no key; all others in the same ten have the same, from [`MANY`] on all in the same hundred. From [`URGENT`] on
/// they are urgent, and begin again with the first key.
pub(super) struct Numbers;

impl Actor for Numbers {
    type Message = u32;
    type Reply = ();
    type Error = ();
}

/// What tells the key of a number.
pub(super) trait Keyed:
    From<u32> + std::hash::Hash + Eq + Copy + Send + Sync + 'static
{
    fn number(self) -> u32;
}

/// A key of a type that the product knows nothing of: it is compared under no lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(u32);

impl From<u32> for Key {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl Keyed for Key {
    fn number(self) -> u32 {
        self.0
    }
}

/// A plain key: it is compared where it lies.
impl Keyed for u32 {
    fn number(self) -> u32 {
        self
    }
}

const NO_KEY: u32 = 0;

/// The first number of a key with many messages.
const MANY: u32 = 500;

/// It is not known after how many messages all is done.
const UNKNOWN: usize = usize::MAX;

/// The first urgent number.
const URGENT: u32 = 900;

/// As in the product, where it is more than a model has messages: so there are messages within and between two turns.
const QUICK_ATTEMPTS: u32 = 3;

/// As in the product, but fewer.
const WAITING_ATTEMPTS: u32 = 2;

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handler {
    Returns,
    /// Once, and then it returns.
    Suspends,
    /// It lets others run without saying so, as one that computes does.
    Computes,
    /// As `Suspends`, and wants to be told once a message of its key waits behind it.
    Collects,
    /// It fails the first time, and is parked.
    Fails,
    /// It fails for good the first time, and its key is parked.
    ParksKey,
    /// The message is not for its worker: the first time, it is put back for any other.
    PutsBack,
    /// As `Suspends`, and then it fails for good and ends the pool.
    EndsPool,
}

/// Which message is handled how.
type Script = fn(u32) -> Handler;

/// What nobody but the model sees.
#[derive(Default)]
struct Ledger {
    /// Accepted and not started.
    held: usize,
    in_hand: BTreeSet<u32>,
    /// The last message of each key and class.
    last: BTreeMap<(u32, bool), u32>,
    handled: BTreeSet<u32>,
    /// Or put back.
    failed: BTreeSet<u32>,
    /// Signals.
    heard: usize,
    /// The key over which the pool has ended.
    barred: Option<u32>,
}

impl Ledger {
    fn done(&self) -> usize {
        self.handled.len() + self.heard
    }
}

pub(super) struct PoolOf<K> {
    pub(super) core: Arc<Core<Numbers, K>>,
    plan: Plan,
    script: Script,
    /// Messages and signals after which all is done.
    expected: usize,
    ledger: Mutex<Ledger>,
}

pub(super) type Pool = PoolOf<Key>;

/// Whose keys are plain.
pub(super) type PlainPool = PoolOf<u32>;

impl<K: Keyed> PoolOf<K> {
    pub(super) fn new(plan: Plan, expected: usize, script: Script) -> Arc<Self> {
        let core = Arc::new(Core::new(&plan, Self::key, |key| key.number()));
        Arc::new(Self { core, plan, script, expected, ledger: Mutex::default() })
    }

    /// A pool that ends once it is stopped. For that, its workers count what they have settled.
    pub(super) fn until_stopped(plan: Plan, script: Script) -> Arc<Self> {
        Self::new(plan, UNKNOWN, script)
    }

    /// Messages that workers have settled, in a pool that is stopped.
    pub(super) fn settled(&self) -> u64 {
        let slots = self.core.membership.slots.iter();
        slots.map(|slot_state| slot_state.settled.load(Ordering::Relaxed)).sum()
    }

    fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key_of(number: u32) -> u32 {
        match number % URGENT {
            many @ MANY.. => many / 100,
            few => few / 10,
        }
    }

    fn payload(number: u32) -> Outgoing<u32, (), ()> {
        let class = if number < URGENT { Class::Normal } else { Class::Urgent };
        Outgoing { message: Some(number), extra: None, class }
    }

    /// The core's key function.
    fn key(number: &u32) -> Option<K> {
        let key = Self::key_of(*number);
        (key != NO_KEY).then(|| K::from(key))
    }

    fn has_order(&self, key: u32) -> bool {
        self.plan.keyed && key != NO_KEY
    }

    /// Takes a permit and queues a message in this shard, or says why not. Steps aside where it is
    /// to.
    fn push(&self, shard: usize, payload: &mut Outgoing<u32, (), ()>) -> Result<(), Refused> {
        let urgency = if self.plan.calls { Urgency::InPlace } else { Urgency::CanStepAside };
        loop {
            let key = self.core.key(payload);
            match self.core.take_and_push(payload, key, shard as u32, urgency) {
                Err(Refused::NotNow) => yield_now(),
                pushed => return pushed,
            }
        }
    }

    /// Sends a message to this shard, and waits for room where there is none.
    pub(super) fn send(&self, shard: usize, number: u32) -> Result<(), Closed> {
        let mut payload = Self::payload(number);
        match self.push(shard, &mut payload) {
            Ok(()) => Ok(()),
            Err(Refused::Full) => {
                block_on(self.core.await_permit())?;
                let key = self.core.key(&payload);
                self.core.push(shard, &mut payload, key).map_err(|_| Closed)
            }
            Err(_) => Err(Closed),
        }
    }

    /// Sends a message, and waits for room in the pool and behind its key: the steps of the product's `push_waiting`.
    pub(super) fn send_in_turn(&self, number: u32) -> Result<(), Refused> {
        let mut payload = Self::payload(number);
        let sent = match self.push(0, &mut payload) {
            Err(Refused::Full | Refused::KeyFull) => {
                block_on(self.core.push_in_its_turn(&mut payload, 0))
            }
            sent => sent,
        };
        self.check_bounds();
        sent
    }

    /// As `send_in_turn`, but goes away where it has to wait for the so-manieth time. True where the message was queued.
    pub(super) fn send_with_patience(&self, number: u32, waits: usize) -> bool {
        let mut payload = Self::payload(number);
        let mut polls = 0;
        block_on(async {
            let mut send = pin!(self.core.push_in_its_turn(&mut payload, 0));
            std::future::poll_fn(|task| {
                polls += 1;
                match send.as_mut().poll(task) {
                    Poll::Ready(sent) => Poll::Ready(sent.is_ok()),
                    Poll::Pending if polls > waits => Poll::Ready(false),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await
        })
    }

    /// Sends a message where there is room now.
    pub(super) fn try_send(&self, number: u32) -> Result<(), Refused> {
        let sent = self.push(0, &mut Self::payload(number));
        self.check_bounds();
        sent
    }

    /// As `try_send`, for somebody who waits for the reply. It is counted where that says that the key is parked.
    pub(super) fn try_call(&self, number: u32, told: &Arc<AtomicU32>) -> Result<(), Refused> {
        let mut payload = Self::payload(number);
        payload.extra = Some(Extra::new(Some(ReplyPort::new(told))));
        self.push(0, &mut payload)
    }

    pub(super) fn sender_in_turn(self: &Arc<Self>, numbers: &'static [u32]) -> JoinHandle<()> {
        let pool = self.clone();
        spawn(move || {
            numbers.iter().for_each(|number| assert_eq!(pool.send_in_turn(*number), Ok(())));
        })
    }

    /// Starts the next message and has done with it, where there is one: what a worker does, without one that sleeps.
    pub(super) fn start_one(&self, worker: usize) -> bool {
        let Some((source, entry)) = self.core.take(worker, &mut 0) else {
            return false;
        };
        let started = &self.core.membership.slots.at(worker).started;
        started.store(started.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let first = self.ledger().handled.insert(entry.message);
        assert!(first, "every message is handled once");
        discard(entry.key);
        self.core.release(worker, source);
        fence(Ordering::SeqCst);
        self.core.serve_waiters();
        true
    }

    /// No key has more messages than it may, here and now. Those of parked keys have another bound.
    pub(super) fn check_bounds(&self) {
        for shard in &self.core.queue.shards {
            let mut lines = BTreeMap::<u32, usize>::new();
            let outbox = shard.outbox.lock();
            let inbox = shard.inbox.lock();
            let queued = outbox.queue.iter().chain(inbox.queue.iter()).chain(&inbox.urgent);
            for entry in queued.filter(|entry| entry.key.is_some()) {
                *lines.entry(entry.hash).or_default() += 1;
            }
            for lane in outbox.lanes.iter() {
                *lines.entry(lane.id.hash).or_default() += lane.len() - lane.retried();
            }
            for lane in outbox.lanes.iter().filter(|lane| lane.state == LaneState::Parked) {
                lines.remove(&lane.id.hash);
            }
            drop((outbox, inbox));
            let most = lines.into_values().max().unwrap_or(0);
            assert!(most <= self.plan.bounds.waiting, "{most} messages of a key");
        }
    }

    /// Nothing is counted that is not there, and nobody waits.
    pub(super) fn check_counts(&self) {
        for (index, shard) in self.core.queue.shards.iter().enumerate() {
            for hash in 1..self.plan.hashes {
                let room = self.core.room_behind(index, hash);
                assert!(room.is_none_or(|room| room == self.plan.bounds.waiting), "{room:?}");
            }
            let outbox = shard.outbox.lock();
            assert!(outbox.backlog.as_ref().is_none_or(|backlog| backlog.is_needless(0)));
        }
    }

    /// Waits until a key is parked.
    pub(super) fn wait_for_parked(&self) {
        while self.core.parked_messages() == 0 {
            yield_now();
        }
    }

    /// Lets a parked key go on without the message that has failed.
    pub(super) fn release(&self, key: u32) {
        assert!(self.core.release_key(&K::from(key)));
        let letters = std::mem::take(&mut *self.core.letters.lock());
        assert_eq!(letters.len(), 1, "what has failed is a dead letter");
        let mut ledger = self.ledger();
        ledger.handled.extend(letters);
        let over = ledger.done() == self.expected;
        drop(ledger);
        if over {
            self.core.end();
        }
    }

    /// Lets a parked key go on with the message that has failed.
    pub(super) fn replay(&self, key: u32) {
        assert!(self.core.replay_key(&K::from(key)));
    }

    /// Takes the line of a parked key.
    pub(super) fn remove(&self, key: u32) -> Vec<u32> {
        let line = self.core.remove_key(&K::from(key)).expect("the key is parked");
        let mut ledger = self.ledger();
        ledger.handled.extend(&line);
        let over = ledger.done() == self.expected;
        drop(ledger);
        if over {
            self.core.end();
        }
        line
    }

    /// Withdraws what waits in the shards and is chosen: the steps of the product's `withdraw`.
    /// Says which messages those were.
    pub(super) fn withdraw(&self, mut is_such: impl FnMut(&u32) -> bool) -> Vec<u32> {
        let mut predicate = Predicate::new(&mut is_such);
        let mut withdrawn = Vec::new();
        for index in 0..self.core.queue.shards.len() {
            self.core.sweep(index, &mut predicate, &mut withdrawn);
        }
        let mut ledger = self.ledger();
        let numbers: Vec<_> = withdrawn.iter().map(|entry| entry.message).collect();
        for number in &numbers {
            assert!(ledger.handled.insert(*number), "nothing is withdrawn that is handled");
        }
        let over = !numbers.is_empty() && ledger.done() == self.expected;
        drop(ledger);
        if over {
            self.core.end();
        }
        self.core.serve_waiters();
        numbers
    }

    /// Who withdraws these, so often.
    pub(super) fn withdrawer(
        self: &Arc<Self>,
        times: usize,
        numbers: &'static [u32],
    ) -> JoinHandle<()> {
        let pool = self.clone();
        spawn(move || {
            for _ in 0..times {
                pool.withdraw(|number| {
                    // Others have their turn while user code chooses.
                    yield_now();
                    numbers.contains(number)
                });
            }
        })
    }

    /// Sends a message to one worker, and waits for room there: the steps of the product's
    /// `WorkerSender`.
    pub(super) fn mail(&self, worker: usize, number: u32) -> Result<(), Closed> {
        self.mail_to(&self.core.mailbox(worker), number)
    }

    pub(super) fn mail_to(&self, mailbox: &Mailbox<Numbers, K>, number: u32) -> Result<(), Closed> {
        block_on(mailbox.reserve())?;
        block_on(self.core.await_permit())?;
        let pushed = self.core.push_to(mailbox, &mut Self::payload(number));
        pushed.inspect_err(|Closed| self.core.queue.permits.give(1, &*self.core))
    }

    /// Sends a signal to one worker.
    pub(super) fn signal(&self, worker: usize) {
        self.core.signal_worker(&self.core.mailbox(worker), Signal(PhantomData));
    }

    /// The worker of a slot has gone; the slot is the next worker's from here on. What is left in the mailbox is seen to by
    /// the thread that is begun.
    pub(super) fn leave(self: &Arc<Self>, slot: usize) -> JoinHandle<()> {
        let mailbox = self.core.take_mailbox(slot);
        let pool = self.clone();
        spawn(move || pool.core.clear_mailbox(mailbox, &ExitReason::Normal))
    }

    /// Takes a message out of a worker's mailbox, whose room is needed. Its permit goes back.
    pub(super) fn evict(&self, worker: usize) {
        if self.core.mailbox(worker).evict().is_some() {
            self.core.queue.permits.give(1, &*self.core);
        }
    }

    pub(super) fn mailer(
        self: &Arc<Self>,
        worker: usize,
        numbers: &'static [u32],
    ) -> JoinHandle<()> {
        let pool = self.clone();
        spawn(move || {
            numbers.iter().for_each(|number| pool.mail(worker, *number).expect("it is open"));
        })
    }

    pub(super) fn sender(
        self: &Arc<Self>,
        shard: usize,
        numbers: &'static [u32],
    ) -> JoinHandle<()> {
        let pool = self.clone();
        spawn(move || {
            numbers.iter().for_each(|number| pool.send(shard, *number).expect("it is open"));
        })
    }

    /// A worker that is awake before anything else happens.
    pub(super) fn worker(self: &Arc<Self>, worker: usize) -> JoinHandle<()> {
        self.core.queue.wake.enter(&self.core.clock.watchdog);
        let pool = self.clone();
        spawn(move || Player::new(&pool, worker, RunState::Awake).work())
    }

    /// As `worker`, with a task that a stop waits for. A worker that is told to leave is gone
    /// afterwards.
    pub(super) fn member(self: &Arc<Self>, worker: usize) -> JoinHandle<()> {
        self.core.queue.wake.enter(&self.core.clock.watchdog);
        self.task(move |pool| {
            Player::new(pool, worker, RunState::Awake).work();
            if pool.core.membership.slots.at(worker).has(LEAVE) {
                pool.core.left(worker, &ExitReason::Normal);
            }
        })
    }

    /// What a stop waits for: the steps of the product's `TaskGuard`, but for the last one in a
    /// pool that nobody stops.
    pub(super) fn task(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) -> JoinHandle<()> {
        self.core.lifecycle.running.fetch_add(1, Ordering::Relaxed);
        let pool = self.clone();
        spawn(move || {
            work(&pool);
            pool.core.lifecycle.running.fetch_sub(1, Ordering::SeqCst);
            pool.core.lifecycle.progress.notify_waiters();
        })
    }

    /// As `worker`, on another thread of the runtime than the others.
    pub(super) fn worker_elsewhere(self: &Arc<Self>, worker: usize) -> JoinHandle<()> {
        self.core.queue.wake.enter(&self.core.clock.watchdog);
        let pool = self.clone();
        spawn(move || {
            run_on(2);
            Player::new(&pool, worker, RunState::Awake).work();
        })
    }

    /// A worker whose handler has waited before anything else happens, and that goes on where
    /// handlers usually do.
    pub(super) fn uncounted(self: &Arc<Self>, worker: usize) -> JoinHandle<()> {
        let pool = self.clone();
        spawn(move || {
            Player::new(&pool, worker, RunState::Uncounted).work();
        })
    }

    /// A worker that sleeps before anything else happens.
    pub(super) fn sleeper(self: &Arc<Self>, worker: usize) -> JoinHandle<()> {
        let park_token = self.core.queue.wake.park(worker, None);
        let pool = self.clone();
        spawn(move || {
            let mut player = Player::new(&pool, worker, RunState::Parked);
            block_on(player.sleep(park_token, false));
            player.work();
        })
    }

    /// The product's `Watched::tick`, without the pace of handlers.
    pub(super) fn tick(&self) {
        self.core.queue.wake.end_visits();
        let (revoked, _) = self.core.revoke_stuck_tokens();
        if revoked || self.core.queue.wake.any_ready() {
            self.core.queue.wake.one_more(&self.core.clock.watchdog);
        }
        self.core.serve_waiters();
    }

    /// What is parked comes due, where something is.
    pub(super) fn come_due(&self) {
        let lane = self.core.clock.lanes.lock().pop();
        if let Some((index, id)) = lane {
            self.core.wake_lane(index, id);
        }
        let message = self.core.clock.messages.lock().pop();
        if let Some((index, entry)) = message {
            self.core.wake_message(index, entry);
        }
        let mail = self.core.clock.mail.lock().pop();
        if let Some((slot, entry)) = mail {
            self.core.wake_mail(slot, entry);
        }
    }

    /// Waits until something is parked, and lets it come due.
    pub(super) fn wait_and_come_due(&self) {
        while self.core.clock.is_empty() {
            yield_now();
        }
        self.come_due();
    }

    pub(super) fn has_handled(&self, number: u32) -> bool {
        self.ledger().handled.contains(&number)
    }

    /// What has been handled so far.
    pub(super) fn handled(&self) -> Vec<u32> {
        self.ledger().handled.iter().copied().collect()
    }

    fn begins(&self, number: u32) {
        let mut ledger = self.ledger();
        let key = Self::key_of(number);
        if !self.has_order(key) {
            return;
        }
        assert!(ledger.in_hand.insert(key), "one message of a key at a time");
        assert_ne!(ledger.barred, Some(key), "nothing comes after what has ended the pool");
        let last = ledger.last.insert((key, number < URGENT), number);
        let again = last == Some(number) && ledger.failed.contains(&number);
        assert!(again || last.is_none_or(|last| last < number), "in order of acceptance");
    }

    /// A message of this key ends the pool.
    fn bars(&self, key: u32) {
        self.ledger().barred = Some(key);
    }

    /// True when this was the last message of all.
    fn ends(&self, number: u32, handled: bool) -> bool {
        let mut ledger = self.ledger();
        ledger.in_hand.remove(&Self::key_of(number));
        let first = match handled {
            true => ledger.handled.insert(number),
            false => ledger.failed.insert(number),
        };
        assert!(first, "every message is handled once");
        handled && ledger.done() == self.expected
    }

    /// True when this signal was the last of all.
    fn hears(&self) -> bool {
        let mut ledger = self.ledger();
        ledger.heard += 1;
        ledger.done() == self.expected
    }

    /// As `finish`, where a message has ended the pool: what was not started lies where it was.
    pub(super) fn finish_early(&self, threads: impl IntoIterator<Item = JoinHandle<()>>) {
        threads.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
        assert!(self.ledger().barred.is_some(), "it has ended");
        let of = |shard: &ShardOf<Numbers, K>| {
            let outbox = shard.outbox.lock();
            assert!(outbox.token.is_none(), "whoever drained it has let go");
            outbox.queued() + shard.inbox.lock().queued()
        };
        let left: usize = self.core.queue.shards.iter().map(of).sum();
        assert_eq!(self.ledger().done() + left, self.expected, "nothing is lost");
    }

    pub(super) fn finish(&self, threads: impl IntoIterator<Item = JoinHandle<()>>) {
        threads.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
        assert_eq!(self.ledger().done(), self.expected, "nothing is lost");
        assert_eq!(self.core.queue.wake.awake(), 0, "whoever was awake has left");
        for shard in &self.core.queue.shards {
            let outbox = shard.outbox.lock();
            assert_eq!(outbox.queued() + shard.inbox.lock().queued(), 0);
        }
        assert!(!self.core.queue.permits.is_starved(), "nobody waits");
    }
}

/// A worker: the product's driver and what it has in flight, and the shell around them without what
/// users give.
struct Player<'a, K: Keyed> {
    pool: &'a PoolOf<K>,
    core: &'a Core<Numbers, K>,
    in_flight: InFlight<Numbers, K>,
    driver: Driver,
}

impl<'a, K: Keyed> Player<'a, K> {
    fn new(pool: &'a PoolOf<K>, worker: usize, run_state: RunState) -> Self {
        let mut in_flight = InFlight::new(&pool.core, worker);
        in_flight.worker.run_state = run_state;
        Self { pool, core: &pool.core, in_flight, driver: Driver::new(&pool.core.settings) }
    }

    /// The product's `work`.
    fn work(&mut self) {
        loop {
            match self.driver.next(&mut self.in_flight, false) {
                Step::Run => {
                    let attempts = self.attempt();
                    self.driver.ran(&mut self.in_flight, attempts);
                }
                Step::Park => {
                    self.idle();
                    self.driver.unparked(0);
                }
                Step::Search => {
                    self.in_flight.begin_search();
                    yield_now();
                    self.in_flight.end_search();
                }
                Step::Yield => {
                    self.core.serve_waiters();
                    yield_now();
                }
                Step::Defer | Step::Spin => yield_now(),
                Step::Hear => self.hear(),
                Step::End => break,
                Step::Exit | Step::Permit => {
                    unreachable!("no actor asks to end, and no pool has limits")
                }
            }
        }
        self.in_flight.give_up_place();
        self.in_flight.rest();
    }

    /// The token of a shard is in its hands.
    fn drains(&self) -> bool {
        matches!(self.in_flight.worker.source, Source::Head { .. })
    }

    /// The product's `hear`: signals come before every message.
    fn hear(&mut self) {
        self.in_flight.give_up_place();
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

    async fn sleep(&mut self, mut park_token: ParkToken, has_woken: bool) {
        let (wake, worker) = (&self.core.queue.wake, self.in_flight.worker.slot);
        let wake_reason =
            wake.woken_or_called(worker, &mut park_token, is_run_by_caller, || false).await;
        self.in_flight.worker.run_state = RunState::Awake;
        self.in_flight.resume(wake_reason.expect("nobody calls it"));
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
                self.pool.bars(PoolOf::<K>::key_of(number));
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
        self.in_flight.worker.source =
            self.core.park(self.in_flight.worker.slot, source, entry, std::time::Duration::ZERO);
    }

    fn park_key(&mut self, number: u32) {
        let failed = Failed::new(DeadLetterReason::Failed, Some(()));
        let entry = self.entry(number, Some(Extra::parked(Some(failed.clone()))));
        let source = std::mem::replace(&mut self.in_flight.worker.source, Source::None);
        self.in_flight.worker.source =
            self.core.park_key(self.in_flight.worker.slot, source, vec![entry], failed);
    }

    /// The product's `expect_more`, before it suspends.
    fn collect(&mut self) {
        self.in_flight.worker.source =
            self.core.suspend(self.in_flight.worker.slot, self.in_flight.worker.source);
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
        self.core.re_home(vec![self.entry(number, None)]);
    }

    /// The handler is pending for one poll.
    fn suspend(&mut self) {
        self.in_flight.worker.suspend(&Context::from_waker(Waker::noop()));
        yield_now();
        self.in_flight.worker.go_on();
    }
}
