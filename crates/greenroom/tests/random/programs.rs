//! Random programs on virtual time: whatever handlers, callers and stops do, the ledger adds up, no
//! two messages of a key are in hand at once, keys keep their order, the bound holds, and withdrawn
//! messages are not started.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Actor, Answer, Backoff, CallError, Class, Context, DeadLetter, Delivery, Envelope, ExitReason,
    FailureAction, FailureTable, FinalAction, NotAccepted, Pool, PoolBuilder, PoolStats, Restarts,
    Rule, Stop,
    failure::{Cause, FailedAttempt},
};
use proptest::prelude::*;

use crate::campaign;

#[derive(Debug, Clone, Copy)]
enum Deed {
    Return,
    Sleep(u64),
    YieldTwice,
    Fail(u8),
    FailOnce(u8),
    Panic,
    PanicOnce,
    /// Leaves the message in place and fails, the first time only.
    LookAndFailOnce(u8),
    /// Leaves the message in place and panics.
    LookAndPanic,
}

/// The scripted policy's verdict on an error: the handler's wish (above these: a retry), plus
/// [`ONCE`] if the next attempt will work.
const RETURN: u8 = 0;
const BURY: u8 = 1;
const DROP: u8 = 2;
const ONCE: u8 = 4;

fn scripted(attempt: FailedAttempt<'_, u8>, chance: f64) -> FailureAction {
    let after = if chance < 0.25 { 0.0 } else { chance };
    let after = Duration::from_millis(10).mul_f64(after);
    match attempt.cause {
        Cause::Error(wish) if wish % ONCE == RETURN => FailureAction::Return,
        Cause::Error(wish) if wish % ONCE == BURY => FailureAction::DeadLetter,
        Cause::Error(wish) if wish % ONCE == DROP => FailureAction::Drop,
        Cause::Error(wish) if *wish >= ONCE => FailureAction::Retry { after, counted: false },
        _ if attempt.failures < 3 => FailureAction::Retry { after, counted: true },
        _ => FailureAction::Drop,
    }
}

/// The policy that decides on failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    Plain,
    Retries,
    Scripted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Everything is handled; then the pool is checked and stopped.
    Quiet,
    Within(u64),
    Now,
    /// A graceful stop with this deadline, and a more urgent one after a while.
    Both(u64, u64),
    /// The pool is dropped.
    Dropped,
}

#[derive(Debug, Clone)]
struct Message {
    key: Option<u8>,
    number: u32,
    class: Class,
    /// Sent in turn: other tasks may be overtaken between their permit and their place in line.
    in_turn: bool,
    /// The number of revocations before it was sent.
    edition: u32,
    deed: Deed,
}

#[derive(Debug, Default)]
struct Seen {
    in_hand: HashSet<u8>,
    last_started: HashMap<(u8, Class), u32>,
    attempted: HashSet<u32>,
    done: HashSet<u32>,
    withdrawn: HashSet<u32>,
    violations: Vec<String>,
}

/// A key with few hash values.
#[derive(PartialEq, Eq)]
struct Key(u8, u8);

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.0 % self.1).hash(state);
    }
}

struct Worker(Arc<Mutex<Seen>>, Arc<AtomicU32>);

/// Marks the key as in hand until the handler is done, panics, or is dropped.
struct InHand(Arc<Mutex<Seen>>, Option<u8>);

impl InHand {
    fn begin(seen: &Arc<Mutex<Seen>>, message: &Message) -> (Self, bool) {
        let mut log = seen.lock().unwrap();
        let first = log.attempted.insert(message.number);
        if log.withdrawn.contains(&message.number) {
            log.violations.push(format!("{message:?} was withdrawn"));
        }
        if let Some(key) = message.key {
            if !log.in_hand.insert(key) {
                log.violations.push(format!("key {key} is in hand twice"));
            }
            let last = match message.in_turn {
                true => log.last_started.insert((key, message.class), message.number),
                false => None,
            };
            if last.is_some_and(|last| last > message.number) {
                let class = message.class;
                log.violations
                    .push(format!("key {key}, {class:?}: {} after {last:?}", message.number));
            }
        }
        (Self(seen.clone(), message.key), first)
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        if let Some(key) = self.1 {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).in_hand.remove(&key);
        }
    }
}

