//! What every pool is for its users: an address like any other (P01), with nothing in between
//! (P03), in front of workers that are made and started separately (P04) and take waiting messages
//! (P08), in order (P27), one at a time (A01), within the bound (P06).

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use greenroom::{
    Address, AnyAddress, CallError, Class, Envelope, FailureAction, FinalAction, NotAccepted,
    Recipient, ReplyPort, Rule, SendError, Supervisor, policy::RoundRobin, pool::AdminError,
    prelude::*, supervisor::Strategy,
};
use tokio::time::Instant;

const SOON: Stop = Stop::within(Duration::from_secs(60));
const MS: Duration = Duration::from_millis(1);

#[derive(Debug, Clone)]
enum Ask {
    /// Answered with the number.
    Echo(u32),
    /// Answered with the number of milliseconds, after that time.
    Sleep(u32),
    /// Answered later from elsewhere.
    Later,
    Panic,
}

/// What the workers of a pool have seen and received.
#[derive(Clone, Default)]
struct Seen {
    senders: Arc<Mutex<Vec<Option<AnyAddress>>>>,
    classes: Arc<Mutex<Vec<Class>>>,
    echoes: Arc<Mutex<Vec<u32>>>,
    ports: Arc<Mutex<Vec<ReplyPort<u32, ()>>>>,
}

struct Clerk(Seen);

impl Actor for Clerk {
    type Message = Ask;
    type Reply = u32;
    type Error = ();

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Ask, u32, ()>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, ()> {
        self.0.senders.lock().unwrap().push(delivery.sender().cloned());
        self.0.classes.lock().unwrap().push(delivery.class());
        if let Some(Ask::Later) = delivery.message() {
            self.0.ports.lock().unwrap().extend(delivery.take_reply_port());
            return Ok(Answer::Deferred);
        }
        self.handle(delivery.take(), cx).await.map(Answer::Reply)
    }

    async fn handle(&mut self, ask: Ask, _cx: &mut Context<Self>) -> Result<u32, ()> {
        match ask {
            Ask::Echo(number) => {
                self.0.echoes.lock().unwrap().push(number);
                return Ok(number);
            }
            Ask::Sleep(ms) => {
                tokio::time::sleep(ms * MS).await;
                return Ok(ms);
            }
            Ask::Panic => panic!("on purpose"),
            Ask::Later => {}
        }
        Err(())
    }
}

type Clerks = Address<Ask, u32, ()>;

fn clerks(seen: &Seen) -> greenroom::PoolBuilder<Clerk> {
    let seen = seen.clone();
    Pool::new(move |_slot| Clerk(seen.clone()))
}

/// Everything that can be done with an address. Takes 8 ms.
async fn everything_is_the_same(address: &Clerks, seen: &Seen) {
    seen.classes.lock().unwrap().clear();
    address.send(Ask::Echo(1)).await.unwrap();
    address.try_send(Ask::Echo(2)).unwrap();
    address.send_timeout(Ask::Echo(3), MS).await.unwrap();
    address.send_many(&mut [Ask::Echo(4), Ask::Echo(5)].into()).await.unwrap();
    address.reserve().await.unwrap().send(Ask::Echo(6)).unwrap();
    Recipient::from(address.clone()).try_send(Ask::Echo(7)).unwrap();
    assert_eq!(address.call(Ask::Echo(8)).await, Ok(8));
    assert_eq!(address.call_with(Ask::Echo(9), Envelope::urgent()).await, Ok(9));
    assert_eq!(address.call_timeout(Ask::Sleep(8), 5 * MS).await, Err(CallError::TimedOut));
    let late = Envelope::new().deadline(Duration::ZERO);
    assert_eq!(address.call_with(Ask::Echo(10), late).await, Err(CallError::Expired));
    assert!(matches!(address.call(Ask::Panic).await, Err(CallError::Panicked(_))));
    let classes = seen.classes.lock().unwrap().clone();
    assert_eq!(classes.iter().filter(|class| **class == Class::Urgent).count(), 1);
    assert_eq!(classes.len(), 11, "each message but the one that came too late");
}

