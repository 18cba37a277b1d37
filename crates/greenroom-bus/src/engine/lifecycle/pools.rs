//! From the configuration of a pool to a pool that runs.

use std::{hash::Hash, sync::Arc};

use greenroom::{Pool, PoolBuilder, PoolEvents, event_pool};

use super::engine::SharedPool;
use crate::{
    engine::{
        account::order_audit::OrderLine,
        config::BuildError,
        control::change::ChangeError,
        process::{
            fair_share::FairShare, job::PoolJob, judge, pool_shares::PoolShares, worker::BusWorker,
        },
        shared::Shared,
    },
    router::{Concurrency, PoolConfig},
};

/// By default, one key may have this part of a pool's queue.
const SHARE_OF_A_KEY: usize = 4;

/// The line of a job, in a pool that keeps order.
pub(crate) type LineOf = fn(&PoolJob) -> Option<OrderLine>;

/// If a pool has a weight, the others have 1, except for those with threads of their own, which
/// compete with no other.
pub(crate) fn fair_share(pools: &[(String, PoolConfig)]) -> Option<FairShare> {
    let weighted = pools.iter().any(|(_, config)| config.weight.is_some());
    let weight = |config: &PoolConfig| match config.dedicated_threads {
        Some(_) => None,
        None => Some(config.weight.unwrap_or(1)),
    };
    weighted.then(|| FairShare::new(pools.iter().map(|(_, config)| weight(config))))
}

pub(crate) async fn spawn(
    shared: &Arc<Shared>,
    (place, name): (usize, &str),
    config: &PoolConfig,
    line_of: LineOf,
    seed: Option<u64>,
) -> Result<SharedPool, BuildError> {
    let (workers, letters, parked) = (shared.clone(), shared.clone(), shared.clone());
    let revocations = shared.inputs.revocations.clone();
    let notices = if config.event_stream { PoolEvents::global() } else { PoolEvents::off() };
    let pool = Pool::new(move |slot| BusWorker::new(workers.clone(), place, slot))
        .name(name)
        .quick_factory()
        .workers(config.workers)
        .capacity(config.queue)
        .restarts(config.restarts)
        .pool_events(notices)
        .starts_if(move |job: &PoolJob| !revocations.has(job.origin.assigned))
        .failure_policy(judge::policy)
        .on_dead_letter(move |letter| judge::bury(&letters, letter))
        .on_parked(move |job, error, panic| judge::parks(&parked, job, error, panic));
    // Measured, handlers would be taken in an order that depends on the machine.
    let replays = |pool: PoolBuilder<BusWorker>, seed| pool.seed(seed).quick_handlers(false);
    let pool = seed.into_iter().fold(pool, replays);
    let pool = limited(pool, config);
    let pool = match config.engine {
        event_pool::Engine::Keyed => {
            let pool = ordered(pool.ordered_by_opt(line_of), config);
            shared_out(pool, place, config, shared).spawn().await?
        }
        event_pool::Engine::Sticky => {
            let pool = sticky(pool, config).sticky_by_opt(line_of);
            shared_out(pool, place, config, shared).spawn().await?
        }
        _ => {
            let pool = batched(pool, config).finally(config.on_final_failure);
            shared_out(pool, place, config, shared).spawn().await?
        }
    };
    let pool: SharedPool = Arc::new(pool);
    limit_shares(&pool, name, &shared.process.pools[place].shares)?;
    Ok(pool)
}

fn limited(pool: PoolBuilder<BusWorker>, config: &PoolConfig) -> PoolBuilder<BusWorker> {
    // Limits come and go while the engine runs (R02).
    let pool = pool.adjustable_limits();
    let pool = match config.rate {
        Some(rate) => pool.rate(rate),
        None => pool,
    };
    let pool = match config.concurrency {
        Some(Concurrency::Fixed(events)) => pool.concurrency(events),
        Some(Concurrency::Adaptive(settings)) => pool.adaptive(settings),
        None => pool,
    };
    let pool = match config.autoscale {
        Some(settings) => pool.autoscale(settings),
        None => pool,
    };
    let pool = match config.advisor {
        Some(settings) => pool.advise(settings),
        None => pool,
    };
    match config.dedicated_threads {
        Some(threads) => pool.dedicated_threads(threads),
        None => pool,
    }
}

/// Divides the workers' time among shares, if a handler of the pool names some.
fn shared_out<K: Hash + Eq + Send + Sync + 'static>(
    pool: PoolBuilder<BusWorker, K>,
    place: usize,
    config: &PoolConfig,
    shared: &Shared,
) -> PoolBuilder<BusWorker, K> {
    let mut handlers = shared.process.handlers.iter();
    if !handlers.any(|entry| entry.pool == place && entry.config.share_by.is_some()) {
        return pool;
    }
    pool.shared_by(|job: &PoolJob| job.share().cloned()).share_limits(config.share_limits)
}

/// Limits the shares that the configuration names. A pool that is built with such limits would give
/// a share these again that the configuration names no more.
fn limit_shares(pool: &SharedPool, name: &str, named: &PoolShares) -> Result<(), BuildError> {
    let Ok(shares) = pool.admin().shares() else { return Ok(()) };
    let refused = |error| ChangeError::Refused { pool: name.to_owned(), error };
    let limit = |(share, limits)| shares.set(share, limits).map_err(refused);
    named.named().into_iter().try_for_each(limit).map_err(BuildError::Ends)
}

/// Events that wait behind a key occupy room in the pool, so those that wait for an attempt may
/// have only a part of it. Events that wait for an operator occupy none: the budget of their input
/// bounds them.
fn ordered(
    pool: PoolBuilder<BusWorker, OrderLine>,
    config: &PoolConfig,
) -> PoolBuilder<BusWorker, OrderLine> {
    let most = config.max_per_key.unwrap_or(config.queue.div_ceil(SHARE_OF_A_KEY));
    let pool = pool.max_per_key(most).max_parked(most).parked_apart();
    batched(pool.finally(config.on_final_failure), config)
}

/// Each event of a batch is settled by itself.
fn batched<K: Hash + Eq + Send + Sync + 'static>(
    pool: PoolBuilder<BusWorker, K>,
    config: &PoolConfig,
) -> PoolBuilder<BusWorker, K> {
    let Some(batches) = config.batches else { return pool };
    let pool = pool.batches(batches);
    match config.batch_bytes {
        Some(bytes) => pool.batch_bytes(bytes, |job| job.event.approximate_bytes()),
        None => pool,
    }
}

/// Each worker has its share of the queue.
fn sticky(pool: PoolBuilder<BusWorker>, config: &PoolConfig) -> PoolBuilder<BusWorker> {
    pool.mailbox(config.queue.div_ceil(config.workers.max(1))).finally(config.on_final_failure)
}

pub(crate) fn keeps_order(config: &PoolConfig) -> bool {
    config.engine != event_pool::Engine::Shared
}
