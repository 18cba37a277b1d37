//! Random programs on virtual time in which workers come and go: whatever senders, managers and
//! handlers do, each message has one outcome, the ledger adds up, the bound holds, and nothing
//! hangs.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    Actor, Address, Answer, Backoff, CallError, Context, DeadLetter, Delivery, Envelope,
    ExitReason, FailureTable, FinalAction, NotAccepted, Overflow, Pool, PoolAdmin, PoolStats,
    Restarts, Rule, Stop,
    policy::{About, Choice, Crew, LeastLoaded, Policy, RoundRobin},
    pool::Worker,
};
use proptest::prelude::*;
use tokio::time::Instant;

use crate::campaign;

#[derive(Debug, Clone, Copy)]
enum Deed {
    Return,
    Sleep(u64),
    Fail,
    Panic,
    /// Panics with the message in place, so a retry is possible.
    LookAndPanicOnce,
}

#[derive(Debug, Clone)]
struct Message {
    number: u32,
    deed: Deed,
}

/// The outcomes of messages, by number.
#[derive(Debug, Default)]
struct Seen {
    handled: Vec<u32>,
    attempted: HashSet<u32>,
    dead: Vec<u32>,
    /// Sends and calls that were refused with the message dropped.
    refused: Vec<u32>,
    accepted: Vec<u32>,
    violations: Vec<String>,
}

type Log = Arc<Mutex<Seen>>;

struct Clerk(Log);