#[tokio::test(start_paused = true)]
async fn p01_an_address_of_a_pool_is_an_address_of_an_actor() {
    let seen = Seen::default();
    let actor = Pool::one(Clerk(seen.clone())).spawn().await.unwrap();
    let keyed = clerks(&seen).ordered_by(|_| 0).spawn().await.unwrap();
    let chosen = clerks(&seen).dispatch(RoundRobin::new()).spawn().await.unwrap();
    let plain = clerks(&seen).spawn().await.unwrap();
    let (child, spec) = clerks(&seen).supervised().unwrap();
    let root = Supervisor::new(Strategy::OneForOne).child(spec).spawn().await.unwrap();
    let worker = plain.admin().workers().remove(0);

    for address in [&plain, &keyed, &chosen, &child, worker.address(), &actor] {
        everything_is_the_same(address, &seen).await;
    }
    root.stop(SOON).await;
    for pool in [&plain, &keyed, &chosen, &child, &actor] {
        pool.stop(SOON).await;
        assert_eq!(pool.call(Ask::Echo(1)).await, Err(SendError::Stopped(Ask::Echo(1)).into()));
        let refused = pool.try_send(Ask::Echo(1)).unwrap_err();
        assert_eq!(refused.without_message(), NotAccepted::Stopped);
    }
}

#[tokio::test(start_paused = true)]
async fn p03_workers_see_who_has_sent_also_through_a_pool_in_a_pool() {
    let seen = Seen::default();
    let somebody = clerks(&Seen::default()).name("somebody").spawn().await.unwrap().erase();
    let inner = clerks(&seen).spawn().await.unwrap();
    let outer = clerks(&Seen::default()).workers(0).spawn().await.unwrap();
    outer.admin().adopt(inner.address()).unwrap().done(MS).await;
    for pool in [&inner, &outer] {
        let envelope = || Envelope::new().sender(somebody.clone());
        pool.send_with(Ask::Echo(1), envelope()).await.unwrap();
        assert_eq!(pool.call_with(Ask::Echo(2), envelope()).await, Ok(2));
        assert_eq!(pool.call(Ask::Echo(3)).await, Ok(3));
        let senders = std::mem::take(&mut *seen.senders.lock().unwrap());
        assert_eq!(senders, [Some(somebody.clone()), Some(somebody.clone()), None]);
    }
}

#[tokio::test(start_paused = true)]
async fn p03_a_reply_reaches_its_caller_when_the_pool_has_gone() {
    let seen = Seen::default();
    let pool = clerks(&seen).spawn().await.unwrap();
    let address = pool.address();
    let call = tokio::spawn(async move { address.call(Ask::Later).await });
    while seen.ports.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let any = pool.erase();
    assert_eq!(pool.stop(SOON).await.stats.handled, 1);
    drop(pool);
    assert!(!any.is_alive());
    let port = seen.ports.lock().unwrap().pop().unwrap();
    port.reply(7).unwrap();
    assert_eq!(call.await.unwrap(), Ok(7));
}

/// Starts slowly, and reports its name.
struct Slow(Duration);

impl Actor for Slow {
    type Message = u32;
    type Reply = String;
    type Error = ();

    async fn started(&mut self, _cx: &mut Context<Self>) -> Result<(), ()> {
        tokio::time::sleep(self.0).await;
        Ok(())
    }

    async fn handle(&mut self, ms: u32, cx: &mut Context<Self>) -> Result<String, ()> {
        assert!(ms < u32::MAX, "on purpose");
        tokio::time::sleep(ms * MS).await;
        Ok(cx.name())
    }
}

#[tokio::test(start_paused = true)]
async fn p04_three_workers_unless_said_otherwise_named_after_their_pool() {
    let pool = Pool::new(|_slot| Slow(MS)).name("clerks").spawn().await.unwrap();
    assert_eq!(pool.stats().configured, 3);
    tokio::time::sleep(MS).await;
    let (one, two, three) = tokio::join!(pool.call(5), pool.call(5), pool.call(5));
    let names = HashSet::from([one, two, three].map(Result::unwrap));
    assert_eq!(names, HashSet::from(["clerks-0", "clerks-1", "clerks-2"].map(str::to_owned)));
}

