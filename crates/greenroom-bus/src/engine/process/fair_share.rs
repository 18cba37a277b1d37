//! How pools share the threads when their handlers compute (R06).
//!
//! Without weights, every worker that is ready runs, so a pool gets threads by the number of its
//! workers. With weights, each start of a handler advances its pool by the inverse of its weight.
//! Among the pools that are about to start one, the one that is furthest behind goes first (stride
//! scheduling: Waldspurger and Weihl, "Stride scheduling", MIT/LCS/TM-528, 1995).
//!
//! ```text
//! worker ──▶ steps aside twice, so that others come here, too ──▶ furthest behind of those here? ──▶ starts
//!                 ▲                                                     │ no
//!                 └─────────────────────────────────────────────────────┘
//! ```
//!
//! No pool waits for one that has nothing to start. A pool that comes back after a pause starts at
//! the position of the others: it has saved nothing up. The price is a short lock and two turns of
//! the runtime for each start, so shares are used only if a pool has a weight. A pool with threads
//! of its own competes with no other, and waits for none.

use parking_lot::Mutex;

/// How far a start moves a pool of weight 1; weights divide it with little loss.
const STRIDE: u64 = 1 << 20;

/// This many consecutive looks, with a turn of the runtime before each, have to find a pool
/// furthest behind. A worker is back here two turns after it has started a handler that returns at
/// once; with one look, pools of great weight got as little as half of their starts.
const LOOKS: u32 = 2;

#[derive(Debug)]
pub(crate) struct FairShare {
    state: Mutex<State>,
    /// By the pool's place: it has threads of its own, and no turns.
    apart: Box<[bool]>,
}

#[derive(Debug)]
struct State {
    /// By the pool's place.
    pools: Vec<Share>,
    /// How far the pool was that started last.
    now: u64,
}

#[derive(Debug)]
struct Share {
    stride: u64,
    /// How far the pool has come.
    at: u64,
    /// Its workers that are about to start a handler.
    here: u32,
}

impl FairShare {
    /// FairShare by these weights, each above 0; `None` for a pool that competes with no other.
    pub(crate) fn new(weights: impl Iterator<Item = Option<u32>>) -> Self {
        let weights: Vec<_> = weights.collect();
        let apart = weights.iter().map(Option::is_none).collect();
        let stride = |weight: u32| (STRIDE / u64::from(weight.max(1))).max(1);
        let share =
            |weight: Option<u32>| Share { stride: stride(weight.unwrap_or(1)), at: 0, here: 0 };
        let pools = weights.into_iter().map(share).collect();
        Self { state: Mutex::new(State { pools, now: 0 }), apart }
    }

    /// Waits until it is the turn of this pool.
    ///
    /// # Cancel safety
    /// A dropped future has given its place up, and started nothing.
    pub(crate) async fn turn(&self, pool: usize) {
        if self.apart[pool] {
            return;
        }
        let mut waits = WaitingStart::new(self, pool);
        let mut looks = 0;
        while looks < LOOKS || !waits.try_start() {
            tokio::task::yield_now().await;
            looks = if waits.is_first() { looks + 1 } else { 0 };
        }
    }
}

impl State {
    /// No other pool that is here is further behind.
    fn is_first(&self, pool: usize) -> bool {
        let at = self.pools[pool].at;
        !self.pools.iter().any(|other| other.here > 0 && other.at < at)
    }
}

/// A worker that is about to start a handler.
struct WaitingStart<'a> {
    shares: &'a FairShare,
    pool: usize,
}

impl<'a> WaitingStart<'a> {
    fn new(shares: &'a FairShare, pool: usize) -> Self {
        let mut state = shares.state.lock();
        let now = state.now;
        let share = &mut state.pools[pool];
        if share.here == 0 {
            // Unused share is not saved up; share that was used in advance stays used.
            share.at = share.at.max(now.saturating_sub(STRIDE));
        }
        share.here += 1;
        Self { shares, pool }
    }

    fn is_first(&self) -> bool {
        self.shares.state.lock().is_first(self.pool)
    }

    fn try_start(&mut self) -> bool {
        let mut state = self.shares.state.lock();
        let first = state.is_first(self.pool);
        if first {
            state.now = state.pools[self.pool].at;
            let share = &mut state.pools[self.pool];
            share.at += share.stride;
        }
        first
    }
}

impl Drop for WaitingStart<'_> {
    fn drop(&mut self) {
        self.shares.state.lock().pools[self.pool].here -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicU64, Ordering},
        },
        time::Duration,
    };

    use super::*;

    /// So many workers of each pool start as often as they may, for so many starts in all.
    /// How often each pool did.
    async fn starts(weights: &[u32], workers: &[usize], total: u64) -> Vec<u64> {
        let shares = Arc::new(FairShare::new(weights.iter().copied().map(Some)));
        let counts: Arc<Vec<AtomicU64>> =
            Arc::new(weights.iter().map(|_| AtomicU64::new(0)).collect());
        let mut tasks = tokio::task::JoinSet::new();
        for (pool, workers) in workers.iter().enumerate() {
            for _ in 0..*workers {
                let (shares, counts) = (shares.clone(), counts.clone());
                tasks.spawn(async move {
                    while counts.iter().map(|n| n.load(Ordering::Relaxed)).sum::<u64>() < total {
                        shares.turn(pool).await;
                        counts[pool].fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        }
        while tasks.join_next().await.is_some() {}
        counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    #[tokio::test]
    async fn r06_starts_are_shared_by_weight_whatever_the_number_of_workers() {
        for workers in [[1, 1, 1], [8, 1, 2], [1, 1, 8]] {
            let counts = starts(&[1, 3, 6], &workers, 10_000).await;
            for (count, expected) in counts.iter().zip([1_000, 3_000, 6_000]) {
                assert!(count.abs_diff(expected) <= expected / 20, "{workers:?}: {counts:?}");
            }
        }
    }

    #[tokio::test]
    async fn r06_a_pool_alone_is_not_held_back() {
        assert_eq!(starts(&[1, 100], &[1, 0], 1_000).await, [1_000, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn r06_a_pool_with_threads_of_its_own_waits_for_nobody() {
        let shares = FairShare::new([Some(1), None].into_iter());
        // Pool 0 is furthest behind, and about to start something.
        let _here = WaitingStart::new(&shares, 0);
        for _ in 0..1_000 {
            let mut turn = std::pin::pin!(shares.turn(1));
            let first =
                std::future::poll_fn(|task| std::task::Poll::Ready(turn.as_mut().poll(task)));
            // Not even a turn of the runtime.
            assert!(first.await.is_ready());
        }
    }

    #[tokio::test]
    async fn r06_a_pool_that_comes_back_has_saved_nothing_up() {
        let shares = Arc::new(FairShare::new([Some(1), Some(1)].into_iter()));
        for _ in 0..1_000 {
            shares.turn(0).await;
        }
        shares.turn(1).await;
        let state = shares.state.lock();
        assert!(state.pools[0].at - state.pools[1].at <= STRIDE, "{state:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn r06_a_worker_that_is_dropped_holds_nobody_back() {
        let shares = FairShare::new([Some(1), Some(1)].into_iter());
        shares.turn(0).await;
        // Pool 1 is behind, and its worker goes before it has started anything.
        let _ = tokio::time::timeout(Duration::ZERO, shares.turn(1)).await;
        tokio::time::timeout(Duration::from_secs(1), shares.turn(0)).await.unwrap();
    }
}
