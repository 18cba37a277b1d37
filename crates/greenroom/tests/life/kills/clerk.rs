//! A worker that does what each message says, and its pools.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use greenroom::{Actor, Backoff, Context, Pool, PoolBuilder, Restarts};

/// The request in a message. The number is its key in a pool with keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Do {
    Return(u64),
    /// Computes for this long, without an await.
    Compute(Duration),
    Yield(u64),
    /// Suspended until its worker is killed, the first time that it is attempted.
    HangOnce(u64),
    /// Suspended until its worker is killed, each time.
    Hang(u64),
}

impl Do {
    pub(crate) fn number(&self) -> u64 {
        match *self {
            Self::Return(number)
            | Self::Yield(number)
            | Self::HangOnce(number)
            | Self::Hang(number) => number,
            Self::Compute(_) => 0,
        }
    }
}

/// The number of handlers that have started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Begun(Arc<AtomicU32>);

impl Begun {
    pub(crate) fn now(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until this many have.
    pub(crate) async fn reach(&self, handlers: u32) {
        while self.now() < handlers {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

pub(crate) struct Clerk(Begun);

impl Actor for Clerk {
    type Message = Do;
    type Reply = u64;
    type Error = ();

    async fn handle(&mut self, message: Do, _: &mut Context<Self>) -> Result<u64, ()> {
        let before = self.0.0.fetch_add(1, Ordering::SeqCst);
        match message {
            Do::Return(_) => {}
            Do::Compute(time) => compute(time),
            Do::Yield(_) => tokio::task::yield_now().await,
            Do::HangOnce(_) if before > 0 => {}
            Do::HangOnce(_) | Do::Hang(_) => std::future::pending().await,
        }
        Ok(message.number())
    }
}

pub(crate) fn compute(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

pub(crate) const NO_WAIT: Backoff = Backoff::new(Duration::ZERO, Duration::ZERO);

/// A pool whose workers may be killed as often as a test likes.
pub(crate) fn clerks(workers: usize) -> (PoolBuilder<Clerk>, Begun) {
    let begun = Begun::default();
    let of_workers = begun.clone();
    let restarts = Restarts { max: u32::MAX, backoff: NO_WAIT, ..Restarts::default() };
    let pool = Pool::new(move |_| Clerk(of_workers.clone())).workers(workers).restarts(restarts);
    (pool, begun)
}

/// Kills the worker at this place of the list.
pub(crate) fn kill(pool: &Pool<Clerk>, place: usize) {
    if let Some(worker) = pool.admin().workers().get(place) {
        worker.kill();
    }
}

/// Runs this on its own thread, so that a runtime whose thread never returns fails the test instead
/// of hanging it.
pub(crate) fn within_a_minute<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(run()));
    told.recv_timeout(Duration::from_secs(60)).expect("a thread never came back, or has failed")
}

pub(crate) fn runtime(threads: usize) -> tokio::runtime::Runtime {
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        threads => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    };
    builder.enable_all().build().unwrap()
}