#[tokio::test(start_paused = true)]
async fn p04_the_factory_is_called_once_for_each_start_with_its_slot() {
    let made = Arc::new(Mutex::new(Vec::new()));
    let by_factory = made.clone();
    let pool = Pool::new(move |slot| {
        by_factory.lock().unwrap().push(slot);
        Slow(Duration::ZERO)
    });
    let pool = pool.workers(2).dispatch(RoundRobin::new()).spawn().await.unwrap();
    let sorted = || {
        let mut made = std::mem::take(&mut *made.lock().unwrap());
        made.sort_unstable();
        made
    };
    assert_eq!(sorted(), [0, 1]);
    for _ in 0..4 {
        pool.call(0).await.unwrap();
    }
    assert_eq!(sorted(), [0; 0], "not for messages");
    pool.call(u32::MAX).await.unwrap_err();
    pool.call(0).await.unwrap();
    tokio::time::sleep(MS).await;
    assert_eq!(sorted(), [0], "a restart");
    pool.admin().add(1).unwrap().done(MS).await;
    assert_eq!(sorted(), [2], "a worker that joins");
}

#[tokio::test(start_paused = true)]
async fn p04_workers_start_beside_one_another_and_a_slow_start_delays_nobody() {
    let began = Instant::now();
    let pool = Pool::new(|slot| Slow(2000 * MS * u32::from(slot > 0))).spawn().await.unwrap();
    assert_eq!(pool.call(0).await.unwrap(), "pool-0");
    assert_eq!(began.elapsed(), Duration::ZERO);

    let all_slow = Pool::new(|_slot| Slow(2000 * MS)).dispatch(RoundRobin::new());
    let all_slow = all_slow.workers(9).spawn().await.unwrap();
    assert_eq!(began.elapsed(), 2000 * MS, "nine together, not one after the other");
    let adding = all_slow.admin().add(1).unwrap();
    for _ in 0..20 {
        assert_ne!(all_slow.call(0).await.unwrap(), "pool-9");
    }
    assert_eq!(began.elapsed(), 2000 * MS, "who joins is waited for by nobody");
    assert!(adding.done(3000 * MS).await.is_complete());
}

