//! How calls end (A06, A08, A09), and what forwarding keeps (A07).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    Actor, Address, Answer, Backoff, CallError, Class, Context, DeadLetterReason, Delivery,
    Envelope, ForwardError, NotAccepted, Overflow, Pool, PoolBuilder, PoolStats, ReplyPort,
    Restarts, Stop, WeakAddress,
    policy::{About, Choice, Crew, Policy},
};
use tokio::time::Instant;

/// What a message asks of its handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Echo(u32),
    Sleep(u64),
    Fail,
    Panic,
    PanicLater,
    DropPort,
    /// Answers after so many milliseconds, from another task; the handler returns at once.
    Later(u64),
    /// Calls the pool that it knows, with an echo.
    CallOn(u32),
    /// As `CallOn`, all workers after a while.
    CallOnTogether(u32),
    /// Two calls at once.
    CallTwice(u32),
    /// `ask`s the pool that it knows.
    CallFromTask(u32),
    /// Forwards itself to the pool that it knows, until it arrives where none is known.
    Forward,
    /// As `Forward`, without waiting.
    TryForward,
    ForwardAndFail,
    ForwardAndPanic,
    /// Gives up forwarding after so many milliseconds, and answers 0.
    ForwardWithin(u64),
}

type Answered = Result<u32, CallError<String>>;
type Desks = Address<Ask, u32, String>;

/// What became dead letters, and why.
type Dead = Vec<(Option<Ask>, DeadLetterReason)>;

/// What the workers of a pool know, and what has been seen.
#[derive(Clone, Default)]
struct Hall {
    next: Arc<Mutex<Option<WeakAddress<Ask, u32, String>>>>,
    carried: Arc<Mutex<Vec<Carried>>>,
    forwards: Arc<Mutex<Vec<Result<(), ForwardError>>>>,
    dead: Arc<Mutex<Dead>>,
}

/// What a delivery says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Carried {
    message: Option<Ask>,
    class: Class,
    sender: Option<String>,
    left: Option<Duration>,
    trace: Option<String>,
    attempt: u32,
    is_call: bool,
}

impl Carried {
    fn by(delivery: &Delivery<Ask, u32, String>) -> Self {
        Self {
            message: delivery.message().copied(),
            class: delivery.class(),
            sender: delivery.sender().map(|sender| sender.name().to_owned()),
            left: delivery.time_left(),
            trace: delivery.trace().map(str::to_owned),
            attempt: delivery.attempt(),
            is_call: delivery.is_call(),
        }
    }
}

impl Hall {
    fn knows(&self, address: &Desks) {
        *self.next.lock().unwrap() = Some(address.downgrade());
    }

    fn next(&self) -> Option<Desks> {
        self.next.lock().unwrap().as_ref()?.upgrade()
    }

    fn pool(&self, workers: usize) -> PoolBuilder<Desk> {
        let (hall, dead) = (self.clone(), self.dead.clone());
        Pool::new(move |_| Desk(hall.clone())).workers(workers).capacity(100).on_dead_letter(
            move |letter| dead.lock().unwrap().push((letter.message, letter.reason)),
        )
    }

    /// A pool whose workers know it.
    async fn own(workers: usize) -> (Pool<Desk>, Self) {
        let hall = Self::default();
        let pool = hall.pool(workers).spawn().await.unwrap();
        hall.knows(&pool.address());
        (pool, hall)
    }

    fn dead(&self) -> Vec<(Option<Ask>, DeadLetterReason)> {
        self.dead.lock().unwrap().clone()
    }
}

struct Desk(Hall);

fn told(answer: Answered) -> Result<u32, String> {
    answer.map_err(|error| format!("{error:?}"))
}

impl Actor for Desk {
    type Message = Ask;
    type Reply = u32;
    type Error = String;

