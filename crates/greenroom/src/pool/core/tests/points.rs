//! Points of the waiting protocol (see pool/README.md) that no other test covers.

use std::{
    pin::pin,
    sync::{
        Arc, Barrier,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context as TaskContext, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use crate::{
    Actor, Address, AnyAddress, Context, ExitReason, OnExit, Overflow, Pool,
    life::Signal,
    pool::{core::pushes::hand_over, frame::start::watch, outgoing::Outgoing},
};

/// Runs a closure with each message.
struct Does<F>(F);

impl<F, T> Actor for Does<F>
where
    F: FnMut(u64) -> T + Send + 'static,
    T: Future<Output = ()> + Send,
{
    type Message = u64;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, number: u64, _cx: &mut Context<Self>) -> Result<(), ()> {
        (self.0)(number).await;
        Ok(())
    }
}

/// Point 3. Two handlers that wait for each other hold up a thread each; the watchdog, which would
/// help, leaves them alone.
///
/// A woken task is in the slot of the thread that woke it, from which no other thread takes it.
/// Each round begins as the workers of the last one park, so a worker that wakes the other as it
/// parks is itself woken at once. A task ticks in the background: a thread that is not notified of
/// a task checks the queues of both.
#[test]
fn who_wakes_another_worker_steps_aside_before_it_computes() {
    const ROUNDS: usize = 500;
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    runtime.spawn(async {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let met = runtime.block_on(async {
        let barrier = Arc::new(Barrier::new(2));
        let pool = Pool::new(move |_| {
            let barrier = barrier.clone();
            Does(move |_| {
                barrier.wait();
                std::future::ready(())
            })
        });
        let core = pool.workers(2).spawn_core().await.unwrap();
        core.frame.clock.unaided.store(true, Ordering::Relaxed);
        let pool = Pool::spawned(core);
        let all_meet = async {
            for round in 1..=ROUNDS {
                let mut both = [1, 2].into();
                pool.send_many(&mut both).await.unwrap();
                while pool.stats().handled < 2 * round as u64 {
                    tokio::task::yield_now().await;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), all_meet).await
    });
    runtime.shutdown_background();
    assert!(met.is_ok(), "the other worker lies where only a thread that computes looks");
}

/// Point 3, for a sender: its worker is queued behind it, and the watchdog wakes another one
/// elsewhere.
#[test]
fn a_sender_that_computes_on_does_not_hold_what_it_has_sent() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    let handled = runtime.block_on(async {
        let done: fn(u64) -> std::future::Ready<()> = |_| std::future::ready(());
        let pool = Pool::new(move |_| Does(done)).workers(2).spawn().await.unwrap();
        let sender = tokio::spawn(async move {
            while pool.stats().idle < 2 {
                tokio::task::yield_now().await;
            }
            let since = Instant::now();
            pool.try_send(1).unwrap();
            while pool.stats().handled == 0 && since.elapsed() < Duration::from_secs(20) {
                std::hint::spin_loop();
            }
            pool.stats().handled
        });
        sender.await.unwrap()
    });
    runtime.shutdown_background();
    assert_eq!(handled, 1, "what is sent lies where only a thread that computes looks");
}

/// Point 3, for a worker of a sticky pool that continues after it has given keys away.
#[test]
fn who_gives_keys_to_another_worker_and_computes_does_not_hold_it_up() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    let handled = runtime.block_on(async {
        let done: fn(u64) -> std::future::Ready<()> = |_| std::future::ready(());
        let pool = Pool::new(move |_| Does(done)).workers(1);
        let core = pool.sticky_by(|number: &u64| *number).spawn_core().await.unwrap();
        let pool = Pool::spawned(core.clone());
        let giver = tokio::spawn(async move {
            while pool.stats().idle < 1 {
                tokio::task::yield_now().await;
            }
            let mailbox = core.mailbox(0);
            core.queue.permits.try_take(1, &*core).unwrap();
            mailbox.try_reserve().unwrap();
            assert!(mailbox.push(&mut Outgoing::new(1, None), |number| core.stamp(number)).is_ok());
            hand_over(&core, 0);
            let since = Instant::now();
            while pool.stats().handled == 0 && since.elapsed() < Duration::from_secs(5) {
                std::hint::spin_loop();
            }
            pool.stats().handled
        });
        giver.await.unwrap()
    });
    runtime.shutdown_background();
    assert_eq!(handled, 1, "the other worker lies where only a thread that computes looks");
}

/// Point 4.
#[tokio::test]
async fn a_handler_that_has_used_up_its_budget_is_not_taken_for_one_that_suspends() {
    let pool = Pool::new(|_| Does(async |_| use_up_budget().await)).workers(2);
    let core = pool.ordered_by(|number: &u64| number % 2).spawn_core().await.unwrap();
    let pool = Pool::spawned(core.clone());
    for number in 0..10 {
        pool.call(number).await.unwrap();
    }
    let opened: usize =
        core.queue.shards.iter().map(|shard| shard.outbox.lock().lanes.room()).sum();
    assert_eq!(opened, 0, "no lane was opened");
}

async fn use_up_budget() {
    for _ in 0..1_000 {
        tokio::task::coop::consume_budget().await;
    }
}

/// Point 4, for the usual pace: the pool took its handlers for ones that wait.
#[tokio::test]
async fn handlers_that_use_up_their_budget_are_not_taken_for_ones_that_usually_wait() {
    let pool = Pool::new(|_| Does(async |_| use_up_budget().await)).workers(1);
    let core = pool.spawn_core().await.unwrap();
    let pool = Pool::spawned(core.clone());
    for number in 0..100 {
        pool.send(number).await.unwrap();
    }
    while pool.stats().handled < 100 {
        tokio::task::yield_now().await;
    }
    assert!(!core.queue.wake.waits());
}

/// Its hook waits, and its handler does not.
struct Traps;

impl Actor for Traps {
    type Message = u64;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, _: u64, _cx: &mut Context<Self>) -> Result<(), ()> {
        Ok(())
    }

    async fn exited(
        &mut self,
        _: Option<&AnyAddress>,
        _: &ExitReason,
        _: &mut Context<Self>,
    ) -> OnExit {
        tokio::task::yield_now().await;
        OnExit::GoOn
    }
}

/// The wait of the hook was counted for the message after it.
#[tokio::test]
async fn a_hook_that_waits_says_nothing_of_what_handlers_usually_do() {
    let core = Pool::new(|_| Traps).workers(1).spawn_core().await.unwrap();
    let pool = Pool::spawned(core.clone());
    for number in 1..100 {
        let signal = Signal::Exit { from: None, reason: ExitReason::Shutdown };
        core.signal_worker(&core.mailbox(0), signal);
        pool.try_send(number).unwrap();
        while pool.stats().handled < number {
            tokio::task::yield_now().await;
        }
    }
    assert!(!core.queue.wake.waits());
}

/// Does nothing, at once.
type Nothing = Does<fn(u64) -> std::future::Ready<()>>;

/// The counts that a caller finds at the moment when it is woken.
struct Counted {
    address: Pool<Nothing>,
    handled: AtomicU64,
}

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.handled.store(self.address.stats().handled, Ordering::SeqCst);
    }
}