impl Actor for Worker {
    type Message = Message;
    type Reply = u32;
    type Error = u8;

    /// Not always true: a message that was taken out leaves a letter without it.
    const KEEPS_MESSAGE: bool = true;

    async fn handle(&mut self, message: Message, _cx: &mut Context<Self>) -> Result<u32, u8> {
        let (in_hand, first) = InHand::begin(&self.0, &message);
        match message.deed {
            Deed::Return => {}
            Deed::Sleep(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Deed::YieldTwice => {
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
            }
            Deed::Fail(wish) => return Err(wish),
            Deed::FailOnce(wish) if first => return Err(wish + ONCE),
            Deed::LookAndFailOnce(_) | Deed::LookAndPanic => {}
            Deed::Panic => panic!("on purpose"),
            Deed::PanicOnce if first => panic!("on purpose, once"),
            Deed::FailOnce(_) | Deed::PanicOnce => {}
        }
        drop(in_hand);
        self.0.lock().unwrap().done.insert(message.number);
        Ok(message.number)
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Message, u32, u8>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, u8> {
        let message = delivery.message().unwrap();
        if message.edition < self.1.load(Ordering::SeqCst) {
            self.0.lock().unwrap().violations.push(format!("{message:?} was revoked"));
        }
        if message.class != delivery.class() {
            self.0.lock().unwrap().violations.push(format!("{message:?} has changed its class"));
        }
        let new = !self.0.lock().unwrap().attempted.contains(&message.number);
        match message.deed {
            Deed::LookAndFailOnce(wish) if new => {
                let (_in_hand, _) = InHand::begin(&self.0, message);
                tokio::task::yield_now().await;
                Err(wish + ONCE)
            }
            Deed::LookAndPanic => {
                let (_in_hand, _) = InHand::begin(&self.0, message);
                panic!("on purpose, with the message in place")
            }
            _ => self.handle(delivery.take(), cx).await.map(Answer::Reply),
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Send(Option<u8>, Deed),
    TrySend(Option<u8>, Deed),
    Call(Option<u8>, Deed),
    AbandonedCall(Option<u8>, Deed),
    /// The worker at this place, wrapping around.
    Kill(usize),
    /// Every fifth number from this one on.
    Withdraw(u32),
    /// All messages sent before.
    Revoke,
    Wait(u64),
    Breathe,
}

#[derive(Debug, Clone)]
struct Program {
    workers: usize,
    capacity: usize,
    keyed: bool,
    policy: Policy,
    seed: u64,
    /// Keys have this many hash values, so that different keys collide.
    hashes: u8,
    steps: Vec<(Step, Class)>,
    ending: Ending,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => Just(Deed::Return),
        3 => (0u64..50).prop_map(Deed::Sleep),
        2 => Just(Deed::YieldTwice),
        1 => (0u8..4).prop_map(Deed::Fail),
        2 => (0u8..4).prop_map(Deed::FailOnce),
        1 => (0u8..4).prop_map(Deed::LookAndFailOnce),
        1 => Just(Deed::LookAndPanic),
        1 => Just(Deed::Panic),
        1 => Just(Deed::PanicOnce),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let key = || prop_oneof![1 => Just(None), 6 => (0u8..4).prop_map(Some), 2 => any::<u8>().prop_map(Some)];
    prop_oneof![
        6 => (key(), deed()).prop_map(|(key, deed)| Step::Send(key, deed)),
        3 => (key(), deed()).prop_map(|(key, deed)| Step::TrySend(key, deed)),
        2 => (key(), deed()).prop_map(|(key, deed)| Step::Call(key, deed)),
        1 => (key(), deed()).prop_map(|(key, deed)| Step::AbandonedCall(key, deed)),
        2 => (0usize..6).prop_map(Step::Kill),
        2 => (0u32..5).prop_map(Step::Withdraw),
        1 => Just(Step::Revoke),
        1 => (0u64..60).prop_map(Step::Wait),
        1 => Just(Step::Breathe),
    ]
}

fn class() -> impl Strategy<Value = Class> {
    prop_oneof![3 => Just(Class::Normal), 1 => Just(Class::Urgent)]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        4 => Just(Ending::Quiet),
        4 => (0u64..100).prop_map(Ending::Within),
        1 => Just(Ending::Now),
        2 => (0u64..100, 0u64..100).prop_map(|(within, after)| Ending::Both(within, after)),
        1 => Just(Ending::Dropped),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    (
        prop_oneof![Just(1usize), 2usize..6],
        1usize..20,
        any::<bool>(),
        prop_oneof![Just(Policy::Plain), Just(Policy::Retries), Just(Policy::Scripted)],
        any::<u64>(),
        prop_oneof![Just(1u8), Just(3), Just(255)],
        prop::collection::vec((step(), class()), 0..60),
        ending(),
    )
        .prop_map(|(workers, capacity, keyed, policy, seed, hashes, mut steps, ending)| {
            if seed & (8 | 64) == 0 {
                steps.splice(..0, handlers_that_wait(workers));
            }
            Program { workers, capacity, keyed, policy, seed, hashes, steps, ending }
        })
}

/// Enough that the pool takes this for usual.
fn handlers_that_wait(workers: usize) -> impl Iterator<Item = (Step, Class)> {
    let key = |n: usize| (!n.is_multiple_of(7)).then_some((n % 5) as u8);
    (0..20 * workers).map(move |n| (Step::Send(key(n), Deed::YieldTwice), Class::Normal))
}

#[derive(Default)]
struct Outcomes {
    withdrawn: usize,
    accepted: u64,
    rejected: u64,
    resolved: usize,
    calls: usize,
    dead: Arc<Mutex<Vec<Option<u32>>>>,
}

impl Program {
    /// Messages are checked before they are started.
    fn revokes(&self) -> bool {
        self.seed & 128 != 0
    }
}

fn builder(
    program: &Program,
    seen: &Arc<Mutex<Seen>>,
    outcomes: &Outcomes,
    edition: &Arc<AtomicU32>,
) -> PoolBuilder<Worker> {
    let (seen, dead) = (seen.clone(), outcomes.dead.clone());
    let (of_workers, current) = (edition.clone(), edition.clone());
    let builder = Pool::new(move |_slot| Worker(seen.clone(), of_workers.clone()));
    let builder = match program.revokes() {
        true => builder
            .starts_if(move |message: &Message| message.edition >= current.load(Ordering::SeqCst)),
        false => builder,
    };
    let builder = builder
        .workers(program.workers)
        .capacity(program.capacity)
        .seed(program.seed)
        .quick_handlers(program.seed & 8 != 0)
        .restarts(Restarts { max: 1_000, ..Restarts::default() })
        .on_dead_letter(move |letter: DeadLetter<Message, u8>| {
            dead.lock().unwrap().push(letter.message.map(|message| message.number));
        });
    let backoff = match program.seed & 32 {
        0 => Backoff::new(Duration::from_millis(10), Duration::from_millis(100)),
        _ => Backoff::new(Duration::ZERO, Duration::ZERO),
    };
    let row = Rule::Retry { attempts: 3, backoff, finally: FinalAction::Return };
    match (program.policy, program.seed % 2) {
        (Policy::Plain, _) => builder,
        (Policy::Retries, _) => builder.retry_with(Message::clone, FailureTable::all(row)),
        (Policy::Scripted, 0) => builder.failure_policy(scripted),
        (Policy::Scripted, _) => builder.retry_with(Message::clone, scripted),
    }
}

/// On virtual time, longer than all retries and restarts take.
const A_DAY: Duration = Duration::from_secs(24 * 3600);

/// Nothing happens any more: nothing is owned, and no caller is forgotten.
fn check_quiet(pool: &Pool<Worker>, program: &Program) -> Result<(), TestCaseError> {
    let stats = pool.stats();
    prop_assert_eq!(stats.accepted, stats.settled(), "{:?}", stats);
    prop_assert_eq!((stats.idle, stats.live), (program.workers, program.workers));
    let permits: Vec<_> = (0..program.capacity).map(|_| pool.try_reserve()).collect();
    prop_assert!(permits.iter().all(Result::is_ok), "a permit was lost");
    prop_assert_eq!(
        pool.try_reserve().err(),
        Some(NotAccepted::Full),
        "a permit came from nowhere"
    );
    Ok(())
}

struct Stopped {
    left_over: Vec<Message>,
    wedged: Vec<String>,
    stats: PoolStats,
}

async fn stop(pool: &Pool<Worker>, ending: Ending) -> Stopped {
    let (first, second) = match ending {
        Ending::Quiet | Ending::Dropped => (Stop::within(A_DAY), None),
        Ending::Within(ms) => (Stop::within(Duration::from_millis(ms)), None),
        Ending::Now => (Stop::Now, None),
        Ending::Both(within, after) => (Stop::within(Duration::from_millis(within)), Some(after)),
    };
    let second = async {
        let after = Duration::from_millis(second?);
        tokio::time::sleep(after).await;
        Some(pool.stop(Stop::Now).await)
    };
    let (first, second) = tokio::join!(pool.stop(first), second);
    let (mut left_over, mut wedged) = (first.left_over, first.wedged);
    if let Some(second) = second {
        left_over.extend(second.left_over);
        wedged.extend(second.wedged);
    }
    Stopped { left_over, wedged, stats: pool.stats() }
}

/// Withdraws the selected waiting messages, and checks that each caller is notified once.
fn withdraw(pool: &Pool<Worker>, seen: &Mutex<Seen>, chosen: impl Fn(&Message) -> bool) -> usize {
    let mut before = HashSet::new();
    let withdrawn = pool.admin().withdraw(|message| {
        let is_new = before.insert(message.number);
        let chosen = chosen(message);
        if chosen && (!is_new || !seen.lock().unwrap().withdrawn.insert(message.number)) {
            seen.lock().unwrap().violations.push(format!("{message:?} was withdrawn twice"));
        }
        chosen
    });
    let stats = pool.stats();
    if !stats.ledger_holds() {
        seen.lock().unwrap().violations.push(format!("{stats:?}"));
    }
    withdrawn
}

async fn run(program: Program) -> Result<(), TestCaseError> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut outcomes = Outcomes::default();
    let edition = Arc::new(AtomicU32::new(0));
    let builder = builder(&program, &seen, &outcomes, &edition);
    let pool = if program.keyed {
        let hashes = program.hashes;
        builder
            .ordered_by_opt(move |message: &Message| message.key.map(|key| Key(key, hashes)))
            .spawn()
            .await
    } else {
        builder.spawn().await
    }
    .unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for (number, (step, class)) in program.steps.iter().enumerate() {
        let (class, envelope) = (*class, Envelope::new().class(*class));
        // Without an order, two messages of a key may be in hand at once.
        let message = |key: Option<u8>, deed| {
            let ordered = program.keyed || program.workers == 1 && program.policy == Policy::Plain;
            Message {
                key: key.filter(|_| ordered),
                number: number as u32,
                class,
                in_turn: true,
                edition: edition.load(Ordering::SeqCst),
                deed,
            }
        };
        match *step {
            Step::Send(key, deed) => {
                match class {
                    Class::Normal => pool.send(message(key, deed)).await.unwrap(),
                    Class::Urgent => pool.send_with(message(key, deed), envelope).await.unwrap(),
                }
                outcomes.accepted += 1;
            }
            Step::TrySend(key, deed) => match pool.try_send_with(message(key, deed), envelope) {
                Ok(()) => outcomes.accepted += 1,
                Err(_) => outcomes.rejected += 1,
            },
            Step::Call(key, deed) => {
                let (address, mut message) = (pool.address(), message(key, deed));
                message.in_turn = false;
                outcomes.calls += 1;
                calls.spawn(async move { address.call_with(message, envelope).await });
                tokio::task::yield_now().await;
            }
            Step::AbandonedCall(key, deed) => {
                let call = pool.call_with(message(key, deed), envelope);
                let _ = tokio::time::timeout(Duration::from_millis(1), call).await;
            }
            Step::Kill(place) => {
                let workers = pool.admin().workers();
                workers[place % workers.len()].erase().exit(ExitReason::Killed);
            }
            Step::Withdraw(first) => {
                outcomes.withdrawn += withdraw(&pool, &seen, |message| message.number % 5 == first);
            }
            Step::Revoke if program.revokes() => {
                edition.fetch_add(1, Ordering::SeqCst);
                outcomes.withdrawn += withdraw(&pool, &seen, |_| true);
                let stats = pool.stats();
                prop_assert_eq!((stats.queued, stats.waiting), (0, 0), "nothing of it waits");
            }
            Step::Revoke => {}
            Step::Wait(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Step::Breathe => tokio::task::yield_now().await,
        }
        let stats = pool.stats();
        prop_assert!(stats.queued <= program.capacity as u64, "{stats:?}");
        prop_assert!(stats.in_hand <= program.workers as u64, "{stats:?}");
        prop_assert!(stats.ledger_holds(), "{stats:?}");
    }
    if program.ending == Ending::Dropped {
        drop(pool);
        while let Some(call) = calls.join_next().await {
            let answer = call.unwrap();
            prop_assert!(!matches!(answer, Err(CallError::Stopped)), "a message was not handled");
        }
        tokio::time::sleep(A_DAY).await;
        prop_assert_eq!(Arc::strong_count(&seen), 1, "the pool is still there");
        return Ok(());
    }
    if program.ending == Ending::Quiet {
        tokio::time::sleep(A_DAY).await;
        check_quiet(&pool, &program)?;
    }
    let report = stop(&pool, program.ending).await;
    while let Some(call) = calls.join_next().await {
        match call.unwrap() {
            Err(CallError::Dropped) if program.policy != Policy::Scripted => {
                prop_assert!(false, "a call ended as dropped")
            }
            _ => outcomes.resolved += 1,
        }
    }
    prop_assert_eq!(outcomes.resolved, outcomes.calls);
    let stats = report.stats;
    prop_assert!(stats.ledger_holds() && stats.accepted == stats.settled(), "{stats:?}");
    prop_assert!(stats.accepted >= outcomes.accepted);
    prop_assert_eq!(stats.returned as usize, report.left_over.len());
    prop_assert_eq!(stats.dead_lettered as usize, outcomes.dead.lock().unwrap().len());
    prop_assert!(report.wedged.is_empty());
    if program.ending == Ending::Quiet {
        prop_assert!(report.left_over.is_empty());
    }
    let seen = seen.lock().unwrap();
    prop_assert_eq!(&seen.violations, &Vec::<String>::new());
    prop_assert_eq!(outcomes.withdrawn, seen.withdrawn.len());
    if program.revokes() {
        prop_assert!(stats.withdrawn as usize >= outcomes.withdrawn);
    } else {
        prop_assert_eq!(stats.withdrawn as usize, outcomes.withdrawn);
    }
    prop_assert_eq!(stats.handled as usize, seen.done.len());
    let returned: HashSet<u32> = report.left_over.iter().map(|message| message.number).collect();
    prop_assert!(returned.is_disjoint(&seen.done) && returned.is_disjoint(&seen.withdrawn));
    Ok(())
}

proptest! {
    #![proptest_config(campaign::config())]

    #[test]
    fn p26_k01_every_message_has_one_outcome_and_keys_keep_their_order(program in program()) {
        let ended = campaign::run(Duration::from_secs(100_000), run(program));
        ended.expect("the program did not end: a wake-up or an outcome was lost")?;
    }
}