    async fn handle(&mut self, ask: Ask, _: &mut Context<Self>) -> Result<u32, String> {
        let next = || self.0.next().unwrap();
        match ask {
            Ask::Echo(number) => Ok(number),
            Ask::Sleep(ms) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok(0)
            }
            Ask::Fail => Err("no".to_owned()),
            Ask::Panic => panic!("boom"),
            Ask::PanicLater => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                panic!("late boom")
            }
            Ask::CallOn(number) => told(next().call(Ask::Echo(number)).await),
            Ask::CallOnTogether(number) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                told(next().call(Ask::Echo(number)).await)
            }
            Ask::CallTwice(number) => {
                let next = next();
                let (one, two) =
                    tokio::join!(next.call(Ask::Echo(number)), next.call(Ask::Sleep(5)));
                Ok(told(one)? + told(two)?)
            }
            Ask::CallFromTask(number) => {
                let next = next();
                let call = tokio::spawn(async move { next.call(Ask::Echo(number)).await });
                // Waiting for it would be the deadlock that nobody can know of.
                drop(call);
                Ok(number)
            }
            other => unreachable!("{other:?} is handled in receive"),
        }
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Ask, u32, String>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, String> {
        self.0.carried.lock().unwrap().push(Carried::by(delivery));
        let ask = *delivery.message().unwrap();
        let forwards = matches!(
            ask,
            Ask::Forward
                | Ask::TryForward
                | Ask::ForwardAndFail
                | Ask::ForwardAndPanic
                | Ask::ForwardWithin(_)
        );
        if forwards {
            return match self.0.next() {
                Some(next) => self.forward(ask, delivery, next).await,
                None => Ok(Answer::Reply(99)),
            };
        }
        match ask {
            Ask::DropPort => {
                drop(delivery.take_reply_port());
                Ok(Answer::Elsewhere)
            }
            Ask::Later(ms) => {
                let port = delivery.take_reply_port();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    port.map(|port| port.reply(7))
                });
                Ok(Answer::Elsewhere)
            }
            _ => self.handle(delivery.take(), cx).await.map(Answer::Reply),
        }
    }
}

