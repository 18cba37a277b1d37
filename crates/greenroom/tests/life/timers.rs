//! Timers: messages later, or periodically (A18).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom::{Actor, Context, Pool, Stop, timer::TimerState};
use parking_lot::Mutex;
use tokio::{runtime::Handle, time::Instant};

const SECOND: Duration = Duration::from_secs(1);

/// The time and the number of each message.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(u64, u32)>>>);

impl Log {
    fn seconds_and_messages(&self) -> Vec<(u64, u32)> {
        self.0.lock().clone()
    }
}

/// Notes each message and the second in which it came, then takes its time.
struct Clerk {
    log: Log,
    since: Instant,
    takes: Duration,
}

impl Actor for Clerk {
    type Message = u32;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, message: u32, _cx: &mut Context<Self>) -> Result<(), ()> {
        self.log.0.lock().push((self.since.elapsed().as_secs(), message));
        tokio::time::sleep(self.takes).await;
        Ok(())
    }
}

async fn clerk(capacity: usize, takes: Duration) -> (Pool<Clerk>, Log) {
    let (log, since) = (Log::default(), Instant::now());
    let theirs = log.clone();
    let pool = Pool::new(move |_| Clerk { log: theirs.clone(), since, takes });
    (pool.workers(1).capacity(capacity).spawn().await.unwrap(), log)
}

#[tokio::test(start_paused = true)]
async fn a18_a_message_is_sent_after_the_delay_and_not_before() {
    let (pool, log) = clerk(9, Duration::ZERO).await;
    let timer = pool.send_after(1, 3 * SECOND);
    tokio::time::sleep(3 * SECOND - Duration::from_millis(2)).await;
    assert_eq!((timer.state(), log.seconds_and_messages()), (TimerState::Pending, vec![]));
    tokio::time::sleep(SECOND).await;
    assert_eq!(log.seconds_and_messages(), [(3, 1)]);
    assert_eq!(timer.state(), TimerState::Fired);
    assert!(!timer.cancel(), "what has fired cannot be cancelled");
}