#[tokio::test]
async fn p04_a_factory_that_blocks_holds_up_neither_the_runtime_nor_the_pool() {
    let (release, gate) = mpsc::channel::<()>();
    let (gate, gave_up) = (Mutex::new(gate), Arc::new(AtomicBool::new(false)));
    let by_factory = gave_up.clone();
    let pool = Pool::new(move |slot| {
        // For as long as the test needs: forever, if the test cannot continue.
        let waits = |gate: &mpsc::Receiver<()>| gate.recv_timeout(Duration::from_secs(20));
        if slot == 1 && waits(&gate.lock().unwrap()).is_err() {
            by_factory.store(true, Ordering::SeqCst);
        }
        Slow(Duration::ZERO)
    });
    let pool = pool.workers(2).spawn().await.unwrap();
    assert_eq!(pool.call(0).await.unwrap(), "pool-0");
    assert!(!gave_up.load(Ordering::SeqCst), "the factory held up the test");
    release.send(()).unwrap();
    let workers = || pool.broadcast().workers().len();
    while workers() < 2 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn p08_nothing_waits_behind_a_long_handler_while_another_worker_is_free() {
    let seen = Seen::default();
    for workers in 2..=9 {
        let pool = clerks(&seen).workers(workers).spawn().await.unwrap();
        tokio::time::sleep(MS).await;
        for _ in 1..workers {
            pool.send(Ask::Sleep(1_000_000)).await.unwrap();
        }
        // From one sender and from new ones: wherever the message is queued, the free worker finds
        // it.
        for number in 0..50 {
            let began = Instant::now();
            let address = if number % 2 == 0 { &pool } else { &pool.address() };
            assert_eq!(address.call(Ask::Echo(number)).await, Ok(number));
            assert_eq!(began.elapsed(), Duration::ZERO, "{workers} workers");
        }
        assert_eq!(pool.stats().in_hand, workers as u64 - 1);
    }
}

#[tokio::test(start_paused = true)]
async fn p27_a_pool_of_one_worker_is_one_line_however_and_by_whom_it_is_sent() {
    let seen = Seen::default();
    let pool = clerks(&seen).workers(1).capacity(3).spawn().await.unwrap();
    let other = pool.address();
    for round in 0..40 {
        let number = |step| Ask::Echo(round * 10 + step);
        pool.send(number(0)).await.unwrap();
        other.send(number(1)).await.unwrap();
        other.send_many(&mut [number(2), number(3), number(4), number(5)].into()).await.unwrap();
        pool.reserve().await.unwrap().send(number(6)).unwrap();
        pool.send(Ask::Sleep(round % 3)).await.unwrap();
        other.send_with(number(7), Envelope::new()).await.unwrap();
        pool.call(number(8)).await.unwrap();
    }
    let echoes = seen.echoes.lock().unwrap();
    assert_eq!(echoes.len(), 360);
    assert!(echoes.is_sorted(), "{echoes:?}");
}

/// Counts how many handlers run at once, with awaits in between.
#[derive(Clone, Default)]
struct Inside {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Actor for Inside {
    type Message = u32;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, turns: u32, _cx: &mut Context<Self>) -> Result<(), ()> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        self.now.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a01_a_worker_handles_one_message_at_a_time_also_while_it_awaits() {
    for workers in [1, 4] {
        let inside = Inside::default();
        let by_factory = inside.clone();
        let pool = Pool::new(move |_slot| by_factory.clone()).workers(workers);
        let pool = pool.spawn().await.unwrap();
        for turns in 0..400 {
            pool.send_with(turns % 4, Envelope::new().class(Class::Normal)).await.unwrap();
            pool.send_with(turns % 3, Envelope::urgent()).await.unwrap();
        }
        assert_eq!(pool.stop(SOON).await.stats.handled, 800);
        assert!((1..=workers).contains(&inside.most.load(Ordering::SeqCst)));
    }
}

/// Reads a list, adds to it, and fails or panics until it is long enough.
struct Looks;

impl Actor for Looks {
    type Message = Vec<u32>;
    type Reply = Vec<u32>;
    type Error = ();

    const KEEPS_MESSAGE: bool = true;

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Vec<u32>, Vec<u32>, ()>,
        _cx: &mut Context<Self>,
    ) -> Result<Answer<Vec<u32>>, ()> {
        let attempt = delivery.attempt();
        delivery.message_mut().unwrap().push(attempt);
        match attempt {
            1 => Err(()),
            2 => panic!("on purpose"),
            _ => Ok(Answer::Reply(delivery.take())),
        }
    }

    async fn handle(&mut self, list: Vec<u32>, _cx: &mut Context<Self>) -> Result<Vec<u32>, ()> {
        Ok(list)
    }
}

#[tokio::test(start_paused = true)]
async fn a01_what_a_handler_leaves_in_place_is_there_for_the_next_attempt() {
    let again =
        |attempt: greenroom::failure::FailedAttempt<'_, ()>, _chance: f64| match attempt.failures {
            1 | 2 => FailureAction::Retry { after: MS, counted: true },
            _ => FailureAction::DeadLetter,
        };
    let pool = Pool::new(|_slot| Looks).workers(1).failure_policy(again).poison_limit(3);
    let pool = pool.spawn().await.unwrap();
    assert_eq!(pool.call(vec![0]).await, Ok(vec![0, 1, 2, 3]));
}

#[tokio::test(start_paused = true)]
async fn a01_what_a_handler_leaves_in_place_is_in_the_dead_letter() {
    let table = greenroom::FailureTable::all(Rule::Once(FinalAction::DeadLetter));
    let pool = Pool::new(|_slot| Looks).workers(1).failure_policy(table).spawn().await.unwrap();
    assert!(pool.call(vec![0]).await.is_err());
    let letters = pool.dead_letters().remove_all();
    assert_eq!(letters[0].message, Some(vec![0, 1]));
}

#[tokio::test(start_paused = true)]
async fn p27_a_pool_that_has_shrunk_to_one_worker_is_one_line_for_each_sender() {
    let seen = Seen::default();
    let pool = clerks(&seen).workers(8).spawn().await.unwrap();
    pool.admin().resize(1).unwrap().done(MS).await;
    let other = pool.address();
    for number in 0..300 {
        let sender: &Clerks = if number % 2 == 0 { &pool } else { &other };
        sender.send(Ask::Echo(number)).await.unwrap();
    }
    pool.stop(SOON).await;
    let echoes = seen.echoes.lock().unwrap();
    for parity in [0, 1] {
        let of_one: Vec<_> = echoes.iter().filter(|number| *number % 2 == parity).collect();
        assert_eq!(of_one.len(), 150);
        assert!(of_one.is_sorted(), "{of_one:?}");
    }
}

