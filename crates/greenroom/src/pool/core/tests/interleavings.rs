//! Random orders of the steps that workers, the clock and senders may take, on a core without
//! tasks: a step here is everything that happens under one hold of the real locks. Whatever the
//! order, a key has one owner and keeps its order, and nothing is forgotten.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use greenroom_queue::{deque::Deque, entry::Entry};
use proptest::prelude::*;
use tokio::time::Instant;

use crate::{
    Actor, Class, Context, Delivery,
    delivery::Extra,
    pool::{
        builder::{
            config::{PoolConfig, SizeConfig},
            functions::Functions,
            settings::Derived,
        },
        core::{
            Core, Queued, Settings, Urgency,
            evict::evict,
            park::park,
            place::{release, suspend},
            push::{push_in_line, take_and_push},
            take::{
                NextNear, TakenNear, find_lane, take_behind, take_behind_near, take_ready,
                take_ready_near, take_ready_normal, take_ready_urgent,
            },
        },
        frame::AnyCore,
        outgoing::Outgoing,
        pool_payload::PoolPayload,
        stats::counters::count,
        worker::{Factory, in_flight::Source},
    },
};

struct Nobody;

/// A key, an increasing number, and a class.
type Message = (Option<u8>, u32, Class);

impl Actor for Nobody {
    type Message = Message;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, _: Message, _: &mut Context<Self>) -> Result<(), ()> {
        Ok(())
    }
}

/// A key that hashes to few values.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key(u8);

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.0 % 3).hash(state);
    }
}

/// Keys of one kind.
trait Keyed: std::hash::Hash + Eq + Send + Sync + 'static {
    fn of(number: u8) -> Self;
}

impl Keyed for Key {
    fn of(number: u8) -> Self {
        Self(number)
    }
}

/// A key that is compared under the lock of the outbox.
impl Keyed for u8 {
    fn of(number: u8) -> Self {
        number
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// From now on handlers usually wait, or only rarely.
    Wait(bool),
    Push(Option<u8>, Class),
    /// The worker continues: it settles the message in hand and looks for more.
    GoOn(usize),
    /// Like `GoOn`, but after a run of urgent messages, so a normal one is due.
    GoOnNormal(usize),
    /// The worker settles the message in hand, and looks for urgent messages elsewhere.
    Hurry(usize),
    /// Its handler suspends.
    Suspend(usize),
    /// The message in hand is to be retried.
    Retry(usize),
    /// The handler panics, or the worker is killed: it gives up its place.
    Release(usize),
    /// The clock ticks.
    Tick,
    /// A message is evicted.
    Evict,
    /// The next retry comes due.
    Due,
}

const WORKERS: usize = 3;

fn step() -> impl Strategy<Value = Step> {
    let key = prop_oneof![1 => Just(None), 8 => (0u8..5).prop_map(Some)];
    let class = prop_oneof![3 => Just(Class::Normal), 1 => Just(Class::Urgent)];
    prop_oneof![
        8 => (key, class).prop_map(|(key, class)| Step::Push(key, class)),
        1 => any::<bool>().prop_map(Step::Wait),
        1 => (0..WORKERS).prop_map(Step::GoOnNormal),
        3 => (0..WORKERS).prop_map(Step::Hurry),
        8 => (0..WORKERS).prop_map(Step::GoOn),
        2 => (0..WORKERS).prop_map(Step::Suspend),
        1 => (0..WORKERS).prop_map(Step::Retry),
        1 => (0..WORKERS).prop_map(Step::Release),
        3 => Just(Step::Tick),
        1 => Just(Step::Evict),
        1 => Just(Step::Due),
    ]
}

struct Worker {
    source: Source,
    in_hand: Option<Message>,
    attempts: u32,
    cursor: u32,
}

struct Stage<K: Keyed> {
    core: Core<Nobody, K>,
    workers: Vec<Worker>,
    pushed: u32,
    done: HashSet<u32>,
    /// The last number per key and class.
    last: HashMap<(u8, bool), u32>,
}

impl<K: Keyed> Stage<K> {
    fn new(workers: usize) -> Self {
        let size = SizeConfig {
            workers,
            bounds: 0..=8,
            mailbox: 1,
            capacity: Some(1_000),
            ..SizeConfig::default()
        };
        let config = PoolConfig {
            size,
            notices: crate::PoolEvents::off(),
            seed: Some(1),
            ..PoolConfig::default()
        };
        let derived = Derived {
            capacity: 1_000,
            table_slots: 0,
            key_bounds: greenroom_queue::backlog::KeyBounds::NONE,
            key_share: None,
            bytes: None,
            batch_bytes: None,
            is_checked: false,
            looks_at_start: false,
            uses_handoff: false,
            seed: 1,
        };
        let settings = Settings {
            functions: Functions::default(),
            factory: Factory::new(Arc::new(|_| Err("nobody".to_owned()))),
            key_of: Some(Box::new(|message: &Message| message.0.map(K::of))),
            share_of: None,
            shares: None,
            derived,
        };
        let core = Core::new(
            config,
            None,
            settings,
            (None, None),
            1,
            tokio::runtime::Handle::current(),
            None,
        );
        let worker = |_| Worker { source: Source::None, in_hand: None, attempts: 0, cursor: 0 };
        let workers = (0..workers).map(worker).collect();
        Self { core, workers, pushed: 0, done: HashSet::new(), last: HashMap::new() }
    }

