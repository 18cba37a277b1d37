//! Runs programs, and checks their results.

use std::{hash::BuildHasher, sync::Arc, time::Duration};

use greenroom::{
    Actor, Change, ExitReason, NotAccepted, Overflow, Pool, PoolBuilder, PoolStats, Restarts, Stop,
    batch::Batches,
    limits::Rate,
    shares::{ShareLimits, Shares},
};
use proptest::{
    prelude::*,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};

use crate::campaign;

use super::{
    actors::{Clerk, Elsewhere, Scribe},
    model::Log,
    program::{
        self, Decision, Ending, Full, KEYS, Message, Program, SENDERS, SHARES, ShareOrder, Sharing,
        Step, Telling,
    },
    work::{Desk, Order, send_all},
};

type Result<T> = std::result::Result<T, TestCaseError>;

/// On virtual time, longer than all retries and restarts take.
const AN_HOUR: Duration = Duration::from_secs(3600);

fn configured<A: Actor<Message = Message, Reply = u32, Error = u32>>(
    builder: PoolBuilder<A>,
    program: &Program,
    log: &Log,
    other: &Pool<Elsewhere>,
) -> PoolBuilder<A, program::Key> {
    let (dead, hashes) = (log.clone(), program.hashes);
    let builder = builder
        .workers(program.workers)
        .capacity(program.capacity)
        .seed(program.seed)
        .quick_handlers(program.quick)
        .poison_limit(program.poison_limit)
        .restarts(Restarts { max: program.max_restarts, ..Restarts::default() })
        .overflow(match program.full {
            Full::Wait => Overflow::Wait,
            Full::Reject => Overflow::Reject,
            Full::DropNewest => Overflow::DropNewest,
            Full::DropOldest => Overflow::DropOldest,
            Full::Fallback => Overflow::Fallback(other.address()),
        })
        .on_dead_letter(move |letter| dead.buried(letter));
    let builder = match program.telling {
        Telling::Policy => builder.failure_policy(program.table()),
        Telling::Retries => builder.retry_with(Message::clone, program.table()),
        Telling::OnFinal => {
            builder.retry_with(Message::clone, program.table()).on_final_failure(program.finally())
        }
    };
    let builder = if program.holds { builder.hold_when_empty() } else { builder };
    let builder = match program.limited {
        true => builder.time_limit(Duration::from_millis(100)),
        false => builder,
    };
    let builder = builder
        .ordered_by_opt(move |message: &Message| message.key.map(|key| program::Key(key, hashes)))
        .max_parked(program.max_parked);
    let builder = if program.apart { builder.parked_apart() } else { builder };
    let builder = if program.key_required { builder.key_required() } else { builder };
    let builder = match program.sharing {
        Sharing::None => builder,
        Sharing::ByKey => {
            builder.shared_by(|message: &Message| message.key.map(|key| u32::from(key) % SHARES))
        }
        Sharing::ByNumber => builder.shared_by(|message: &Message| message.number % SHARES),
    };
    match program.max_per_key {
        Some(messages) => builder.max_per_key(messages),
        None => builder,
    }
}

async fn run(program: Program) -> Result<()> {
    let log = Log::new(&program);
    let (actors, others, dead) = (log.clone(), log.clone(), log.clone());
    let other = Pool::new(move |_| Elsewhere(others.clone())).workers(1).capacity(1_000);
    let other = other.on_dead_letter(move |letter| {
        let message = letter.message.expect("nobody has it");
        dead.lock().ends(message.number, "dead elsewhere");
    });
    let other = other.spawn().await.expect("it can be started");
    match program.batches {
        None => {
            let pool = Pool::new(move |_| Clerk(actors.clone()));
            run_with(configured(pool, &program, &log, &other), program, log, &other).await
        }
        Some(sizes) => {
            let batches = Batches::of(sizes.most).within(Duration::from_millis(sizes.within));
            let pool = Pool::batched(move |_| Scribe(actors.clone(), sizes.most), batches);
            run_with(configured(pool, &program, &log, &other), program, log, &other).await
        }
    }
}

/// The senders, and the channel for the orders of each.
struct Senders {
    orders: Vec<mpsc::UnboundedSender<Order>>,
    tasks: JoinSet<()>,
}

impl Senders {
    fn of<A: Actor<Message = Message, Reply = u32, Error = u32>>(
        pool: &Pool<A>,
        desk: &Arc<Desk<A>>,
    ) -> Self {
        let (mut orders, mut tasks) = (Vec::new(), JoinSet::new());
        for who in 0..SENDERS {
            let (tell, told) = mpsc::unbounded_channel();
            orders.push(tell);
            tasks.spawn(send_all(who, desk.clone(), pool.address(), told));
        }
        Self { orders, tasks }
    }