impl Actor for Clerk {
    type Message = Message;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, message: Message, _cx: &mut Context<Self>) -> Result<u32, ()> {
        Ok(message.number)
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Message, u32, ()>,
        _cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, ()> {
        let Message { number, deed } = delivery.message().unwrap().clone();
        let first = self.0.lock().unwrap().attempted.insert(number);
        match deed {
            Deed::Sleep(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Deed::Fail => return Err(()),
            Deed::Panic => panic!("on purpose"),
            Deed::LookAndPanicOnce if first => panic!("on purpose, once"),
            Deed::LookAndPanicOnce | Deed::Return => {}
        }
        delivery.take();
        self.0.lock().unwrap().handled.push(number);
        Ok(Answer::Reply(number))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dispatching {
    Shared,
    Keyed,
    RoundRobin,
    LeastLoaded,
    /// Any possible choice, by a hash of the message.
    Custom,
    /// The same, but never holds a message.
    Strict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Full {
    Wait,
    Reject,
    DropNewest,
    DropOldest,
}

struct Whim {
    seed: u64,
    holds: bool,
}

impl Policy<Message> for Whim {
    fn choose(&self, message: &Message, _about: &About<'_>, crew: &Crew<'_>) -> Choice {
        let dice =
            (u64::from(message.number) ^ self.seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let place = (dice / 16) as usize;
        match dice % 16 {
            0 if self.holds => Choice::Hold,
            1 => Choice::Refuse,
            2 => Choice::Any,
            3 => Choice::At(place % 9),
            4..8 => Choice::Slot(place % 6),
            8 => Choice::Several(vec![place % 3, place % 5]),
            _ => Choice::At(place % crew.len()),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum How {
    Send,
    TrySend,
    Urgent,
    Call,
    /// Given up after a millisecond.
    Cancelled,
    CancelledCall,
    /// A permit that is kept for a while, and then used or dropped.
    Reserve(bool),
    Many(u8),
}

#[derive(Debug, Clone)]
enum Step {
    Work(How, Deed),
    /// To one particular worker.
    Direct(u8, How, Deed),
    Add(usize),
    Remove(usize),
    RemoveWorker(usize),
    Resize(usize),
    Enable(usize),
    /// The worker at this place, wrapping around.
    Kill(usize),
    /// The total bound.
    Capacity(usize),
    Wait(u64),
    Breathe,
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    /// Handles everything that can be handled; then the pool is checked and stopped.
    Quiet,
    Within(u64),
    Now,
}

#[derive(Debug, Clone)]
struct Program {
    workers: usize,
    mailbox: usize,
    capacity: Option<usize>,
    holds: bool,
    dispatching: Dispatching,
    full: Full,
    /// Attempts of a message that panics.
    attempts: u32,
    max_restarts: u32,
    seed: u64,
    steps: Vec<Step>,
    ending: Ending,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        5 => Just(Deed::Return),
        4 => (0u64..40).prop_map(Deed::Sleep),
        1 => Just(Deed::Fail),
        2 => Just(Deed::Panic),
        1 => Just(Deed::LookAndPanicOnce),
    ]
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![
        4 => Just(How::Send),
        4 => Just(How::TrySend),
        2 => Just(How::Urgent),
        3 => Just(How::Call),
        1 => Just(How::Cancelled),
        1 => Just(How::CancelledCall),
        1 => any::<bool>().prop_map(How::Reserve),
        1 => (1u8..6).prop_map(How::Many),
        // This many stay where they are, if there is room for all.
        1 => (16u8..30).prop_map(How::Many),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (how(), deed()).prop_map(|(how, deed)| Step::Work(how, deed)),
        6 => (any::<u8>(), how(), deed()).prop_map(|(who, how, deed)| Step::Direct(who, how, deed)),
        1 => (0usize..4).prop_map(Step::Add),
        1 => (0usize..4).prop_map(Step::Remove),
        1 => (0usize..6).prop_map(Step::RemoveWorker),
        1 => (0usize..6).prop_map(Step::Resize),
        1 => (0usize..6).prop_map(Step::Enable),
        2 => (0usize..6).prop_map(Step::Kill),
        1 => (1usize..14).prop_map(Step::Capacity),
        1 => (20usize..60).prop_map(Step::Capacity),
        2 => (0u64..60).prop_map(Step::Wait),
        2 => Just(Step::Breathe),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    use Dispatching::*;
    let dispatching = prop_oneof![
        Just(Shared),
        Just(Keyed),
        Just(RoundRobin),
        Just(LeastLoaded),
        Just(Custom),
        Just(Strict)
    ];
    let full = prop_oneof![
        Just(Full::Wait),
        Just(Full::Reject),
        Just(Full::DropNewest),
        Just(Full::DropOldest)
    ];
    let capacity = prop_oneof![4 => 1usize..12, 1 => 20usize..60];
    let size = (0usize..5, 1usize..5, prop::option::of(capacity), any::<bool>());
    let failures = (prop_oneof![Just(1u32), Just(3)], 0u32..3);
    let ending = prop_oneof![
        3 => Just(Ending::Quiet),
        2 => (0u64..100).prop_map(Ending::Within),
        1 => Just(Ending::Now),
    ];
    let steps = prop::collection::vec(step(), 0..60);
    (size, dispatching, full, failures, any::<u64>(), steps, ending).prop_map(
        |(size, dispatching, full, (attempts, max_restarts), seed, steps, ending)| {
            let (workers, mailbox, capacity, holds) = size;
            Program {
                workers,
                mailbox,
                capacity,
                holds,
                dispatching,
                full,
                attempts,
                max_restarts,
                seed,
                steps,
                ending,
            }
        },
    )
}

async fn spawn(program: &Program, log: &Log) -> Pool<Clerk> {
    let (actors, dead) = (log.clone(), log.clone());
    let row = match program.attempts {
        1 => Rule::Once(FinalAction::DeadLetter),
        attempts => Rule::Retry {
            attempts,
            backoff: match program.seed & 32 {
                0 => Backoff::new(Duration::from_millis(10), Duration::from_millis(100)),
                _ => Backoff::new(Duration::ZERO, Duration::ZERO),
            },
            finally: FinalAction::DeadLetter,
        },
    };
    let builder = Pool::new(move |_slot| Clerk(actors.clone()))
        .workers(program.workers)
        .mailbox(program.mailbox)
        .seed(program.seed)
        .quick_handlers(program.seed & 8 != 0)
        .overflow(match program.full {
            Full::Wait => Overflow::Wait,
            Full::Reject => Overflow::Reject,
            Full::DropNewest => Overflow::DropNewest,
            Full::DropOldest => Overflow::DropOldest,
        })
        .retry_with(Message::clone, FailureTable::all(row))
        .restarts(Restarts { max: program.max_restarts, ..Restarts::default() })
        .on_dead_letter(move |letter: DeadLetter<Message, ()>| {
            dead.lock().unwrap().dead.push(letter.message.unwrap().number);
        });
    let builder = match program.capacity {
        Some(capacity) => builder.capacity(capacity),
        None => builder,
    };
    let builder = if program.holds { builder.hold_when_empty() } else { builder };
    let seed = program.seed;
    match program.dispatching {
        Dispatching::Shared => builder.spawn().await,
        Dispatching::Keyed => builder.ordered_by(|message| message.number % 3).spawn().await,
        Dispatching::RoundRobin => builder.dispatch(RoundRobin::new()).spawn().await,
        Dispatching::LeastLoaded => builder.dispatch(LeastLoaded::seeded(seed)).spawn().await,
        Dispatching::Custom => builder.dispatch(Whim { seed, holds: true }).spawn().await,
        Dispatching::Strict => builder.dispatch(Whim { seed, holds: false }).spawn().await,
    }
    .unwrap()
}

/// One sender at work, until it is done.
async fn work(address: Address<Message, u32, ()>, how: How, message: Message, log: Log) {
    let number = message.number;
    let note = |accepted: Result<(), NotAccepted>| {
        let mut seen = log.lock().unwrap();
        match accepted {
            Ok(()) => seen.accepted.push(number),
            Err(_) => seen.refused.push(number),
        }
    };
    let a_moment = Duration::from_millis(1);
    match how {
        How::Send => note(address.send(message).await.map_err(|e| e.without_message())),
        How::TrySend => note(address.try_send(message).map_err(|e| e.without_message())),
        How::Urgent => {
            let sent = address.send_with(message, Envelope::urgent()).await;
            note(sent.map_err(|e| e.without_message()));
        }
        How::Cancelled => {
            if let Ok(sent) = tokio::time::timeout(a_moment, address.send(message)).await {
                note(sent.map_err(|e| e.without_message()));
            } else {
                note(Err(NotAccepted::Full));
            }
        }
        How::Call => match address.call(message).await {
            Ok(reply) if reply == number => {}
            Ok(_) => log.lock().unwrap().violations.push("the reply of another".to_owned()),
            Err(CallError::Dropped) | Err(_) => {}
        },
        How::CancelledCall => {
            let _ = tokio::time::timeout(a_moment, address.call(message)).await;
        }
        How::Reserve(used) => {
            let Ok(permit) = address.reserve().await else { return note(Err(NotAccepted::Full)) };
            tokio::time::sleep(Duration::from_millis(7)).await;
            match used {
                true => note(permit.send(message).map_err(|e| e.without_message())),
                false => note(Err(NotAccepted::Full)),
            }
        }
        How::Many(count) => {
            // Of many, most just return: a crew could not handle dozens of panics before the
            // program's end.
            let deed = |copy: u8| if copy < 6 { message.deed } else { Deed::Return };
            let copies =
                |copy: u8| Message { number: number + 1_000 * u32::from(copy), deed: deed(copy) };
            let mut messages = (0..count).map(copies).collect();
            let _ = address.send_many(&mut messages).await;
            let left: HashSet<u32> = messages.iter().map(|message| message.number).collect();
            let mut seen = log.lock().unwrap();
            for copy in 0..count {
                let number = number + 1_000 * u32::from(copy);
                match left.contains(&number) {
                    true => seen.refused.push(number),
                    false => seen.accepted.push(number),
                }
            }
        }
    }
}

/// The most that may be queued. A pool that has shrunk keeps the messages that it had accepted, and
/// honours earlier permits.
struct Bound {
    most: usize,
    changed: Instant,
}

/// Longer than any permit is kept here.
const PERMITS: Duration = Duration::from_millis(10);

impl Bound {
    fn changes(&mut self, capacity: usize) {
        self.most = self.most.max(capacity);
        self.changed = Instant::now();
    }

    fn check(&mut self, stats: &PoolStats) -> Result<(), TestCaseError> {
        let queued = stats.queued as usize;
        self.most = self.most.max(stats.capacity);
        prop_assert!(queued <= self.most, "{queued} of {}: {stats:?}", self.most);
        if self.changed.elapsed() > PERMITS {
            self.most = queued.max(stats.capacity);
        }
        Ok(())
    }
}

fn apply(admin: &PoolAdmin<Clerk>, step: &Step) {
    let begun = match *step {
        Step::Add(workers) => admin.add(workers),
        Step::Remove(workers) => admin.remove(workers),
        Step::RemoveWorker(slot) => admin.remove_worker(slot),
        Step::Resize(workers) => admin.resize(workers),
        Step::Enable(slot) => admin.enable(slot),
        Step::Capacity(messages) => return drop(admin.set_capacity(messages)),
        _ => return,
    };
    drop(begun);
}

/// On virtual time, longer than all retries and restarts take.
const AN_HOUR: Duration = Duration::from_secs(3600);

async fn run(program: Program) -> Result<(), TestCaseError> {
    let log = Log::default();
    let pool = spawn(&program, &log).await;
    let mut senders = tokio::task::JoinSet::new();
    let mut crew: Vec<Worker<Message, u32, ()>> = pool.admin().workers();
    let mut bound = Bound { most: pool.stats().capacity, changed: Instant::now() };
    let mut retries = false;
    for (number, step) in program.steps.iter().enumerate() {
        let message = |deed| Message { number: number as u32, deed };
        match *step {
            Step::Work(how, deed) => {
                senders.spawn(work(pool.address(), how, message(deed), log.clone()));
            }
            Step::Direct(who, how, deed) => {
                // Some are addresses of workers that have gone.
                crew.extend(pool.admin().workers());
                crew.truncate(40);
                let Some(one) = crew.get(usize::from(who) % crew.len().max(1)) else { continue };
                senders.spawn(work(one.address().clone(), how, message(deed), log.clone()));
            }
            Step::Kill(place) => {
                let workers = pool.admin().workers();
                if let Some(worker) = workers.get(place % workers.len().max(1)) {
                    worker.erase().exit(ExitReason::Killed);
                }
            }
            Step::Wait(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Step::Breathe => tokio::task::yield_now().await,
            ref change => {
                bound.changes(pool.stats().capacity);
                apply(&pool.admin(), change);
            }
        }
        let stats = pool.stats();
        prop_assert!(stats.ledger_holds(), "{stats:?}");
        retries |= stats.waiting > 0 || stats.retries > 0;
        if !retries {
            bound.check(&stats)?;
        }
    }
    if let Ending::Quiet = program.ending {
        come_to_rest(&pool, &program).await?;
    }
    let stop = match program.ending {
        Ending::Quiet => Stop::within(AN_HOUR),
        Ending::Within(ms) => Stop::within(Duration::from_millis(ms)),
        Ending::Now => Stop::Now,
    };
    let report = pool.stop(stop).await;
    let ended =
        tokio::time::timeout(AN_HOUR, async { while senders.join_next().await.is_some() {} });
    prop_assert!(ended.await.is_ok(), "a sender hangs: {:?}", pool.stats());
    let stats = pool.stats();
    prop_assert!(stats.ledger_holds() && stats.accepted == stats.settled(), "{stats:?}");
    prop_assert_eq!(stats.returned as usize, report.left_over.len(), "{:?}", stats);
    prop_assert!(report.wedged.is_empty());
    check_outcomes(&log, report.left_over, &stats)
}

/// Handles everything that can be handled, with workers that no longer panic.
async fn come_to_rest(pool: &Pool<Clerk>, program: &Program) -> Result<(), TestCaseError> {
    tokio::time::sleep(AN_HOUR).await;
    let stats = pool.stats();
    prop_assert!(stats.ledger_holds(), "{stats:?}");
    for round in 0..40 {
        for slot in 0..16 {
            let _ = pool.admin().enable(slot);
        }
        let change = pool.admin().resize(2 + round % 2).unwrap();
        let report = change.done(AN_HOUR).await;
        prop_assert!(report.is_complete(), "{report:?}");
        tokio::time::sleep(AN_HOUR).await;
    }
    let stats = pool.stats();
    let holds = program.dispatching == Dispatching::Custom;
    prop_assert!(holds || stats.accepted == stats.settled(), "something is left: {stats:?}");
    prop_assert!(stats.accepted == stats.settled() + stats.queued, "something is left: {stats:?}");
    // There may be more held messages than a pool that has shrunk accepts.
    let room = stats.capacity.saturating_sub(stats.queued as usize);
    let permits: Vec<_> = (0..room).map(|_| pool.try_reserve()).collect();
    prop_assert!(permits.iter().all(Result::is_ok), "a permit was lost: {stats:?}");
    prop_assert_eq!(
        pool.try_reserve().err(),
        Some(NotAccepted::Full),
        "a permit came from nowhere"
    );
    drop(permits);
    for worker in pool.admin().workers() {
        let room = program.mailbox.min(room);
        let permits: Vec<_> = (0..room).map(|_| worker.try_reserve()).collect();
        prop_assert!(permits.iter().all(Result::is_ok), "a place in a mailbox was lost");
        prop_assert!(worker.try_reserve().is_err(), "a place came from nowhere");
    }
    Ok(())
}

fn check_outcomes(
    log: &Log,
    left_over: Vec<Message>,
    stats: &PoolStats,
) -> Result<(), TestCaseError> {
    let seen = log.lock().unwrap();
    prop_assert_eq!(&seen.violations, &Vec::<String>::new());
    let left_over = left_over.iter().map(|message| message.number);
    let mut outcomes: HashMap<u32, u32> = HashMap::new();
    let ends = seen.handled.iter().chain(&seen.dead).copied().chain(left_over);
    ends.for_each(|number| *outcomes.entry(number).or_default() += 1);
    prop_assert!(outcomes.values().all(|times| *times == 1), "two outcomes: {outcomes:?}");
    for number in &seen.accepted {
        prop_assert!(outcomes.contains_key(number), "{number} has vanished: {stats:?}");
    }
    for number in &seen.refused {
        prop_assert!(!outcomes.contains_key(number), "{number} was refused and accepted");
    }
    prop_assert_eq!(stats.handled as usize, seen.handled.len());
    prop_assert_eq!(stats.dead_lettered as usize, seen.dead.len());
    prop_assert_eq!(stats.accepted as usize, outcomes.len());
    Ok(())
}

proptest! {
    #![proptest_config(campaign::config())]

    #[test]
    fn p26_p15_every_message_has_one_outcome_while_workers_come_and_go(program in program()) {
        let ended = campaign::run(1_000 * AN_HOUR, run(program));
        ended.expect("the program did not end: a wake-up or an outcome was lost")?;
    }
}