    fn push(&mut self, key: Option<u8>, class: Class) {
        let message = (key, self.pushed, class);
        self.pushed += 1;
        let mut payload = Outgoing { class, ..Outgoing::new(message, None) };
        let key = self.core.key(&payload);
        assert!(take_and_push(&self.core, &mut payload, key, 0, Urgency::Now).is_ok());
    }

    fn settle(&mut self, index: usize) -> Result<(), TestCaseError> {
        if let Some((_, number, _)) = self.workers[index].in_hand.take() {
            prop_assert!(self.done.insert(number), "{number} was handled twice");
        }
        Ok(())
    }

    fn go_on(&mut self, index: usize) -> Result<bool, TestCaseError> {
        self.settle(index)?;
        let worker = &mut self.workers[index];
        let source = std::mem::replace(&mut worker.source, Source::None);
        if self.core.queue.wake.waits() {
            return self.go_on_near(index, source);
        }
        let next = take_behind(&self.core, index, source, false);
        let next = next.or_else(|| take_ready(&self.core, index, &mut worker.cursor));
        let Some((source, entry)) = next else { return Ok(false) };
        worker.source = source;
        self.start(index, entry)?;
        Ok(true)
    }

    /// The steps of `InFlight::take_next` and `take_near`, if handlers usually wait.
    fn go_on_near(&mut self, index: usize, source: Source) -> Result<bool, TestCaseError> {
        let mut delivery = Delivery::empty(self.core.frame.telemetry.coarse.start());
        // For every second worker, the shard belongs to the worker's thread.
        let stays = index.is_multiple_of(2);
        let near = match source {
            Source::Lane { index: shard, id, run } => {
                take_behind_near(&self.core, index, (shard, id, run), stays, &mut delivery)
            }
            _ => NextNear::Unknown,
        };
        let taken = match near {
            NextNear::InDelivery(source) => Some(TakenNear::InDelivery(source)),
            NextNear::Nothing => take_ready_near(&self.core, index, &mut delivery),
            NextNear::Unknown => match take_behind(&self.core, index, source, stays) {
                Some((source, entry)) => Some(TakenNear::Entry(source, entry)),
                None => take_ready_near(&self.core, index, &mut delivery),
            },
        };
        match taken {
            None => return Ok(false),
            Some(TakenNear::Entry(source, entry)) => {
                self.workers[index].source = source;
                self.start(index, entry)?;
            }
            Some(TakenNear::InDelivery(source)) => {
                self.workers[index].source = source;
                let Some(message) = delivery.message.take() else { return Ok(false) };
                let (extra, urgent) = (delivery.extra.take(), delivery.class.is_urgent());
                let stamp = delivery.stamp;
                self.start(index, Entry { message, extra, key: None, hash: 0, urgent, stamp })?;
            }
        }
        Ok(true)
    }

    fn go_on_normal(&mut self, index: usize) -> Result<(), TestCaseError> {
        self.settle(index)?;
        let worker = &mut self.workers[index];
        let source = std::mem::replace(&mut worker.source, Source::None);
        release(&self.core.queue, index, source);
        let next = take_ready_normal(&self.core, index, &mut worker.cursor);
        let Some((source, entry)) = next else { return Ok(()) };
        worker.source = source;
        self.start(index, entry)
    }

    fn hurry(&mut self, index: usize) -> Result<(), TestCaseError> {
        self.settle(index)?;
        let own = match self.workers[index].source {
            Source::Head { index, .. } => Some(index),
            _ => None,
        };
        let Some((source, entry)) = take_ready_urgent(&self.core, index, own) else {
            return Ok(());
        };
        let left = std::mem::replace(&mut self.workers[index].source, source);
        release(&self.core.queue, index, left);
        self.start(index, entry)
    }