/// Point 16.
#[tokio::test]
async fn an_outcome_is_counted_before_its_caller_hears_of_it() {
    let done: fn(u64) -> std::future::Ready<()> = |_| std::future::ready(());
    let pool = Pool::new(move |_| Does(done)).workers(1).spawn().await.unwrap();
    let address: Address<u64, (), ()> = pool.address();
    let counted = Arc::new(Counted { address: pool, handled: AtomicU64::new(0) });
    let waker = Waker::from(counted.clone());
    let mut call = pin!(address.call(1));
    assert!(call.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_pending());
    while counted.handled.load(Ordering::SeqCst) == 0 {
        assert!(counted.address.stats().handled == 0, "counted, and nobody was woken since");
        tokio::task::yield_now().await;
    }
    assert_eq!(
        call.poll(&mut TaskContext::from_waker(Waker::noop())),
        Poll::Ready(Ok(())),
        "it was woken for its reply"
    );
}

/// Point 10, for a worker's own mailbox.
#[tokio::test(start_paused = true)]
async fn a04_a_place_that_is_freed_for_want_of_room_goes_to_who_waits_for_it() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let opened = gate.clone();
    let builder = Pool::new(move |_| {
        let gate = gate.clone();
        Does(move |_| {
            let gate = gate.clone();
            async move { gate.acquire().await.unwrap().forget() }
        })
    });
    let builder = builder.workers(1).capacity(1).mailbox(1).overflow(Overflow::DropOldest);
    let pool = builder.spawn().await.unwrap();
    let worker = pool.admin().workers().remove(0);
    worker.send(1).await.unwrap();
    while pool.stats().in_hand == 0 {
        tokio::task::yield_now().await;
    }
    worker.send(2).await.unwrap();
    let waiting = tokio::spawn({
        let address = worker.address().clone();
        async move { address.send(3).await }
    });
    tokio::task::yield_now().await;
    pool.send(4).await.unwrap();
    assert_eq!(pool.stats().dead_lettered, 1, "the second message has made room for the fourth");
    opened.add_permits(10);
    let sent = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    assert!(sent.is_ok(), "the mailbox is empty, and its sender waits for a place");
    while pool.stats().handled < 3 {
        tokio::task::yield_now().await;
    }
}

/// Point 5: a worker that woke before the watchdog knew the pool has called in vain.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_pool_that_is_busy_from_its_start_is_watched() {
    let done: fn(u64) -> std::future::Ready<()> = |_| std::future::ready(());
    let core = Pool::new(move |_| Does(done)).workers(1).into_core().unwrap();
    core.queue.wake.enter(&core.frame.clock.watchdog);
    watch(&core.erased());
    assert!(core.frame.clock.watchdog.is_watched(), "a worker is awake");
    core.queue.wake.leave(&core.frame.clock.watchdog);
}