    /// Resolves when they have carried out all their orders.
    async fn ended(mut self) -> Result<()> {
        drop(self.orders);
        let ended = async { while self.tasks.join_next().await.is_some_and(|end| end.is_ok()) {} };
        prop_assert!(tokio::time::timeout(AN_HOUR, ended).await.is_ok(), "a sender hangs");
        prop_assert!(self.tasks.is_empty(), "a sender has panicked");
        Ok(())
    }
}

async fn run_with<A: Actor<Message = Message, Reply = u32, Error = u32>>(
    builder: PoolBuilder<A, program::Key>,
    program: Program,
    log: Log,
    other: &Pool<Elsewhere>,
) -> Result<()> {
    let pool = builder.spawn().await.expect("it can be started");
    let keys = pool.keys().expect("they are of this type");
    let program = Arc::new(program);
    let (calls, log_of_desk) = (Arc::new(()), log.clone());
    let desk = Arc::new(Desk { keys, log: log_of_desk, program: program.clone(), calls });
    let senders = Senders::of(&pool, &desk);
    for (number, step) in program.steps.iter().enumerate() {
        take_step(&pool, &desk, &senders, number as u32, *step).await;
        desk.look(&pool);
        let violations = log.lock().violations.clone();
        prop_assert!(violations.is_empty(), "{violations:#?}");
    }
    let mut ended = false;
    if program.ending == Ending::Quiet {
        ended = come_to_rest(&pool, &desk).await?;
    }
    let stop = match program.ending {
        Ending::Quiet => Stop::within(AN_HOUR),
        Ending::Within(ms) => Stop::within(Duration::from_millis(ms)),
        Ending::Now => Stop::Now,
    };
    let report = pool.stop(stop).await;
    senders.ended().await?;
    prop_assert!(report.wedged.is_empty());
    prop_assert!(program.ending != Ending::Quiet || ended || report.left_over.is_empty());
    for message in &report.left_over {
        log.lock().ends(message.number, "left over");
    }
    let left_over = report.left_over.len() as u64;
    drop(report);
    tokio::time::sleep(AN_HOUR).await;
    prop_assert_eq!(other.stats().accepted, other.stats().settled());
    check_outcomes(&log, left_over, &pool.stats(), desk.is_quiet())
}

