//! The watchdog: a thread that checks the pools that need it every 2 ms, or every 10 ms if no
//! handler computes.
//!
//! It takes the drain token from holders that have not finished a message since the last tick, so
//! that a computing handler delays only its own key (K03). It also wakes one more worker if work is
//! ready and nothing moves.
//!
//! It has its own thread, one for the process, because the runtime's timers do not work here: the
//! very thread that should fire them may be the one that computes. The watchdog sleeps while no
//! pool is busy ([`Watched::is_busy`]), and never ends.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock, Weak},
    thread,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

/// How long a handler may compute before its shard is given to others. Long enough to cost nothing
/// (64 uncontended locks per tick), and short enough that neighbours of a computing key wait only
/// for milliseconds.
pub const TICK: Duration = Duration::from_millis(2);

/// Like [`TICK`], while all watched pools are unhurried. A sender that waits for less than a block
/// of room waits this long, and the coarse clock is this late. A wake-up of a thread costs as much
/// as dozens of messages, and there are few messages if handlers wait for milliseconds.
const LONG_TICK: Duration = Duration::from_millis(10);

/// A pool is watched for this many ticks after it has fallen asleep, so that a pool that works only
/// now and then does not wake the watchdog each time.
const PATIENCE: u32 = 50;

/// A pool as the watchdog sees it.
pub trait Watched: Send + Sync {
    /// Sets the pool's coarse clock: senders do not set it while the watchdog looks.
    fn set_clock(&self);

    /// Takes stuck tokens away and wakes workers as needed. `before` is the result of the last
    /// tick: the number of messages taken.
    fn tick(&self, before: u64) -> u64;

    /// True while a worker is awake, work is ready or a sender waits for room.
    fn is_busy(&self) -> bool;

    /// True if no worker computes while others wait: the other duties are less urgent then.
    fn is_unhurried(&self) -> bool;

    /// From now on the watchdog must be called, because it stops watching.
    fn turn_away(&self);

    /// Returns true if the watchdog keeps watching: it has not been called again since.
    fn stay(&self) -> bool;
}

/// A watched pool.
pub struct WatchedPool {
    pool: Weak<dyn Watched>,
    taken: u64,
    quiet: u32,
    /// True if the pool was unhurried at the last look.
    is_unhurried: bool,
}

#[derive(Default)]
struct Watchdog {
    newcomers: Mutex<Vec<Weak<dyn Watched>>>,
    called: Condvar,
}

static WATCHDOG: LazyLock<Arc<Watchdog>> = LazyLock::new(|| {
    let watch = Arc::new(Watchdog::default());
    let thread = watch.clone();
    let started =
        thread::Builder::new().name("greenroom-watch".to_owned()).spawn(move || thread.run());
    if let Err(error) = started {
        tracing::error!(%error, "no thread to watch pools: a handler that computes delays its neighbours");
    }
    watch
});

/// Watches this pool until it is quiet.
pub fn over(pool: Weak<dyn Watched>) {
    WATCHDOG.newcomers.lock().push(pool);
    WATCHDOG.called.notify_one();
}

impl Watchdog {
    fn run(&self) {
        let mut pools: Vec<WatchedPool> = Vec::new();
        loop {
            self.take_pools(&mut pools);
            pools.retain_mut(|watched| {
                // A panic in a pool's last drop must not end the watch over the others.
                catch_unwind(AssertUnwindSafe(|| watched.look())).unwrap_or(false)
            });
            self.rest(&pools);
        }
    }

    /// Rests until the next look. A newcomer ends a long rest.
    fn rest(&self, pools: &[WatchedPool]) {
        if pools.is_empty() {
            return;
        }
        if pools.iter().all(|watched| watched.is_unhurried) {
            let mut newcomers = self.newcomers.lock();
            let is_alone =
                newcomers.is_empty() && self.called.wait_for(&mut newcomers, LONG_TICK).timed_out();
            if is_alone {
                return;
            }
        }
        thread::sleep(TICK);
    }

    /// Adds newcomers, or waits for one if there is nothing to watch.
    fn take_pools(&self, pools: &mut Vec<WatchedPool>) {
        let mut newcomers = self.newcomers.lock();
        while pools.is_empty() && newcomers.is_empty() {
            self.called.wait(&mut newcomers);
        }
        pools.extend(newcomers.drain(..).map(WatchedPool::new));
    }
}

impl WatchedPool {
    /// A pool that has just begun to be watched.
    pub fn new(pool: Weak<dyn Watched>) -> Self {
        Self { pool, taken: 0, quiet: 0, is_unhurried: false }
    }

    /// Checks the pool. Returns false if it need not be watched any more.
    pub fn look(&mut self) -> bool {
        let Some(pool) = self.pool.upgrade() else { return false };
        pool.set_clock();
        self.is_unhurried = pool.is_unhurried();
        if pool.is_busy() {
            self.taken = pool.tick(self.taken);
            self.quiet = 0;
            return true;
        }
        self.quiet += 1;
        if self.quiet < PATIENCE {
            return true;
        }
        self.quiet = 0;
        pool.turn_away();
        pool.is_busy() && pool.stay()
    }
}
