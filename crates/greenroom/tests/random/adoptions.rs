//! Random programs on virtual time with pools that adopt pools, which stop, shrink, refuse and are
//! adopted by one another, and with messages that are retried at once: each message has one
//! outcome, all ledgers add up, and no caller waits forever.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    Address, Backoff, DeadLetter, Delivery, Envelope, ExitReason, FailureTable, FinalAction,
    Restarts, Rule,
    policy::{About, Choice, Crew, LeastLoaded, Policy, RoundRobin},
    pool::AdminError,
    prelude::*,
};
use proptest::{prelude::*, strategy::Strategy};
use tokio::task::JoinSet;

use crate::campaign;

/// A message: its number, how often it fails, and how long it takes.
#[derive(Debug, Clone, Copy)]
struct Job {
    number: u32,
    fails: u32,
    panics: bool,
    ms: u64,
}

/// The outcomes of each message.
#[derive(Debug, Default)]
struct Seen {
    attempts: HashMap<u32, u32>,
    outcomes: HashMap<u32, Vec<&'static str>>,
}

#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Seen>>);

impl Log {
    fn ends(&self, number: u32, how: &'static str) {
        self.0.lock().unwrap().outcomes.entry(number).or_default().push(how);
    }
}

struct Clerk(Log);

impl Actor for Clerk {
    type Message = Job;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, job: Job, _cx: &mut Context<Self>) -> Result<u32, ()> {
        Ok(job.number)
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Job, u32, ()>,
        _cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, ()> {
        let job = *delivery.message().unwrap();
        let attempt = {
            let mut seen = self.0.0.lock().unwrap();
            let attempts = seen.attempts.entry(job.number).or_default();
            *attempts += 1;
            *attempts
        };
        if job.ms > 0 {
            tokio::time::sleep(Duration::from_millis(job.ms)).await;
        }
        if attempt <= job.fails {
            assert!(!job.panics, "on purpose");
            return Err(());
        }
        delivery.take();
        self.0.ends(job.number, "handled");
        Ok(Answer::Reply(job.number))
    }
}

/// Refuses two of three messages.
struct Choosy;