async fn take_step<A: Actor<Message = Message, Reply = u32, Error = u32>>(
    pool: &Pool<A>,
    desk: &Desk<A>,
    senders: &Senders,
    number: u32,
    step: Step,
) {
    match step {
        Step::Work(who, how, key, class, deed) => {
            let order = (number, how, key, class, deed);
            let _ = senders.orders[usize::from(who)].send(order);
        }
        Step::Decide(key, decision) => desk.decide(key, decision),
        Step::DecideAll(decision) => {
            desk.parked().into_iter().for_each(|key| desk.decide(key, decision));
        }
        Step::Resize(workers) => drop(pool.admin().resize(workers)),
        Step::Enable(slot) => drop(pool.admin().enable(slot)),
        Step::Kill(place) => {
            let workers = pool.admin().workers();
            if let Some(worker) = workers.get(place % workers.len().max(1)) {
                worker.erase().exit(ExitReason::Killed);
            }
        }
        Step::Withdraw(first) => desk.withdraw(pool, first),
        Step::Wait(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
        Step::Breathe => tokio::task::yield_now().await,
        Step::Share(share, order) => {
            if let Ok(shares) = pool.admin().shares() {
                order_share(&shares, share, order);
            }
        }
    }
}

fn order_share<A: Actor>(shares: &Shares<A>, share: u32, order: ShareOrder) {
    let limits = ShareLimits::default();
    let millis = Duration::from_millis;
    let limits = match order {
        ShareOrder::Hold(ms) => return shares.hold(share, Instant::now() + millis(ms)),
        ShareOrder::Pause => return shares.pause(share),
        ShareOrder::Resume => return shares.resume(share),
        ShareOrder::Unset => return shares.unset(share),
        ShareOrder::Cap(most) => limits.in_hand(most),
        ShareOrder::Weigh(weight) => limits.weight(weight),
        ShareOrder::Rate(messages) => limits.rate(Rate::new(messages, millis(10))),
    };
    shares.set(share, limits).expect("it is in range");
}

/// Removes all restrictions of shares.
fn free_shares<A: Actor>(pool: &Pool<A>) {
    let Ok(shares) = pool.admin().shares() else { return };
    for share in 0..SHARES {
        shares.resume(share);
        shares.unset(share);
    }
}

/// Handles everything that can be handled, and an operator decides about parked keys. Returns true
/// if the pool has stopped itself.
async fn come_to_rest<A: Actor<Message = Message, Reply = u32, Error = u32>>(
    pool: &Pool<A>,
    desk: &Desk<A>,
) -> Result<bool> {
    free_shares(pool);
    let decisions = [Decision::Replay, Decision::Release, Decision::Remove];
    for round in 0..400 {
        for worker in pool.admin().worker_stats() {
            drop(pool.admin().enable(worker.slot));
        }
        let Ok(change) = pool.admin().resize(2 + round % 2) else { return Ok(true) };
        Change::done(change, AN_HOUR).await;
        tokio::time::sleep(AN_HOUR).await;
        desk.look(pool);
        let room = pool.try_reserve();
        if room.as_ref().err() == Some(&NotAccepted::Stopped) {
            return Ok(true);
        }
        let callers = Arc::strong_count(&desk.calls) - 1;
        let live = pool.stats().live > 0 && pool.stats().restarts == 0;
        prop_assert!(room.is_err() || callers == 0 || !live, "{callers} callers are not told");
        drop(room);
        let parked = desk.parked();
        let stats = pool.stats();
        let settled = stats.accepted == stats.settled() && callers == 0;
        if parked.is_empty() && settled && stats.live == stats.configured {
            return check_quiet(pool, desk).await.map(|()| false);
        }
        for (place, key) in parked.into_iter().enumerate() {
            let first = usize::from(round > 6);
            desk.decide(key, decisions[first + (round + place) % (3 - first)]);
        }
    }
    let (stats, counts) = (pool.stats(), desk.keys.counts());
    prop_assert!(false, "it does not come to rest: {stats:?}, {counts:?}");
    Ok(true)
}

/// Nothing happens any more: nothing is kept, and no caller is forgotten.
async fn check_quiet<A: Actor<Message = Message, Reply = u32, Error = u32>>(
    pool: &Pool<A>,
    desk: &Desk<A>,
) -> Result<()> {
    prop_assert!(desk.is_quiet(), "{:?}", desk.keys.counts());
    let (stats, capacity) = (pool.stats(), desk.program.capacity);
    prop_assert_eq!((stats.queued, stats.waiting, stats.in_hand), (0, 0, 0));
    let alive = desk.log.lock().alive();
    prop_assert!(alive.is_empty(), "somebody has {alive:?}");
    for key in 0..KEYS {
        let why = desk.keys.status(&desk.program.key(key), |error| error.to_string());
        prop_assert!(why.is_none(), "{why:?}");
    }
    let permits: Vec<_> = (0..capacity).map(|_| pool.try_reserve()).collect();
    prop_assert!(permits.iter().all(std::result::Result::is_ok), "a permit was lost: {stats:?}");
    let more = pool.try_reserve().err();
    prop_assert_eq!(more, Some(NotAccepted::Full), "a permit came from nowhere");
    Ok(())
}

fn check_outcomes(log: &Log, left_over: u64, stats: &PoolStats, quiet: bool) -> Result<()> {
    let seen = log.lock();
    prop_assert!(seen.violations.is_empty(), "{:#?}", seen.violations);
    prop_assert!(stats.ledger_holds() && stats.accepted == stats.settled(), "{stats:?}");
    prop_assert_eq!(stats.handled, seen.count("handled"), "{:?}", stats);
    prop_assert_eq!(stats.dead_lettered, seen.count("dead") + seen.anonymous, "{:?}", stats);
    prop_assert_eq!(stats.returned, seen.count("removed") + left_over, "{:?}", stats);
    prop_assert_eq!(left_over, seen.count("left over"));
    prop_assert_eq!(stats.withdrawn, seen.count("withdrawn"));
    // The caller may have gone.
    let (failed, unknown) = (seen.count("failed"), seen.unknown());
    prop_assert!(failed <= stats.failed, "{failed}: {stats:?}");
    prop_assert!(unknown <= stats.dropped + seen.anonymous, "{unknown} have vanished: {stats:?}");
    prop_assert!(quiet, "keys are kept");
    let alive = seen.alive();
    prop_assert!(alive.is_empty(), "somebody has {alive:?}");
    Ok(())
}

/// Runs the program of a seed, or a smaller version of it after it has failed.
fn run_seed(seed: u64, programs: &impl Strategy<Value = Program>) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 1_500,
        ..ProptestConfig::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let program = programs.new_tree(&mut runner).expect("there is always one");
    let failed = runner.run_one(program, |program| {
        let ended = campaign::run(10_000 * AN_HOUR, run(program));
        ended.ok_or_else(|| TestCaseError::fail("the program did not end"))?
    });
    if let Err(failed) = failed {
        panic!("GREENROOM_SEED={seed}: {failed}");
    }
}

#[test]
fn k01_k06_k07_k08_k10_k12_random_programs_keep_order_bounds_and_the_ledger() {
    run_seeds(&program::program());
}

#[test]
fn q05_q14_random_programs_with_shares_keep_order_bounds_and_the_ledger() {
    run_seeds(&program::program_with_shares());
}

fn run_seeds(programs: &impl Strategy<Value = Program>) {
    let first = campaign::from_env("GREENROOM_SEED")
        .unwrap_or_else(|| std::hash::RandomState::new().hash_one(()) >> 16);
    for seed in first..first + campaign::from_env::<u64>("GREENROOM_PROGRAMS").unwrap_or(200) {
        run_seed(seed, programs);
    }
}