/// Sends numbers from three addresses in turns.
async fn three_send(pool: &Pool<Clerk>, numbers: std::ops::Range<u32>) {
    let addresses = [pool.address(), pool.address(), pool.address()];
    for number in numbers {
        addresses[number as usize % 3].send(Ask::Echo(number)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn p27_a_pool_built_with_one_worker_or_none_is_one_line_again_after_it_has_grown() {
    for built_with in [0, 1] {
        let seen = Seen::default();
        let pool = clerks(&seen).workers(built_with).bounds(0..=8).spawn().await.unwrap();
        pool.admin().resize(5).unwrap().done(2_000 * MS).await;
        for _ in 0..5 {
            pool.send(Ask::Sleep(1_000)).await.unwrap();
        }
        tokio::time::sleep(MS).await;
        // All workers are busy; four are told to leave.
        three_send(&pool, 0..100).await;
        let shrunk = pool.admin().resize(1).unwrap();
        three_send(&pool, 100..200).await;
        assert_eq!(shrunk.done(2_000 * MS).await.left.len(), 4);
        three_send(&pool, 200..300).await;
        pool.stop(SOON).await;
        let echoes = seen.echoes.lock().unwrap();
        assert!(echoes.len() == 300 && echoes.is_sorted(), "{built_with}: {echoes:?}");
    }
}

/// Checks that a message came without extra parts.
struct Bare;

impl Actor for Bare {
    type Message = ();
    type Reply = ();
    type Error = ();

    async fn receive(
        &mut self,
        delivery: &mut Delivery<(), (), ()>,
        _cx: &mut Context<Self>,
    ) -> Result<Answer<()>, ()> {
        assert_eq!((delivery.sender(), delivery.trace(), delivery.time_left()), (None, None, None));
        assert!(delivery.cancellation().is_none());
        assert_eq!((delivery.class(), delivery.attempt()), (Class::Normal, 1));
        Ok(Answer::Reply(()))
    }

    async fn handle(&mut self, (): (), _cx: &mut Context<Self>) -> Result<(), ()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a02_what_a_sender_does_not_say_does_not_come_along() {
    let pool = Pool::new(|_slot| Bare).spawn().await.unwrap();
    pool.send(()).await.unwrap();
    pool.send_with((), Envelope::new()).await.unwrap();
    pool.call(()).await.unwrap();
    assert_eq!(pool.stop(SOON).await.stats.handled, 3);
}

#[tokio::test(start_paused = true)]
async fn p06_the_capacity_is_a_mailbox_for_each_worker_or_one_total() {
    let seen = Seen::default();
    let each = clerks(&seen).workers(2).mailbox(5).spawn().await.unwrap();
    let total = clerks(&seen).workers(2).mailbox(5).capacity(7).spawn().await.unwrap();
    for (pool, capacity) in [(each, 10), (total, 7)] {
        assert_eq!(pool.stats().capacity, capacity);
        let accepted = (0..20).filter(|number| pool.try_send(Ask::Echo(*number)).is_ok());
        assert_eq!(accepted.count(), capacity);
    }
}

#[tokio::test(start_paused = true)]
async fn p16_a_size_out_of_bounds_is_refused_with_the_bounds_and_changes_nothing() {
    let pool = clerks(&Seen::default()).workers(2).bounds(1..=4).spawn().await.unwrap();
    let refused = |asked| Err(AdminError::OutOfBounds { asked, bounds: 1..=4 });
    let admin = pool.admin();
    assert_eq!(admin.add(3).map(|change| change.size()), refused(5));
    assert_eq!(admin.resize(0).map(|change| change.size()), refused(0));
    assert_eq!(admin.remove(2).map(|change| change.size()), refused(0));
    assert_eq!(admin.stats().configured, 2);
    assert_eq!(admin.resize(4).map(|change| change.size()), Ok(4));
    assert!(clerks(&Seen::default()).workers(5).bounds(1..=4).spawn().await.is_err());
}