    fn start(&mut self, index: usize, entry: Queued<Nobody, K>) -> Result<(), TestCaseError> {
        count(&self.core.frame.membership.slots.at(index).counters.started);
        if let Some(key) = entry.message.0 {
            let owners = self.workers.iter().filter_map(|worker| worker.in_hand?.0);
            prop_assert!(owners.into_iter().all(|owner| owner != key), "key {key} in hand twice");
            let last = self.last.insert((key, entry.urgent), entry.message.1);
            prop_assert!(last.is_none_or(|last| last <= entry.message.1), "key {key} out of order");
        }
        let worker = &mut self.workers[index];
        worker.attempts = entry.extra.map_or(0, |extra| extra.attempts);
        worker.in_hand = Some(entry.message);
        if worker.attempts > 0 {
            self.core
                .frame
                .telemetry
                .counters
                .waiting
                .fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    }

    fn retry(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        let Some(message) = worker.in_hand.take() else { return };
        let mut extra = Extra::new(None);
        extra.attempts = worker.attempts + 1;
        extra.next.parked = true;
        let entry = Entry {
            message,
            extra: Some(extra),
            key: None,
            hash: 0,
            urgent: message.2.is_urgent(),
            stamp: Default::default(),
        };
        let source = std::mem::replace(&mut worker.source, Source::None);
        worker.source = park(&self.core, index, source, Deque::only(entry), Duration::ZERO);
    }

    fn release(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        if let Some((_, number, _)) = worker.in_hand.take() {
            self.done.insert(number);
        }
        let source = std::mem::replace(&mut worker.source, Source::None);
        release(&self.core.queue, index, source);
    }

    fn evict(&mut self) -> Result<(), TestCaseError> {
        let Some(entry) = evict(&self.core, 0) else { return Ok(()) };
        let waits = usize::from(entry.is_retry());
        self.core
            .frame
            .telemetry
            .counters
            .waiting
            .fetch_sub(waits, std::sync::atomic::Ordering::Relaxed);
        self.core.queue.permits.give(1, &self.core);
        let (_, number, _) = entry.message;
        prop_assert!(self.done.insert(number), "{number} was handled before");
        Ok(())
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Push(key, class) => self.push(key, class),
            Step::Wait(waits) => self.core.queue.wake.set_waits(waits),
            Step::GoOnNormal(worker) => self.go_on_normal(worker)?,
            Step::Hurry(worker) => self.hurry(worker)?,
            Step::GoOn(worker) => drop(self.go_on(worker)?),
            Step::Suspend(index) if self.workers[index].in_hand.is_some() => {
                let worker = &mut self.workers[index];
                worker.source = suspend(&self.core.queue, index, worker.source);
            }
            Step::Suspend(_) => {}
            Step::Retry(worker) => self.retry(worker),
            Step::Release(worker) => self.release(worker),
            Step::Tick => drop(self.core.queue.revoke_stuck_tokens()),
            Step::Evict => self.evict()?,
            Step::Due => drop(self.ring_next()),
        }
        Ok(())
    }

    /// Rings one alarm that is due. Returns false if there is none.
    fn ring_next(&self) -> bool {
        let alarm = self.core.frame.clock.pop_due(Instant::now());
        alarm.map(|alarm| self.core.ring(alarm)).is_some()
    }

    /// Lets all workers continue until none finds anything.
    fn finish(&mut self) -> Result<(), TestCaseError> {
        loop {
            let mut found = self.ring_next();
            for worker in 0..self.workers.len() {
                found |= self.go_on(worker)?;
            }
            if !found {
                return Ok(());
            }
        }
    }

    /// Nothing is left, and nothing is owned.
    fn check_empty(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.done.len() as u32, self.pushed, "messages were forgotten");
        prop_assert_eq!(self.core.depth(), 0);
        for shard in &self.core.queue.shards {
            let mut outbox = shard.outbox.lock();
            prop_assert!(outbox.token.is_none(), "a token without holder");
            prop_assert!(outbox.lanes.is_empty(), "a lane without owner");
            prop_assert!(!outbox.has_ready());
            prop_assert!(
                !self.core.queue.wake.has_urgent(),
                "workers would look for what is not there"
            );
            prop_assert!(!shard.inbox.lock().scheduled, "the next sender would not wake anybody");
        }
        let mut free = 0;
        while let Ok(taken) = self.core.queue.permits.try_take(1_001, &self.core) {
            free += taken;
        }
        prop_assert_eq!(free, 1_000, "a permit was lost, or given twice");
        Ok(())
    }
}

