//! Calls that are handed to an idle worker end like any other call, whatever their handlers do.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    Address, Answer, Backoff, CallError, Delivery, Envelope, PoolBuilder, Restarts, Stop,
    StopReport, prelude::*,
};

const PATIENCE: Stop = Stop::within(Duration::from_secs(60));

/// What a handler does before it answers with the number.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// Nothing.
    AtOnce,
    /// Like `AtOnce`, but sent: no caller waits.
    Sent,
    Sleeps,
    /// Takes the port of its caller and answers from another task, at once or later.
    HandsOn,
    HandsOnLater,
    /// Like `HandsOn`, after a sleep.
    SleepsAndHandsOn,
    Forwards,
    /// Fails to forward to an address that takes nothing, gets the message back, and answers.
    FailsToForward,
    FailsOnce,
    PanicsOnce,
    /// Leaves its message in place.
    LooksAtIt,
    Never,
}

const WAYS: [Way; 10] = [
    Way::AtOnce,
    Way::Sleeps,
    Way::HandsOn,
    Way::HandsOnLater,
    Way::SleepsAndHandsOn,
    Way::Forwards,
    Way::FailsToForward,
    Way::FailsOnce,
    Way::PanicsOnce,
    Way::LooksAtIt,
];

type Job = (u32, Way);
type Clerks = Address<Job, u32, &'static str>;

/// The handled messages, in order.
type Log = Arc<Mutex<Vec<u32>>>;

struct Clerk {
    log: Log,
    next: Option<Clerks>,
}

impl Actor for Clerk {
    type Message = Job;
    type Reply = u32;
    type Error = &'static str;

    async fn handle(&mut self, _: Job, _: &mut Context<Self>) -> Result<u32, &'static str> {
        unreachable!("receive does it")
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Job, u32, &'static str>,
        _cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, &'static str> {
        let (number, way) = *delivery.message().ok_or("it has no message")?;
        self.log.lock().unwrap().push(number);
        assert_eq!(delivery.is_call(), way != Way::Sent, "whether somebody waits for the reply");
        let first = delivery.attempt() == 1;
        let hand_on = |delivery: &mut Delivery<_, _, _>| {
            let port = delivery.take_reply_port().unwrap();
            assert!(!delivery.is_call() && delivery.take_reply_port().is_none());
            port
        };
        match way {
            Way::AtOnce | Way::Sent => {}
            Way::LooksAtIt => return Ok(Answer::Reply(number)),
            Way::Sleeps => tokio::time::sleep(Duration::from_millis(5)).await,
            Way::Never => std::future::pending().await,
            Way::FailsOnce if first => return Err("asked for"),
            Way::PanicsOnce if first => panic!("asked for"),
            Way::FailsOnce | Way::PanicsOnce => {}
            Way::HandsOn => {
                hand_on(delivery).reply(number).unwrap();
                return Ok(Answer::Deferred);
            }
            Way::HandsOnLater => {
                let port = hand_on(delivery);
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    port.reply(number).unwrap();
                });
                return Ok(Answer::Deferred);
            }
            Way::SleepsAndHandsOn => {
                tokio::time::sleep(Duration::from_millis(5)).await;
                hand_on(delivery).reply(number).unwrap();
                return Ok(Answer::Deferred);
            }
            Way::Forwards => {
                let next = self.next.as_ref().ok_or("there is nobody")?;
                *delivery.message_mut().unwrap() = (number, Way::AtOnce);
                delivery.forward(next).await.map_err(|_| "it was refused")?;
                return Ok(Answer::Deferred);
            }
            Way::FailsToForward => {
                let closed = Pool::new(|_| Clerk { log: Log::default(), next: None });
                let closed = closed.workers(1).spawn().await.unwrap();
                let to = closed.address();
                closed.stop(PATIENCE).await;
                assert!(delivery.forward(&to).await.is_err());
                assert!(delivery.is_call());
            }
        }
        delivery.take();
        Ok(Answer::Reply(number))
    }
}

fn clerks(workers: usize, next: Option<Clerks>) -> (PoolBuilder<Clerk>, Log) {
    let log = Log::default();
    let of_workers = log.clone();
    let pool = Pool::new(move |_| Clerk { log: of_workers.clone(), next: next.clone() });
    (pool.workers(workers).quick_handlers(true), log)
}

/// Waits until all workers have parked, on virtual time.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn on_threads<F: Future<Output = ()> + Send + 'static>(threads: usize, run: F) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(threads).enable_all().build().unwrap();
    runtime.block_on(async { tokio::spawn(run).await.unwrap() });
}

