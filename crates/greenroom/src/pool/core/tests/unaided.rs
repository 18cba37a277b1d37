//! Pools that the watchdog leaves alone. A lost wake-up or permit is never found there, while a
//! tick of the watchdog would otherwise hide it within two milliseconds.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crate::{
    Actor, Address, Context, Pool,
    pool::{core::Core, pool_payload::Key},
};

struct Quick;

impl Actor for Quick {
    type Message = u64;
    type Reply = u64;
    type Error = ();

    /// Some handlers suspend once.
    async fn handle(&mut self, number: u64, _cx: &mut Context<Self>) -> Result<u64, ()> {
        if number.is_multiple_of(17) {
            tokio::task::yield_now().await;
        }
        Ok(number)
    }
}

type Quickly = Address<u64, u64, ()>;

fn unaided<K: Key>(core: Arc<Core<Quick, K>>) -> Pool<Quick> {
    core.frame.clock.unaided.store(true, Ordering::Relaxed);
    Pool::spawned(core)
}

async fn spawn(keyed: bool, workers: usize, capacity: usize) -> Pool<Quick> {
    let builder = Pool::new(|_| Quick).workers(workers).capacity(capacity);
    match keyed {
        true => unaided(builder.ordered_by(|n: &u64| n % 5).spawn_core().await.unwrap()),
        false => unaided(builder.spawn_core().await.unwrap()),
    }
}

/// Sends short bursts, and waits each time until the whole burst is handled.
async fn burst(address: Quickly, bursts: u64) {
    for number in 0..bursts {
        for message in 0..number % 7 {
            address.send(number + message).await.unwrap();
        }
        // Behind all messages that this sender has sent, if one worker or one key keeps the order.
        assert_eq!(address.call(number).await, Ok(number));
    }
}

/// A few senders on the runtime, and one on another thread.
async fn bursts(pool: Pool<Quick>, senders: usize, each: u64) {
    let start = |_| tokio::spawn(burst(pool.address(), each));
    let senders: Vec<_> = (0..senders).map(start).collect();
    burst(pool.address(), each).await;
    for sender in senders {
        sender.await.unwrap();
    }
    while !pool.stats().is_settled() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn on_threads(threads: usize, run: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(threads).enable_all().build().unwrap();
    let run = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), run).await });
    runtime.shutdown_background();
    assert!(run.is_ok(), "a wake-up or a permit was lost");
}

#[test]
fn no_burst_waits_for_the_watchdog() {
    for threads in 2..=4 {
        for (keyed, workers) in
            [(false, 1), (false, 2), (false, 4), (false, 64), (true, 2), (true, 64)]
        {
            on_threads(threads, async move {
                bursts(spawn(keyed, workers, 1_000).await, 3, 200).await;
            });
        }
    }
}

#[test]
fn nobody_waits_for_room_until_the_watchdog_comes() {
    for threads in [2, 4] {
        for (keyed, workers, capacity) in
            [(false, 1, 1), (false, 2, 1), (false, 4, 3), (false, 64, 8), (true, 4, 2)]
        {
            on_threads(threads, async move {
                bursts(spawn(keyed, workers, capacity).await, 4, 200).await;
            });
        }
    }
}

/// Calls are handed to idle workers, others send, and some handlers suspend.
#[test]
fn no_call_waits_for_the_watchdog() {
    for threads in 2..=4 {
        for (workers, capacity) in [(1, 1), (1, 100), (2, 3), (4, 100), (64, 100)] {
            on_threads(threads, async move {
                let builder = Pool::new(|_| Quick).workers(workers).capacity(capacity);
                let pool = unaided(builder.quick_handlers(true).spawn_core().await.unwrap());
                let calling = |_| {
                    let to = pool.address();
                    tokio::spawn(async move {
                        for number in 0..500 {
                            assert_eq!(to.call(number).await, Ok(number));
                        }
                    })
                };
                let callers: Vec<_> = (0..3).map(calling).collect();
                bursts(pool, 2, 100).await;
                for caller in callers {
                    caller.await.unwrap();
                }
            });
        }
    }
}

#[test]
fn a_pool_on_one_thread_misses_no_sender_on_another() {
    for (workers, capacity) in [(1, 1), (1, 100), (4, 3), (4, 100), (64, 100)] {
        let alone = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let pool = alone.block_on(spawn(false, workers, capacity));
        let (over, ended) = tokio::sync::oneshot::channel();
        let driver = std::thread::spawn(move || alone.block_on(ended));
        on_threads(2, bursts(pool, 2, 200));
        over.send(()).unwrap();
        assert!(driver.join().is_ok());
    }
}