#[tokio::test(start_paused = true)]
async fn a18_timers_fire_by_time_and_then_in_the_order_in_which_they_were_set() {
    let (pool, log) = clerk(9, Duration::ZERO).await;
    for (seconds, message) in [(5, 1), (2, 2), (2, 3), (0, 4), (2, 5)] {
        let _ = pool.send_after(message, seconds * SECOND);
    }
    tokio::time::sleep(9 * SECOND).await;
    assert_eq!(log.seconds_and_messages(), [(0, 4), (2, 2), (2, 3), (2, 5), (5, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a18_a_timer_that_is_set_later_and_due_sooner_fires_on_time() {
    let (pool, log) = clerk(9, Duration::ZERO).await;
    let _ = pool.send_after(1, 9 * SECOND);
    tokio::time::sleep(SECOND).await;
    let _ = pool.send_after(2, SECOND);
    tokio::time::sleep(9 * SECOND).await;
    assert_eq!(log.seconds_and_messages(), [(2, 2), (9, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a18_a_cancelled_timer_never_fires_and_its_message_is_dropped_at_once() {
    struct Held(#[expect(dead_code, reason = "held to see it dropped")] Arc<()>);
    struct Nobody;
    impl Actor for Nobody {
        type Message = Held;
        type Reply = ();
        type Error = ();
        async fn handle(&mut self, _: Held, _cx: &mut Context<Self>) -> Result<(), ()> {
            panic!("it was cancelled");
        }
    }
    let pool = Pool::new(|_| Nobody).spawn().await.unwrap();
    let alive = Arc::new(());
    let timer = pool.send_after(Held(alive.clone()), SECOND);
    assert!(timer.cancel());
    assert_eq!(Arc::strong_count(&alive), 1);
    assert!(!timer.cancel(), "once is enough");
    tokio::time::sleep(9 * SECOND).await;
    assert_eq!((timer.state(), pool.stats().accepted), (TimerState::Cancelled, 0));
}

#[tokio::test(start_paused = true)]
async fn a18_dropping_the_handle_does_not_cancel() {
    let (pool, log) = clerk(9, Duration::ZERO).await;
    drop(pool.send_after(1, SECOND));
    drop(pool.send_every(2, 2 * SECOND));
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(log.seconds_and_messages(), [(1, 1), (2, 2), (4, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a18_a_periodic_timer_does_not_drift_and_ends_when_it_is_cancelled() {
    let (pool, log) = clerk(9, Duration::ZERO).await;
    let mut next = 0;
    let make = move || {
        next += 1;
        next
    };
    let timer = pool.send_every_with(make, Duration::from_millis(1_500));
    tokio::time::sleep(7 * SECOND).await;
    assert_eq!(log.seconds_and_messages(), [(1, 1), (3, 2), (4, 3), (6, 4)]);
    assert!(timer.cancel());
    tokio::time::sleep(9 * SECOND).await;
    assert_eq!(log.seconds_and_messages().len(), 4);
    assert_eq!(timer.skipped(), 0);
}

#[tokio::test(start_paused = true)]
async fn a18_a_tick_that_finds_the_mailbox_full_is_skipped_and_counted() {
    let (pool, log) = clerk(1, Duration::from_millis(9_500)).await;
    let timer = pool.send_every(7, SECOND);
    // The first is in hand until second 10.5, the second waits; those of 3 to 10 find no room.
    tokio::time::sleep(Duration::from_millis(11_500)).await;
    assert_eq!((timer.skipped(), pool.stats().accepted), (8, 3));
    assert_eq!(timer.state(), TimerState::Pending, "it goes on");
    assert_eq!(log.seconds_and_messages(), [(1, 7), (10, 7)]);
}

#[tokio::test(start_paused = true)]
async fn a18_a_one_shot_that_finds_the_mailbox_full_waits_for_room() {
    let (pool, log) = clerk(1, 10 * SECOND).await;
    pool.send(1).await.unwrap();
    tokio::task::yield_now().await;
    pool.send(2).await.unwrap();
    let timer = pool.send_after(3, SECOND);
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(timer.state(), TimerState::Pending);
    tokio::time::sleep(20 * SECOND).await;
    assert_eq!(timer.state(), TimerState::Fired);
    assert_eq!(log.seconds_and_messages(), [(0, 1), (10, 2), (20, 3)]);
}

#[tokio::test(start_paused = true)]
async fn a18_a_one_shot_that_waits_for_room_can_be_cancelled() {
    let (pool, log) = clerk(1, 10 * SECOND).await;
    pool.send(1).await.unwrap();
    tokio::task::yield_now().await;
    pool.send(2).await.unwrap();
    let tasks = Handle::current().metrics().num_alive_tasks();
    let timer = pool.send_after(3, SECOND);
    tokio::time::sleep(5 * SECOND).await;
    assert!(timer.cancel());
    tokio::time::sleep(SECOND).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks, "its task is gone");
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(log.seconds_and_messages(), [(0, 1), (10, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a18_a_tick_to_an_actor_that_is_gone_ends_the_timer() {
    let (pool, _log) = clerk(9, Duration::ZERO).await;
    let (every, once) = (pool.send_every(1, SECOND), pool.send_after(2, 5 * SECOND));
    drop(pool);
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!((every.state(), once.state()), (TimerState::Ended, TimerState::Pending));
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(once.state(), TimerState::Ended);
}

#[tokio::test(start_paused = true)]
async fn a18_a_tick_to_an_actor_that_was_stopped_ends_the_timer() {
    let (pool, log) = clerk(9, Duration::ZERO).await;
    let (every, once) = (pool.send_every(1, SECOND), pool.send_after(2, SECOND));
    pool.stop(Stop::Now).await;
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!((every.state(), once.state()), (TimerState::Ended, TimerState::Ended));
    assert_eq!(log.seconds_and_messages(), []);
}

#[tokio::test(start_paused = true)]
async fn a18_a_timer_does_not_keep_its_actor_alive() {
    let (pool, log) = clerk(9, Duration::ZERO).await;
    let (_every, _once) = (pool.send_every(1, SECOND), pool.send_after(2, 9 * SECOND));
    let weak = pool.downgrade();
    drop(pool);
    assert!(!weak.is_alive());
    tokio::time::sleep(20 * SECOND).await;
    assert_eq!(log.seconds_and_messages(), []);
}

#[tokio::test(start_paused = true)]
async fn a18_pending_timers_cost_one_task_for_all_and_none_when_they_are_gone() {
    let (pool, log) = clerk(200_000, Duration::ZERO).await;
    let alive = || Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let timers: Vec<_> = (0..100_000).map(|n| pool.send_after(n, n % 60 * SECOND)).collect();
    assert_eq!(alive(), before + 1);
    for timer in timers.iter().skip(1).step_by(2) {
        assert!(timer.cancel());
    }
    tokio::time::sleep(61 * SECOND).await;
    assert_eq!(log.seconds_and_messages().len(), 50_000);
    assert!(log.seconds_and_messages().iter().all(|(second, n)| *second == u64::from(n % 60)));
    assert_eq!(alive(), before, "no timer is left");
    let _ = pool.send_after(1, SECOND);
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!((log.seconds_and_messages().len(), alive()), (50_001, before));
}

#[tokio::test(start_paused = true)]
async fn a18_a_panic_where_messages_are_made_ends_that_timer_alone() {
    let (pool, log) = clerk(9, Duration::ZERO).await;
    let bad = pool.send_every_with(|| panic!("no message"), SECOND);
    let good = pool.send_every(1, SECOND);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!((bad.state(), good.state()), (TimerState::Ended, TimerState::Pending));
    assert_eq!(log.seconds_and_messages(), [(1, 1), (2, 1)]);
    assert!(pool.try_reserve().is_ok(), "its room was given back");
}

#[tokio::test(start_paused = true)]
async fn a18_a_timer_may_set_timers_and_cancel_itself() {
    let (pool, log) = clerk(9, Duration::ZERO).await;
    let own = Arc::new(Mutex::new(None::<greenroom::Timer>));
    let (theirs, address) = (own.clone(), pool.address().downgrade());
    let timer = pool.send_every_with(
        move || {
            let _ = address.upgrade().unwrap().send_after(2, SECOND);
            if let Some(timer) = theirs.lock().take() {
                assert!(timer.cancel());
            }
            1
        },
        SECOND,
    );
    *own.lock() = Some(timer);
    tokio::time::sleep(9 * SECOND).await;
    assert_eq!(log.seconds_and_messages(), [(2, 2)], "cancelled while it rang");
}

#[tokio::test(start_paused = true)]
async fn a18_delays_may_be_absurd() {
    let (pool, log) = clerk(9, Duration::ZERO).await;
    let never = [
        pool.send_after(1, Duration::MAX),
        pool.send_every(1, Duration::MAX),
        pool.send_after(1, Duration::from_secs(u64::MAX)),
    ];
    let busy = pool.send_every(2, Duration::ZERO);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(busy.cancel());
    assert!((9..=10).contains(&log.seconds_and_messages().len()), "one in a millisecond");
    assert!(never.iter().all(|timer| timer.state() == TimerState::Pending && timer.cancel()));
}

#[tokio::test(start_paused = true)]
async fn a18_ticks_that_the_runtime_was_too_late_for_are_skipped_and_counted() {
    let (pool, log) = clerk(9, Duration::ZERO).await;
    let timer = pool.send_every(1, SECOND);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    // The clock jumps, as for a thread that was held up.
    tokio::time::advance(Duration::from_millis(3_500)).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    // The tick of second 2 is sent late; those of 3 and 4 have passed.
    assert_eq!((timer.skipped(), log.seconds_and_messages()), (2, vec![(1, 1), (4, 1), (5, 1)]));
}

#[test]
fn a18_a_timer_ends_with_its_runtime_and_can_be_set_from_any_thread() {
    let theirs =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build();
    let theirs = theirs.unwrap();
    let (pool, _log) = theirs.block_on(clerk(9, Duration::ZERO));
    let timer = pool.send_after(1, 3_600 * SECOND);
    assert_eq!(timer.state(), TimerState::Pending);
    theirs.shutdown_timeout(SECOND);
    assert_eq!(timer.state(), TimerState::Ended);
    assert_eq!(pool.send_after(1, SECOND).state(), TimerState::Ended, "nobody would serve it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a18_a_timer_is_cancelled_or_fires_never_both() {
    struct Count(Arc<AtomicUsize>);
    impl Actor for Count {
        type Message = ();
        type Reply = ();
        type Error = ();
        async fn handle(&mut self, (): (), _cx: &mut Context<Self>) -> Result<(), ()> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }
    let handled = Arc::new(AtomicUsize::new(0));
    let theirs = handled.clone();
    // A small capacity, so that some timers are cancelled while they wait in line.
    let pool = Pool::new(move |_| Count(theirs.clone())).workers(1).capacity(2);
    let pool = pool.spawn().await.unwrap();
    let delay = |n: u64| Duration::from_micros(n * 5);
    let timers: Vec<_> = (0..2_000).map(|n| pool.send_after((), delay(n))).collect();
    let mut cancelled = 0;
    for timer in timers.iter().rev() {
        cancelled += usize::from(timer.cancel());
        tokio::task::yield_now().await;
    }
    let fired = timers.iter().filter(|timer| timer.state() == TimerState::Fired).count();
    let all_sent = async {
        while pool.stats().accepted < fired as u64 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(60 * SECOND, all_sent).await.unwrap();
    pool.stop(Stop::within(60 * SECOND)).await;
    assert_eq!((fired, fired + cancelled), (handled.load(Ordering::SeqCst), 2_000));
}