async fn stopped(pool: Pool<Clerk>) -> StopReport<Job> {
    let report = pool.stop(PATIENCE).await;
    assert!(report.stats.ledger_holds(), "{:?}", report.stats);
    report
}

#[tokio::test(start_paused = true)]
async fn a06_whatever_a_handler_does_the_caller_has_the_reply() {
    let (next, _) = clerks(1, None);
    let next = next.spawn().await.unwrap();
    for retried in [false, true] {
        let (pool, _) = clerks(2, Some(next.address()));
        let pool = match retried {
            true => pool.retry(3, Backoff::new(Duration::from_millis(1), Duration::from_millis(1))),
            false => pool,
        };
        let pool = pool.spawn().await.unwrap();
        for (number, way) in (1..).zip(WAYS) {
            settle().await;
            let expected = match way {
                Way::FailsOnce if !retried => Err(CallError::Failed("asked for")),
                Way::PanicsOnce if !retried => Err(CallError::Panicked("asked for".into())),
                _ => Ok(number),
            };
            assert_eq!(pool.call((number, way)).await, expected, "{way:?}, {retried}");
        }
        let stats = stopped(pool).await.stats;
        assert_eq!((stats.accepted, stats.forwarded), (WAYS.len() as u64, 1));
        assert_eq!(stats.retries, if retried { 2 } else { 0 });
    }
}

#[tokio::test(start_paused = true)]
async fn a06_limits_of_time_and_stops_end_calls() {
    let (pool, _) = clerks(1, None);
    let pool = pool.time_limit(Duration::from_millis(10)).spawn().await.unwrap();
    settle().await;
    assert_eq!(pool.call((1, Way::Never)).await, Err(CallError::TimedOut));
    stopped(pool).await;

    let (pool, log) = clerks(1, None);
    let pool = pool.spawn().await.unwrap();
    settle().await;
    let address = pool.address();
    let calling = tokio::spawn(async move { address.call((1, Way::Never)).await });
    while log.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let report = pool.stop(Stop::within(Duration::from_millis(10))).await;
    assert!(report.stats.ledger_holds());
    assert_eq!(report.stats.returned, 1);
    assert_eq!(calling.await.unwrap(), Err(CallError::Stopped));
}

#[tokio::test(start_paused = true)]
async fn a09_a_caller_that_gives_up_is_missed_by_nobody() {
    let (pool, _) = clerks(1, None);
    let pool = pool.spawn().await.unwrap();
    settle().await;
    let limit = Duration::from_millis(1);
    let given_up = tokio::time::timeout(limit, pool.call((1, Way::Sleeps))).await;
    assert!(given_up.is_err(), "it sleeps for longer");
    for number in [2, 3] {
        let reply = pool.call((number, Way::Sleeps)).await;
        assert_eq!(reply, Ok(number), "and not what the other waited for");
        settle().await;
    }
    stopped(pool).await;
}

#[tokio::test(start_paused = true)]
async fn a02_a_call_overtakes_nothing_of_its_sender() {
    let (pool, log) = clerks(1, None);
    let pool = pool.spawn().await.unwrap();
    settle().await;
    for number in 1..=3 {
        pool.try_send((number, Way::Sent)).unwrap();
    }
    assert_eq!(pool.call((4, Way::AtOnce)).await, Ok(4));
    assert_eq!(*log.lock().unwrap(), [1, 2, 3, 4]);
    stopped(pool).await;
}

/// All of these at once, from several threads, together with calls that are queued because they
/// have metadata.
#[test]
fn a06_calls_of_every_way_from_many_tasks_have_each_their_own_reply() {
    on_threads(4, async {
        let (next, _) = clerks(2, None);
        let next = next.spawn().await.unwrap();
        let (pool, _) = clerks(3, Some(next.address()));
        let pool = pool.retry(3, Backoff::new(Duration::from_millis(1), Duration::from_millis(1)));
        let pool =
            pool.restarts(Restarts { max: 1_000, ..Restarts::default() }).spawn().await.unwrap();
        let callers: Vec<_> = (0..6_u32)
            .map(|caller| {
                let to = pool.address();
                tokio::spawn(async move {
                    for turn in 0..600_u32 {
                        let number = caller * 1_000 + turn;
                        let rare = turn.is_multiple_of(50);
                        let way = if rare { WAYS[(turn / 50 % 10) as usize] } else { Way::AtOnce };
                        let reply = match turn % 7 {
                            3 => to.call_with((number, way), Envelope::new().trace("t")).await,
                            _ => to.call((number, way)).await,
                        };
                        assert_eq!(reply, Ok(number), "{way:?}");
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
        let stats = stopped(pool).await.stats;
        assert_eq!((stats.accepted, stats.handled), (3_600, 3_600));
    });
}