/// Takes these steps, and then handles everything that is left.
fn run<K: Keyed>(workers: usize, steps: &[Step]) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _inside = runtime.enter();
    let mut stage = Stage::<K>::new(workers);
    for step in steps {
        match *step {
            Step::GoOn(w)
            | Step::GoOnNormal(w)
            | Step::Hurry(w)
            | Step::Suspend(w)
            | Step::Retry(w)
            | Step::Release(w)
                if w >= workers => {}
            step => stage.take(step)?,
        }
    }
    stage.finish()?;
    stage.check_empty()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn k01_a_key_has_one_owner_and_its_order_whoever_moves_first(
        workers in 1..=WORKERS,
        steps in prop::collection::vec(step(), 0..300),
    ) {
        run::<Key>(workers, &steps)?;
    }

    #[test]
    fn k01_a_plain_key_has_one_owner_and_its_order_whoever_moves_first(
        workers in 1..=WORKERS,
        steps in prop::collection::vec(step(), 0..300),
    ) {
        run::<u8>(workers, &steps)?;
    }
}

/// A message of the finished key waited behind a lane that closed, and was lost.
#[test]
fn a_message_of_the_key_that_is_done_with_comes_next() {
    let [one, two] = [1, 2].map(|key| Step::Push(Some(key), Class::Normal));
    let steps = [Step::Wait(true), one, Step::GoOn(0), one, two, Step::GoOn(0)];
    assert!(run::<u8>(1, &steps).is_ok() && run::<Key>(1, &steps).is_ok());
}

/// Which lane is evicted from depends on the hashes, which differ from pool to pool.
#[test]
fn nobody_looks_for_an_urgent_message_that_has_made_room() {
    let push = |key, class| Step::Push(key, class);
    let (normal, urgent) = (Class::Normal, Class::Urgent);
    let steps = [
        push(None, normal),
        push(Some(0), normal),
        Step::Evict,
        push(Some(3), normal),
        Step::GoOn(1),
        push(Some(0), urgent),
        push(Some(0), normal),
        Step::Tick,
        Step::Evict,
        push(Some(3), normal),
        push(Some(1), normal),
        Step::Tick,
        Step::GoOn(0),
        push(Some(2), urgent),
        Step::Evict,
        Step::Evict,
        Step::Hurry(1),
        Step::Evict,
        Step::GoOn(1),
    ];
    for _ in 0..64 {
        run::<Key>(2, &steps).unwrap();
    }
}

#[test]
fn k02_a_crowd_of_suspended_keys_leaves_no_memory_behind() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _inside = runtime.enter();
    let mut stage = Stage::<Key>::new(1);
    stage.core.settings.key_of = None;
    for number in 0..100_000_u32 {
        let mut payload = Outgoing::new((None, number, Class::Normal), None);
        assert!(
            push_in_line(&stage.core, 0, &mut payload, (Some(Key(number as u8)), number), false)
                .is_ok()
        );
    }
    let mut outbox = stage.core.queue.shards[0].outbox.lock();
    assert!(stage.core.queue.shards[0].refill(&mut outbox));
    while let Some(entry) = outbox.pop_queue() {
        outbox.stand_aside(entry);
    }
    assert!(outbox.lanes.room() >= 100_000);
    while let Some(id) = outbox.next_ready() {
        assert!(outbox.pop_lane(id).is_some());
        assert!(outbox.lanes.close(id).is_some());
    }
    assert_eq!((outbox.lanes.room(), outbox.room_for_ready()), (0, 0));
    assert!(
        outbox.queue.room() <= 64 && stage.core.queue.shards[0].inbox.lock().queue.room() <= 64
    );
}

#[test]
fn k05_a_comparison_that_panics_loses_nothing() {
    struct Touchy;
    impl PartialEq for Touchy {
        fn eq(&self, _: &Self) -> bool {
            panic!("cannot be compared")
        }
    }
    impl Eq for Touchy {}
    let mut lanes = greenroom_queue::lanes::Lanes::<PoolPayload<(), (), ()>, Touchy>::new();
    let id = lanes.open(7, Touchy, greenroom_queue::lanes::LaneState::Retrying);
    assert_eq!(find_lane(lanes.candidates(7), Some(&Touchy)), Some(id));
}