impl Desk {
    async fn forward(
        &self,
        ask: Ask,
        delivery: &mut Delivery<Ask, u32, String>,
        next: Desks,
    ) -> Result<Answer<u32>, String> {
        let forwarded = match ask {
            Ask::TryForward => delivery.try_forward(&next),
            Ask::ForwardWithin(ms) => {
                let forward = delivery.forward(&next);
                let Ok(forwarded) = tokio::time::timeout(Duration::from_millis(ms), forward).await
                else {
                    self.0.carried.lock().unwrap().push(Carried::by(delivery));
                    return Ok(Answer::Reply(0));
                };
                forwarded
            }
            _ => delivery.forward(&next).await,
        };
        self.0.forwards.lock().unwrap().push(forwarded);
        match (forwarded, ask) {
            (Ok(()), Ask::ForwardAndFail) => Err("after it was forwarded".to_owned()),
            (Ok(()), Ask::ForwardAndPanic) => panic!("after it was forwarded"),
            (Ok(()), _) => Ok(Answer::Elsewhere),
            (Err(_), _) => {
                self.0.carried.lock().unwrap().push(Carried::by(delivery));
                Ok(Answer::Reply(1))
            }
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);
const SOON: Stop = Stop::within(Duration::from_secs(3_600));
const DEADLOCK: &str = "WouldDeadlock";

fn deadlock() -> Answered {
    Err(CallError::Failed(DEADLOCK.to_owned()))
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Nothing hangs: on virtual time, an hour is for ever.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(3_600), future).await.expect("it hangs")
}

fn holds(stats: PoolStats) {
    assert!(stats.ledger_holds() && stats.queued + stats.waiting + stats.in_hand == 0, "{stats:?}");
}

// ---------------------------------------------------------------------------------------------------------------- A06

#[tokio::test(start_paused = true)]
async fn a06_a_call_ends_in_failed_panicked_dropped_or_stopped() {
    let (pool, _) = Hall::own(1).await;
    assert_eq!(pool.call(Ask::Fail).await, Err(CallError::Failed("no".to_owned())));
    assert_eq!(pool.call(Ask::Panic).await, Err(CallError::Panicked("boom".to_owned())));
    assert_eq!(pool.call(Ask::DropPort).await, Err(CallError::Dropped));
    pool.send(Ask::Sleep(10_000)).await.unwrap();
    settle().await;
    let (queued, report) = tokio::join!(pool.call(Ask::Echo(1)), pool.stop(Stop::within(SECOND)));
    assert_eq!((queued, report.left_over.len()), (Err(CallError::Stopped), 1));
    assert_eq!(pool.call(Ask::Echo(1)).await, Err(CallError::Stopped));
    holds(pool.stats());
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_that_finds_no_room_ends_in_full_dropped_or_evicted() {
    for (overflow, expected) in
        [(Overflow::Reject, CallError::Full), (Overflow::DropNewest, CallError::Dropped)]
    {
        let hall = Hall::default();
        let pool = hall.pool(1).capacity(1).overflow(overflow).spawn().await.unwrap();
        pool.try_send(Ask::Sleep(10)).unwrap();
        settle().await;
        pool.try_send(Ask::Echo(1)).unwrap();
        assert_eq!(pool.call(Ask::Echo(2)).await, Err(expected));
        assert_eq!(pool.stats().rejected, 1);
        holds(pool.stop(SOON).await.stats);
    }
    let hall = Hall::default();
    let pool = hall.pool(1).capacity(1).overflow(Overflow::DropOldest).spawn().await.unwrap();
    pool.try_send(Ask::Sleep(10)).unwrap();
    settle().await;
    let (first, second) = tokio::join!(pool.call(Ask::Echo(1)), pool.call(Ask::Echo(2)));
    assert_eq!((first, second), (Err(CallError::Evicted), Ok(2)));
    assert_eq!(hall.dead(), [(Some(Ask::Echo(1)), DeadLetterReason::Evicted)]);
    holds(pool.stop(SOON).await.stats);
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_to_a_pool_without_workers_ends_in_no_workers() {
    let hall = Hall::default();
    let restarts = Restarts { max: 0, ..Restarts::default() };
    let pool = hall.pool(1).restarts(restarts).spawn().await.unwrap();
    let (in_hand, queued) =
        soon(async { tokio::join!(pool.call(Ask::PanicLater), pool.call(Ask::Echo(1))) }).await;
    assert_eq!(in_hand, Err(CallError::Panicked("late boom".to_owned())));
    assert_eq!(queued, Err(CallError::NoWorkers));
    assert_eq!(pool.call(Ask::Echo(2)).await, Err(CallError::NoWorkers));
    holds(pool.stats());
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_that_killed_too_many_workers_ends_in_poisoned() {
    let hall = Hall::default();
    let pool = hall.pool(1).retry(5, Backoff::new(SECOND, SECOND)).poison_limit(2);
    let pool = pool.spawn().await.unwrap();
    assert_eq!(pool.call(Ask::Panic).await, Err(CallError::Poisoned { kills: 2 }));
    assert_eq!(hall.dead(), [(Some(Ask::Panic), DeadLetterReason::Poisoned)]);
    holds(pool.stop(SOON).await.stats);
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_ends_in_expired_at_its_deadline_and_in_timed_out_at_the_callers_limit() {
    let (pool, hall) = Hall::own(1).await;
    pool.send(Ask::Sleep(1_000)).await.unwrap();
    settle().await;
    let begun = Instant::now();
    let soon = Duration::from_millis(100);
    let (expired, timed_out, patient) = tokio::join!(
        pool.call_with(Ask::Echo(1), Envelope::new().deadline(soon)),
        pool.call_timeout(Ask::Echo(2), soon),
        pool.call_timeout(Ask::Echo(3), 2 * SECOND),
    );
    assert_eq!(expired, Err(CallError::Expired));
    assert_eq!(timed_out, Err(CallError::TimedOut));
    assert_eq!(patient, Ok(3));
    assert!(begun.elapsed() < SECOND);
    let dead = [
        (Some(Ask::Echo(1)), DeadLetterReason::Expired),
        (Some(Ask::Echo(2)), DeadLetterReason::Abandoned),
    ];
    assert_eq!(hall.dead(), dead);
    // A message that had been started is handled all the same.
    assert_eq!(pool.call_timeout(Ask::Sleep(200), soon).await, Err(CallError::TimedOut));
    let stats = pool.stop(SOON).await.stats;
    assert_eq!((stats.handled, stats.dead_lettered), (3, 2));
    holds(stats);
}

/// Wants no echo of zero.
struct Picky;

impl Policy<Ask> for Picky {
    fn choose(&self, message: &Ask, _: &About<'_>, _: &Crew<'_>) -> Choice {
        match message {
            Ask::Echo(0) => Choice::Refuse,
            _ => Choice::Any,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_that_the_policy_does_not_want_ends_in_refused() {
    let pool = Hall::default().pool(2).dispatch(Picky).spawn().await.unwrap();
    assert_eq!(pool.call(Ask::Echo(0)).await, Err(CallError::Refused));
    assert_eq!(pool.call_with(Ask::Echo(0), Envelope::urgent()).await, Err(CallError::Refused));
    assert_eq!(pool.call(Ask::Echo(1)).await, Ok(1));
    assert_eq!(pool.stats().rejected, 2);
    holds(pool.stop(SOON).await.stats);
}

#[tokio::test(start_paused = true)]
async fn a06_a_late_reply_never_satisfies_another_call() {
    let (pool, _) = Hall::own(1).await;
    let soon = Duration::from_millis(5);
    assert_eq!(pool.call_timeout(Ask::Later(20), soon).await, Err(CallError::TimedOut));
    // Its reply comes while this one waits.
    let (second, third) = tokio::join!(pool.call(Ask::Sleep(50)), pool.call(Ask::Echo(3)));
    assert_eq!((second, third), (Ok(0), Ok(3)));
}

#[tokio::test(start_paused = true)]
async fn a06_the_death_of_the_worker_resolves_its_call_at_once_and_queued_calls_stay_queued() {
    let (pool, _) = Hall::own(1).await;
    let begun = Instant::now();
    let in_hand = async {
        let ended = pool.call(Ask::PanicLater).await;
        (ended, begun.elapsed())
    };
    let (in_hand, second, third) =
        tokio::join!(in_hand, pool.call(Ask::Panic), pool.call(Ask::Echo(3)));
    let late = CallError::Panicked("late boom".to_owned());
    assert_eq!(in_hand, (Err(late), Duration::from_millis(10)));
    assert_eq!(second, Err(CallError::Panicked("boom".to_owned())));
    assert_eq!(third, Ok(3));
    assert_eq!(pool.stats().restarts, 2);
}

// ------------------------------------------------------------------------------------------------------ WouldDeadlock

#[tokio::test(start_paused = true)]
async fn a06_the_only_worker_of_a_pool_cannot_call_it() {
    let (pool, hall) = Hall::own(1).await;
    assert_eq!(soon(pool.call(Ask::CallOn(1))).await, deadlock());
    // By its own address, too.
    let workers = pool.manage().workers();
    hall.knows(workers[0].address());
    assert_eq!(soon(pool.call(Ask::CallOn(1))).await, deadlock());
    assert_eq!(pool.call(Ask::Echo(1)).await, Ok(1), "it is free again");
    assert_eq!(pool.stats().rejected, 2);
    holds(pool.stop(SOON).await.stats);
}

#[tokio::test(start_paused = true)]
async fn a06_when_all_workers_call_their_pool_at_once_the_last_is_refused() {
    let (pool, _) = Hall::own(3).await;
    let (one, two, three) = soon(async {
        tokio::join!(
            pool.call(Ask::CallOnTogether(1)),
            pool.call(Ask::CallOnTogether(2)),
            pool.call(Ask::CallOnTogether(3)),
        )
    })
    .await;
    let mut answers = [one, two, three];
    answers.sort_by_key(|answer| answer.is_err());
    assert!(answers[0].is_ok() && answers[1].is_ok(), "{answers:?}");
    assert_eq!(answers[2], deadlock());
    // Their calls are over: the next ones are counted afresh.
    for number in 0..5 {
        assert_eq!(soon(pool.call(Ask::CallOn(number))).await, Ok(number));
    }
}

#[tokio::test(start_paused = true)]
async fn a06_a_worker_that_makes_two_calls_at_once_is_one_that_waits() {
    let (pool, _) = Hall::own(2).await;
    assert_eq!(soon(pool.call(Ask::CallTwice(4))).await, Ok(4));
    assert_eq!(soon(pool.call(Ask::CallOn(4))).await, Ok(4));
}

#[tokio::test(start_paused = true)]
async fn a06_who_holds_the_key_of_a_message_cannot_call_with_it() {
    for workers in [1, 4] {
        let hall = Hall::default();
        // The number of an echo is its key, and that of who calls with it.
        let key = |ask: &Ask| match ask {
            Ask::CallOn(number) | Ask::CallOnTogether(number) => u32::from(*number >= 10),
            _ => 1,
        };
        let pool = hall.pool(workers).ordered_by(key).spawn().await.unwrap();
        hall.knows(&pool.address());
        assert_eq!(soon(pool.call(Ask::CallOn(10))).await, deadlock());
        assert_eq!(soon(pool.call(Ask::CallOnTogether(10))).await, deadlock());
        let other = soon(pool.call(Ask::CallOn(1))).await;
        assert_eq!(other, if workers == 1 { deadlock() } else { Ok(1) });
    }
}

#[tokio::test(start_paused = true)]
async fn a06_a_task_that_a_handler_has_spawned_is_not_the_worker() {
    let (pool, hall) = Hall::own(1).await;
    assert_eq!(soon(pool.call(Ask::CallFromTask(5))).await, Ok(5));
    settle().await;
    let stats = pool.stop(SOON).await.stats;
    assert_eq!((stats.handled, stats.rejected), (2, 0));
    assert_eq!(hall.dead(), []);
}

#[tokio::test(start_paused = true)]
async fn a06_a_pool_may_call_another_that_calls_it_where_somebody_is_free() {
    let (outer, inner) = (Hall::default(), Hall::default());
    let front = outer.pool(1).spawn().await.unwrap();
    let back = inner.pool(1).spawn().await.unwrap();
    outer.knows(&back.address());
    assert_eq!(soon(front.call(Ask::CallOn(3))).await, Ok(3), "another pool is no deadlock");
    inner.knows(&back.address());
    let answer = soon(back.call(Ask::CallOn(3))).await;
    assert_eq!(answer, deadlock());
    assert_eq!(soon(front.call(Ask::CallOn(3))).await, Ok(3));
}

#[tokio::test(start_paused = true)]
async fn a06_a_worker_may_call_another_worker_of_its_pool_and_counts_as_one_that_waits() {
    let (pool, hall) = Hall::own(2).await;
    let workers = pool.manage().workers();
    hall.knows(workers[0].address());
    let called = soon(workers[1].call(Ask::CallOn(6))).await;
    assert_eq!(called, Ok(6));
    assert_eq!(soon(workers[0].call(Ask::CallOn(6))).await, deadlock());
}

// ------------------------------------------------------------------------------------------------------------- A07

#[tokio::test(start_paused = true)]
async fn a07_forward_keeps_port_sender_class_deadline_attempt_and_trace() {
    for ask in [Ask::Forward, Ask::TryForward] {
        let halls = [Hall::default(), Hall::default(), Hall::default()];
        let mut pools = Vec::new();
        for hall in &halls {
            pools.push(hall.pool(1).spawn().await.unwrap());
        }
        halls[0].knows(&pools[1].address());
        halls[1].knows(&pools[2].address());
        let envelope = Envelope::urgent()
            .sender(pools[2].address().erase())
            .deadline(Duration::from_secs(10))
            .trace("00-abc");
        let answer = pools[0].call_with(ask, envelope).await;
        assert_eq!(answer, Ok(99), "the last one's reply goes to the first caller");
        let seen = halls.each_ref().map(|hall| hall.carried.lock().unwrap().clone());
        let whole = Carried {
            message: Some(ask),
            class: Class::Urgent,
            sender: Some("pool".to_owned()),
            left: Some(Duration::from_secs(10)),
            trace: Some("00-abc".to_owned()),
            attempt: 1,
            is_call: true,
        };
        assert_eq!(seen, [[whole.clone()], [whole.clone()], [whole]].map(Vec::from));
        pools[0].send(ask).await.unwrap();
        settle().await;
        let stats: Vec<_> = pools.iter().map(Pool::stats).collect();
        let told: Vec<_> = stats.iter().map(|s| (s.accepted, s.handled, s.forwarded)).collect();
        assert_eq!(told, [(2, 2, 2), (2, 2, 2), (2, 2, 0)]);
        stats.into_iter().for_each(holds);
    }
}

#[tokio::test(start_paused = true)]
async fn a07_forward_keeps_the_count_of_attempts() {
    /// Fails the first time, and forwards what comes again.
    struct Second(Desks);

    impl Actor for Second {
        type Message = Ask;
        type Reply = u32;
        type Error = String;

        async fn handle(&mut self, _: Ask, _: &mut Context<Self>) -> Result<u32, String> {
            unreachable!("receive does it")
        }

        async fn receive(
            &mut self,
            delivery: &mut Delivery<Ask, u32, String>,
            _: &mut Context<Self>,
        ) -> Result<Answer<u32>, String> {
            if delivery.attempt() == 1 {
                return Err("again".to_owned());
            }
            delivery.forward(&self.0).await.map_err(|error| error.to_string())?;
            assert_eq!(delivery.message(), None);
            let again = delivery.forward(&self.0).await;
            assert_eq!(again, Err(ForwardError::Empty));
            Ok(Answer::Elsewhere)
        }
    }

    let hall = Hall::default();
    let back = hall.pool(1).spawn().await.unwrap();
    let address = back.address();
    let front = Pool::new(move |_| Second(address.clone())).workers(1);
    let front = front.retry(3, Backoff::new(SECOND, SECOND)).spawn().await.unwrap();
    assert_eq!(front.call(Ask::Echo(5)).await, Ok(5));
    assert_eq!(hall.carried.lock().unwrap()[0].attempt, 2);
    let stats = front.stop(SOON).await.stats;
    assert_eq!((stats.handled, stats.forwarded, stats.retries), (1, 1, 1));
    holds(stats);
    holds(back.stop(SOON).await.stats);
}

#[tokio::test(start_paused = true)]
async fn a07_what_is_not_accepted_stays_whole() {
    let (first, second) = (Hall::default(), Hall::default());
    let front = first.pool(1).spawn().await.unwrap();
    let back = second.pool(1).capacity(1).spawn().await.unwrap();
    first.knows(&back.address());
    back.try_send(Ask::Sleep(100)).unwrap();
    settle().await;
    back.try_send(Ask::Echo(1)).unwrap();
    let envelope = || Envelope::urgent().trace("t").deadline(SECOND);
    assert_eq!(front.call_with(Ask::TryForward, envelope()).await, Ok(1), "answered by the first");
    assert_eq!(front.call_with(Ask::ForwardWithin(10), envelope()).await, Ok(0), "cancelled");
    assert_eq!(back.stats().accepted, 2);
    let begun = Instant::now();
    assert_eq!(front.call_with(Ask::Forward, envelope()).await, Ok(99), "waits for room");
    assert!(begun.elapsed() > Duration::from_millis(50));
    let stopped = back.stop(SOON).await.stats;
    holds(stopped);
    assert_eq!(stopped.rejected, 1);
    assert_eq!(front.call_with(Ask::Forward, envelope()).await, Ok(1), "answered by the first");
    let forwards = first.forwards.lock().unwrap().clone();
    let refused = |why| Err(ForwardError::NotAccepted(why));
    assert_eq!(forwards, [refused(NotAccepted::Full), Ok(()), refused(NotAccepted::Stopped)]);
    let carried = first.carried.lock().unwrap().clone();
    for (before, after) in [(0, 1), (2, 3), (5, 6)] {
        let left = carried[after].left;
        assert!(left > Some(Duration::ZERO), "{left:?}");
        assert_eq!(carried[after], Carried { left, ..carried[before].clone() });
    }
    let stats = front.stop(SOON).await.stats;
    assert_eq!((stats.handled, stats.forwarded), (4, 1));
    holds(stats);
}

#[tokio::test(start_paused = true)]
async fn a07_an_error_a_panic_or_a_kill_after_forwarding_changes_nothing_for_the_message() {
    for (ask, retries) in [
        (Ask::ForwardAndFail, false),
        (Ask::ForwardAndFail, true),
        (Ask::ForwardAndPanic, false),
        (Ask::ForwardAndPanic, true),
    ] {
        let (first, second) = (Hall::default(), Hall::default());
        let front = first.pool(1);
        let front = match retries {
            true => front.retry(3, Backoff::new(SECOND, SECOND)),
            false => front,
        };
        let front = front.spawn().await.unwrap();
        let back = second.pool(1).spawn().await.unwrap();
        first.knows(&back.address());
        assert_eq!(front.call(ask).await, Ok(99));
        front.send(ask).await.unwrap();
        assert_eq!(front.call(Ask::Echo(1)).await, Ok(1));
        let front = front.stop(SOON).await.stats;
        let back = back.stop(SOON).await.stats;
        assert_eq!((front.accepted, front.handled, front.forwarded), (3, 3, 2), "{ask:?}");
        assert_eq!((back.accepted, back.handled), (2, 2), "it was handled once");
        assert_eq!((first.dead(), second.dead()), (vec![], vec![]));
        holds(front);
        holds(back);
    }
}

#[tokio::test(start_paused = true)]
async fn a07_a_pool_that_drops_what_arrives_drops_what_is_forwarded() {
    let (first, second) = (Hall::default(), Hall::default());
    let front = first.pool(1).spawn().await.unwrap();
    let back = second.pool(1).capacity(1).overflow(Overflow::DropNewest).spawn().await.unwrap();
    first.knows(&back.address());
    back.try_send(Ask::Sleep(100)).unwrap();
    settle().await;
    back.try_send(Ask::Echo(1)).unwrap();
    assert_eq!(front.call(Ask::Forward).await, Err(CallError::Dropped));
    settle().await;
    let forwards = first.forwards.lock().unwrap().clone();
    assert_eq!(forwards, [Err(ForwardError::NotAccepted(NotAccepted::Dropped))]);
    holds(front.stop(SOON).await.stats);
    holds(back.stop(SOON).await.stats);
}

#[tokio::test(start_paused = true)]
async fn a07_a_deadline_goes_along_and_an_abandoned_call_is_skipped_where_it_arrives() {
    let (first, second) = (Hall::default(), Hall::default());
    let front = first.pool(1).spawn().await.unwrap();
    let back = second.pool(1).spawn().await.unwrap();
    first.knows(&back.address());
    back.try_send(Ask::Sleep(100)).unwrap();
    settle().await;
    let soon = Duration::from_millis(50);
    let (expired, late) = tokio::join!(
        front.call_with(Ask::Forward, Envelope::new().deadline(soon)),
        front.call_timeout(Ask::TryForward, soon),
    );
    assert_eq!((expired, late), (Err(CallError::Expired), Err(CallError::TimedOut)));
    let dead = [
        (Some(Ask::Forward), DeadLetterReason::Expired),
        (Some(Ask::TryForward), DeadLetterReason::Abandoned),
    ];
    assert_eq!((first.dead(), second.dead()), (vec![], dead.to_vec()));
    holds(front.stop(SOON).await.stats);
    holds(back.stop(SOON).await.stats);
}

// ------------------------------------------------------------------------------------------------------- A08 and A09

enum Account {
    Balance(ReplyPort<u64>),
    Owner(ReplyPort<String, u8>),
    /// From another task.
    Later(ReplyPort<u64>),
    Forget(ReplyPort<u64>),
    Panic(#[expect(dead_code, reason = "held to be dropped")] ReplyPort<u64>),
    Refuse(ReplyPort<u64, &'static str>),
    /// `ask`s its own pool.
    Own(Option<WeakAddress<Account, (), ()>>, ReplyPort<u64>),
}

struct Clerk;

impl Actor for Clerk {
    type Message = Account;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, message: Account, _: &mut Context<Self>) -> Result<(), ()> {
        match message {
            Account::Balance(port) => drop(port.reply(7)),
            Account::Owner(port) => drop(port.reply("Ada".to_owned())),
            Account::Later(port) => drop(tokio::spawn(async move {
                tokio::time::sleep(SECOND).await;
                port.reply(8)
            })),
            Account::Forget(port) => drop(port),
            Account::Panic(_) => panic!("with the port in hand"),
            Account::Refuse(port) => port.fail("no"),
            Account::Own(to, port) => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let to = to.and_then(|to| to.upgrade()).unwrap();
                let answer = to.ask(Account::Balance).await;
                let told = match answer {
                    Ok(balance) => balance,
                    Err(CallError::WouldDeadlock) => 1_000,
                    Err(_) => 2_000,
                };
                port.reply(told).map_err(|_| ())?;
            }
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a08_one_actor_gives_replies_of_different_types_each_to_its_port() {
    let pool = Pool::new(|_| Clerk).workers(1).spawn().await.unwrap();
    assert_eq!(pool.ask(Account::Balance).await, Ok(7));
    assert_eq!(pool.ask(Account::Owner).await, Ok("Ada".to_owned()));
    assert_eq!(pool.ask(Account::Later).await, Ok(8));
    assert_eq!(pool.ask(Account::Forget).await, Err(CallError::Dropped));
    assert_eq!(pool.ask(Account::Panic).await, Err(CallError::Dropped));
    assert_eq!(pool.ask(Account::Refuse).await, Err(CallError::Failed("no")));
    holds(pool.stop(SOON).await.stats);
    assert_eq!(pool.ask(Account::Balance).await, Err(CallError::Stopped));
}

#[tokio::test(start_paused = true)]
async fn a06_a08_who_asks_its_own_pool_waits_like_one_that_calls() {
    for workers in [1, 3] {
        let pool = Pool::new(|_| Clerk).workers(workers).spawn().await.unwrap();
        let address = pool.address();
        let own = || Some(address.downgrade());
        let asks = (0..workers).map(|_| pool.ask(|port| Account::Own(own(), port)));
        let answers = soon(futures_util::future::join_all(asks)).await;
        let refused = answers.iter().filter(|answer| **answer == Ok(1_000)).count();
        assert_eq!(refused, 1, "{answers:?}");
        assert_eq!(answers.iter().filter(|answer| **answer == Ok(7)).count(), workers - 1);
    }
}

/// Says that it has answered elsewhere, and has not.
struct Liar;

impl Actor for Liar {
    type Message = u8;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, _: u8, _: &mut Context<Self>) -> Result<(), ()> {
        Ok(())
    }

    async fn receive(
        &mut self,
        _: &mut Delivery<u8, (), ()>,
        _: &mut Context<Self>,
    ) -> Result<Answer<()>, ()> {
        Ok(Answer::Elsewhere)
    }
}

#[tokio::test(start_paused = true)]
async fn a08_a_port_left_in_its_delivery_is_dropped() {
    let pool = Pool::new(|_| Liar).workers(1).spawn().await.unwrap();
    assert_eq!(soon(pool.call(1)).await, Err(CallError::Dropped));
    assert_eq!(pool.stop(SOON).await.stats.handled, 1);
}

#[tokio::test(start_paused = true)]
async fn a08_a_handler_answers_later_and_goes_on_meanwhile() {
    let (pool, _) = Hall::own(1).await;
    let begun = Instant::now();
    let (later, next) = tokio::join!(pool.call(Ask::Later(100)), async {
        let answer = pool.call(Ask::Echo(1)).await;
        (answer, begun.elapsed())
    });
    assert_eq!((later, next), (Ok(7), (Ok(1), Duration::ZERO)));
    assert_eq!(begun.elapsed(), Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a09_abandoned_calls_of_both_classes_are_skipped_and_reported() {
    for keyed in [false, true] {
        let hall = Hall::default();
        let pool = match keyed {
            true => hall.pool(1).ordered_by(|_: &Ask| 0).spawn().await.unwrap(),
            false => hall.pool(1).spawn().await.unwrap(),
        };
        pool.send(Ask::Sleep(100)).await.unwrap();
        settle().await;
        let soon = Duration::from_millis(5);
        let normal = tokio::time::timeout(soon, pool.call(Ask::Echo(1)));
        let urgent = pool.call_with(Ask::Echo(2), Envelope::urgent());
        let urgent = tokio::time::timeout(soon, urgent);
        let (normal, urgent) = tokio::join!(normal, urgent);
        assert!(normal.is_err() && urgent.is_err());
        assert_eq!(pool.call(Ask::Echo(3)).await, Ok(3));
        let abandoned = DeadLetterReason::Abandoned;
        let dead = [(Some(Ask::Echo(2)), abandoned), (Some(Ask::Echo(1)), abandoned)];
        assert_eq!(hall.dead(), dead);
        assert_eq!(hall.carried.lock().unwrap().len(), 2, "no handler saw them");
        holds(pool.stop(SOON).await.stats);
    }
}