impl Policy<Job> for Choosy {
    fn choose(&self, job: &Job, _about: &About<'_>, crew: &Crew<'_>) -> Choice {
        match job.number % 3 {
            0 => Choice::At(job.number as usize % crew.len()),
            _ => Choice::Refuse,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Shared,
    RoundRobin,
    LeastLoaded,
    Choosy,
    /// Every message would need a key, but none has one.
    Keyed,
    /// One actor.
    Single,
}

#[derive(Debug, Clone)]
struct Plan {
    kind: Kind,
    workers: usize,
    capacity: usize,
    holds: bool,
}

#[derive(Debug, Clone)]
enum Step {
    Send(usize, Job),
    Urgent(usize, Job),
    Call(usize, Job),
    /// The first adopts the second, if it can.
    Adopt(usize, usize),
    /// The first adopts a worker of the second.
    AdoptWorker(usize, usize),
    RemoveWorker(usize, usize),
    Resize(usize, usize),
    /// A worker, own or adopted.
    Kill(usize, usize),
    Stop(usize, Option<u64>),
    Wait(u64),
    Breathe,
}

const POOLS: usize = 4;

fn job() -> impl Strategy<Value = Job> {
    let fails = prop_oneof![4 => Just(0u32), 2 => 1u32..8, 1 => Just(40)];
    let ms = prop_oneof![2 => Just(0u64), 1 => 1u64..20];
    (fails, any::<bool>(), ms).prop_map(|(fails, panics, ms)| Job {
        number: 0,
        fails,
        panics: panics && fails < 3,
        ms,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let pool = || 0..POOLS;
    prop_oneof![
        6 => (pool(), job()).prop_map(|(pool, job)| Step::Send(pool, job)),
        2 => (pool(), job()).prop_map(|(pool, job)| Step::Urgent(pool, job)),
        6 => (pool(), job()).prop_map(|(pool, job)| Step::Call(pool, job)),
        4 => (pool(), pool()).prop_map(|(by, whom)| Step::Adopt(by, whom)),
        1 => (pool(), pool()).prop_map(|(by, whom)| Step::AdoptWorker(by, whom)),
        2 => (pool(), 0usize..5).prop_map(|(pool, slot)| Step::RemoveWorker(pool, slot)),
        2 => (pool(), 0usize..4).prop_map(|(pool, workers)| Step::Resize(pool, workers)),
        1 => (pool(), 0usize..5).prop_map(|(pool, slot)| Step::Kill(pool, slot)),
        1 => (pool(), prop::option::of(0u64..20)).prop_map(|(pool, within)| Step::Stop(pool, within)),
        2 => (0u64..30).prop_map(Step::Wait),
        2 => Just(Step::Breathe),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let kind = prop_oneof![
        4 => Just(Kind::Shared),
        1 => Just(Kind::RoundRobin),
        1 => Just(Kind::LeastLoaded),
        1 => Just(Kind::Choosy),
        1 => Just(Kind::Keyed),
        1 => Just(Kind::Single),
    ];
    (kind, 0usize..3, prop_oneof![1usize..4, 50usize..60], any::<bool>())
        .prop_map(|(kind, workers, capacity, holds)| Plan { kind, workers, capacity, holds })
}

async fn spawn(plan: &Plan, log: &Log) -> Pool<Clerk> {
    let (clerks, dead) = (log.clone(), log.clone());
    let backoff = Backoff::new(Duration::ZERO, Duration::ZERO);
    let row = Rule::Retry { attempts: 10, backoff, finally: FinalAction::DeadLetter };
    let builder = match plan.kind {
        Kind::Single => Pool::one(Clerk(clerks)),
        _ => Pool::new(move |_| Clerk(clerks.clone())).workers(plan.workers),
    };
    let builder = builder
        .capacity(plan.capacity)
        .seed(7)
        .retry_with(Job::clone, FailureTable::all(row))
        .restarts(Restarts { max: 1_000, ..Restarts::default() })
        .on_dead_letter(move |letter: DeadLetter<Job, ()>| {
            dead.ends(letter.message.unwrap().number, "dead");
        });
    let builder = if plan.holds { builder.hold_when_empty() } else { builder };
    let spawned = match plan.kind {
        Kind::Shared | Kind::Single => builder.spawn().await,
        Kind::RoundRobin => builder.dispatch(RoundRobin::new()).spawn().await,
        Kind::LeastLoaded => builder.dispatch(LeastLoaded::seeded(7)).spawn().await,
        Kind::Choosy => builder.dispatch(Choosy).spawn().await,
        Kind::Keyed => builder.ordered_by_opt(|_| None::<u32>).key_required().spawn().await,
    };
    spawned.unwrap()
}

async fn send(to: Address<Job, u32, ()>, job: Job, envelope: Envelope, log: Log) {
    if to.send_with(job, envelope).await.is_err() {
        log.ends(job.number, "refused");
    }
}

/// A call that was not accepted leaves no trace of its message; an accepted one is recorded
/// elsewhere.
async fn call(to: Address<Job, u32, ()>, job: Job) {
    if let Ok(reply) = to.call(job).await {
        assert_eq!(reply, job.number);
    }
}

fn change(pools: &[Arc<Pool<Clerk>>], step: &Step) -> Result<(), AdminError> {
    match *step {
        Step::Adopt(by, whom) => drop(pools[by].admin().adopt(pools[whom].address())?),
        Step::AdoptWorker(by, whom) => {
            if let Some(worker) = pools[whom].admin().workers().first() {
                drop(pools[by].admin().adopt(worker.address().clone())?);
            }
        }
        Step::RemoveWorker(pool, slot) => drop(pools[pool].admin().remove_worker(slot)?),
        Step::Resize(pool, workers) => drop(pools[pool].admin().resize(workers)?),
        Step::Kill(pool, slot) => {
            if let Some(worker) = pools[pool].admin().workers().get(slot) {
                worker.address().erase().exit(ExitReason::Killed);
            }
        }
        _ => {}
    }
    Ok(())
}

/// On virtual time, longer than anything takes.
const AN_HOUR: Duration = Duration::from_secs(3_600);

async fn run(plans: Vec<Plan>, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let log = Log::default();
    let mut pools = Vec::new();
    for plan in &plans {
        pools.push(Arc::new(spawn(plan, &log).await));
    }
    let (mut senders, mut stops) = (JoinSet::new(), JoinSet::new());
    for (number, step) in steps.into_iter().enumerate() {
        let numbered = |job: Job| Job { number: number as u32, ..job };
        match step {
            Step::Send(pool, job) => {
                let to = pools[pool].address();
                senders.spawn(send(to, numbered(job), Envelope::new(), log.clone()));
            }
            Step::Urgent(pool, job) => {
                let to = pools[pool].address();
                senders.spawn(send(to, numbered(job), Envelope::urgent(), log.clone()));
            }
            Step::Call(pool, job) => {
                senders.spawn(call(pools[pool].address(), numbered(job)));
            }
            Step::Stop(pool, within) => {
                let how = within.map_or(Stop::Now, |ms| Stop::within(Duration::from_millis(ms)));
                let pool = pools[pool].clone();
                stops.spawn(async move { pool.stop(how).await });
            }
            Step::Wait(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Step::Breathe => tokio::task::yield_now().await,
            ref other => drop(change(&pools, other)),
        }
        for pool in &pools {
            let stats = pool.stats();
            prop_assert!(stats.ledger_holds(), "{stats:?}");
        }
    }
    settle(&pools, &plans, &mut senders).await?;
    for pool in &pools {
        let pool = pool.clone();
        stops.spawn(async move { pool.stop(Stop::within(AN_HOUR)).await });
    }
    let mut left_over = Vec::new();
    while let Some(report) = stops.join_next().await {
        let report = report.unwrap();
        prop_assert!(report.wedged.is_empty(), "{:?}", report.wedged);
        left_over.extend(report.left_over);
    }
    left_over.iter().for_each(|job| log.ends(job.number, "left over"));
    let ended =
        tokio::time::timeout(AN_HOUR, async { while senders.join_next().await.is_some() {} });
    prop_assert!(ended.await.is_ok(), "a sender hangs");
    check(&pools, &log)
}

/// Settles every message, with a worker in each pool that continues.
async fn settle(
    pools: &[Arc<Pool<Clerk>>],
    plans: &[Plan],
    senders: &mut JoinSet<()>,
) -> Result<(), TestCaseError> {
    for _ in 0..2 {
        for (pool, plan) in pools.iter().zip(plans) {
            // `None` if it has stopped.
            if !matches!(plan.kind, Kind::Single) && pool.stats().live == 0 {
                drop(pool.admin().add(1));
            }
        }
        tokio::time::sleep(AN_HOUR).await;
    }
    while senders.try_join_next().is_some_and(|sent| sent.is_ok()) {}
    let figures = || pools.iter().map(|pool| pool.stats()).collect::<Vec<_>>();
    prop_assert!(senders.is_empty(), "senders wait: {:?}", figures());
    for stats in figures() {
        prop_assert!(stats.ledger_holds() && stats.accepted == stats.settled(), "{stats:?}");
    }
    Ok(())
}

fn check(pools: &[Arc<Pool<Clerk>>], log: &Log) -> Result<(), TestCaseError> {
    for pool in pools {
        let stats = pool.stats();
        prop_assert!(stats.ledger_holds() && stats.accepted == stats.settled(), "{stats:?}");
    }
    let seen = log.0.lock().unwrap();
    for (number, outcomes) in &seen.outcomes {
        prop_assert_eq!(outcomes.len(), 1, "{}: {:?}", number, outcomes);
    }
    Ok(())
}

proptest! {
    #![proptest_config(campaign::config())]

    #[test]
    fn every_message_has_one_outcome_while_pools_adopt_each_other_and_stop(
        plans in prop::collection::vec(plan(), POOLS),
        steps in prop::collection::vec(step(), 0..50),
    ) {
        let ended = campaign::run(1_000 * AN_HOUR, run(plans, steps));
        ended.expect("the program did not end: a wake-up or an outcome was lost")?;
    }
}

/// The last other worker goes first, so that only a leaving worker is left in the pool.
#[test]
fn a_worker_that_leaves_a_deserted_pool_is_missed_by_whoever_has_adopted_it() {
    let plan = |holds| Plan { kind: Kind::Shared, workers: 0, capacity: 1, holds };
    let job = Job { number: 0, fails: 0, panics: false, ms: 0 };
    let steps = vec![
        Step::Resize(2, 1),
        Step::AdoptWorker(3, 2),
        Step::Wait(1),
        Step::Resize(0, 1),
        Step::AdoptWorker(2, 0),
        Step::RemoveWorker(0, 0),
        Step::RemoveWorker(2, 0),
        Step::Send(1, job),
        Step::AdoptWorker(1, 3),
    ];
    let program = run([false, false, false, true].map(plan).into(), steps);
    campaign::run(1_000 * AN_HOUR, program).expect("the program did not end").unwrap();
}
