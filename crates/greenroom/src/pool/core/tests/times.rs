//! The reported times of a message that went to an idle worker on one thread, if the clock was not
//! read for it.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use greenroom_queue::watchdog::{Watched, WatchedPool};
use parking_lot::Mutex;

use crate::{Actor, Address, Answer, Backoff, Context, DeadLetter, Delivery, Pool, PoolBuilder};

const HOUR: Duration = Duration::from_secs(3600);
const A_WHILE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Do {
    Nothing,
    Wait,
    /// Waits, and then panics.
    Panic,
    /// Sends another message to the pool, and returns once that has been handled.
    Send,
}

/// How old the messages were when the handler checked.
type Ages = Arc<Mutex<Vec<(Do, Duration)>>>;

struct Diarist {
    ages: Ages,
    itself: Arc<Mutex<Option<Address<Do, (), ()>>>>,
}

impl Actor for Diarist {
    type Message = Do;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, _: Do, _: &mut Context<Self>) -> Result<(), ()> {
        unreachable!("it receives deliveries")
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Do, (), ()>,
        _: &mut Context<Self>,
    ) -> Result<Answer<()>, ()> {
        let what = delivery.take();
        match what {
            Do::Nothing => {}
            Do::Wait => tokio::time::sleep(A_WHILE).await,
            Do::Panic => {
                tokio::time::sleep(A_WHILE).await;
                panic!("asked for");
            }
            Do::Send => {
                let itself = self.itself.lock().clone().unwrap();
                itself.try_send(Do::Nothing).unwrap();
                while !self.ages.lock().iter().any(|(what, _)| *what == Do::Nothing) {
                    tokio::time::sleep(A_WHILE).await;
                }
            }
        }
        self.ages.lock().push((what, delivery.queued_for()));
        Ok(Answer::Reply(()))
    }
}

/// A pool that was idle for an hour.
async fn idle(
    set_up: impl FnOnce(PoolBuilder<Diarist>) -> PoolBuilder<Diarist>,
) -> (Pool<Diarist>, Ages) {
    let (ages, itself) = (Ages::default(), Arc::new(Mutex::new(None)));
    let of_workers = (ages.clone(), itself.clone());
    let builder =
        Pool::new(move |_| Diarist { ages: of_workers.0.clone(), itself: of_workers.1.clone() });
    let pool = set_up(builder.workers(2)).spawn().await.unwrap();
    *itself.lock() = Some(pool.address());
    // The first ones are measured, which reads the clock, until handlers turn out to be quick.
    for _ in 0..8 {
        pool.call(Do::Nothing).await.unwrap();
    }
    ages.lock().clear();
    tokio::time::sleep(HOUR).await;
    (pool, ages)
}

#[tokio::test(start_paused = true)]
async fn a_handler_finds_no_older_message_than_there_is() {
    let (pool, ages) = idle(|pool| pool).await;
    pool.call(Do::Nothing).await.unwrap();
    tokio::time::sleep(HOUR).await;
    pool.call(Do::Wait).await.unwrap();
    assert_eq!(*ages.lock(), [(Do::Nothing, Duration::ZERO), (Do::Wait, A_WHILE)]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_busy_since_it_has_something_in_hand() {
    let (pool, _) = idle(|pool| pool).await;
    let look = async {
        tokio::time::sleep(A_WHILE / 2).await;
        let workers = pool.admin().worker_stats();
        workers.iter().filter_map(|worker| worker.busy_for).collect::<Vec<_>>()
    };
    let (done, busy) = tokio::join!(pool.call(Do::Wait), look);
    assert_eq!((done, busy), (Ok(()), vec![A_WHILE / 2]));
    assert!(pool.admin().worker_stats().iter().all(|worker| worker.busy_for.is_none()));
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_sends_is_no_older_than_it_is() {
    let (pool, ages) = idle(|pool| pool).await;
    pool.call(Do::Send).await.unwrap();
    assert_eq!(*ages.lock(), [(Do::Nothing, Duration::ZERO), (Do::Send, A_WHILE)]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_its_worker_grows_old_from_when_somebody_looks() {
    let (pool, ages) = idle(|pool| pool).await;
    let mut call = pool.call(Do::Wait);
    assert!(poll_fn(|cx| Poll::Ready(std::pin::Pin::new(&mut call).poll(cx))).await.is_pending());
    assert_eq!(pool.stats().oldest, Some(Duration::ZERO), "not an hour");
    let look = async {
        tokio::time::sleep(A_WHILE / 2).await;
        let workers = pool.admin().worker_stats();
        workers.iter().find_map(|worker| worker.busy_for)
    };
    let (done, busy) = tokio::join!(call, look);
    assert_eq!((done, busy), (Ok(()), Some(A_WHILE / 2)), "the clock goes again since then");
    assert_eq!(*ages.lock(), [(Do::Wait, A_WHILE)]);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_and_another_attempt_are_as_old_as_their_message() {
    for attempts in [1, 2] {
        let letters = Arc::new(Mutex::new(Vec::new()));
        let kept = letters.clone();
        let (pool, _) = idle(|pool| {
            pool.retry(attempts, Backoff::new(Duration::ZERO, Duration::ZERO))
                .on_dead_letter(move |letter: DeadLetter<Do, ()>| kept.lock().push(letter.age))
        })
        .await;
        assert!(pool.call(Do::Panic).await.is_err());
        let age = A_WHILE * attempts;
        assert_eq!(*letters.lock(), [Some(age)]);
    }
}

/// The clock of a quiet pool was stopped until the watchdog turned away, and senders took it for
/// set: the next message seemed up to half a second older than it was.
#[tokio::test(start_paused = true)]
async fn p25_a_quiet_pool_has_its_clock_set_for_as_long_as_it_is_watched() {
    let builder = Pool::new(|_| Diarist { ages: Ages::default(), itself: Arc::default() });
    let core = builder.workers(1).spawn_core().await.unwrap();
    tokio::time::sleep(A_WHILE).await;
    let quiet: Arc<dyn Watched> = core.clone();
    assert!(!quiet.is_busy());
    let mut watched = WatchedPool::new(Arc::downgrade(&quiet));
    while watched.look() {
        let late = core.frame.telemetry.coarse.real() - core.frame.telemetry.coarse.shown();
        assert!(late < 1_000_000, "it is late by {late} ns");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
