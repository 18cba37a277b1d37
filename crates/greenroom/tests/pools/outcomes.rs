//! The outcomes of messages: calls that always resolve, panics, restarts, bounds, stops
//! (actors-and-pools.md).

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Actor, Answer, Backoff, CallError, Context, DeadLetterReason, Delivery, FailureTable,
    FinalAction, NotAccepted, Pool, ReplyPort, Restarts, Rule, SendError, SpawnError, Stop,
    TrySendError,
};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Ask {
    Echo(u32),
    Fail,
    Panic,
    Look,
    PanicAfterLooking,
    Later,
    DropPort,
    Sleep(u64),
    Block(u64),
}

#[derive(Default)]
struct Desk {
    later: Option<ReplyPort<u32, String>>,
}

impl Actor for Desk {
    type Message = Ask;
    type Reply = u32;
    type Error = String;

    async fn handle(&mut self, message: Ask, cx: &mut Context<Self>) -> Result<u32, String> {
        match message {
            Ask::Echo(number) => Ok(number),
            Ask::Fail => Err("no".to_owned()),
            Ask::Panic => panic!("boom"),
            Ask::Sleep(ms) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok(cx.slot() as u32)
            }
            Ask::Block(ms) => {
                std::thread::sleep(Duration::from_millis(ms));
                Ok(0)
            }
            other => unreachable!("{other:?} is handled in receive"),
        }
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Ask, u32, String>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, String> {
        match delivery.message() {
            Some(Ask::Look) => Err("left in place".to_owned()),
            Some(Ask::PanicAfterLooking) => panic!("left in place"),
            Some(Ask::Later) => {
                self.later = delivery.take_reply_port();
                if let Some(port) = self.later.take() {
                    tokio::spawn(async move { port.reply(77) });
                }
                Ok(Answer::Deferred)
            }
            Some(Ask::DropPort) => {
                drop(delivery.take_reply_port());
                Ok(Answer::Deferred)
            }
            _ => self.handle(delivery.take(), cx).await.map(Answer::Reply),
        }
    }
}

const SOON: Stop = Stop::within(Duration::from_secs(5));

type Letters = Arc<Mutex<Vec<(Option<Ask>, DeadLetterReason, Option<String>)>>>;

async fn desks(workers: usize, capacity: usize) -> (Pool<Desk>, Letters) {
    let letters = Letters::default();
    let dead = letters.clone();
    let pool = Pool::new(|_| Desk::default())
        .workers(workers)
        .capacity(capacity)
        .on_dead_letter(move |letter| {
            dead.lock().unwrap().push((letter.message, letter.reason, letter.error));
        })
        .spawn()
        .await
        .unwrap();
    (pool, letters)
}

#[tokio::test]
async fn a06_a_call_ends_in_the_reply_the_error_or_the_panic() {
    let (pool, _) = desks(2, 10).await;
    assert_eq!(pool.call(Ask::Echo(5)).await, Ok(5));
    assert_eq!(pool.call(Ask::Fail).await, Err(CallError::Failed("no".to_owned())));
    assert_eq!(pool.call(Ask::Panic).await, Err(CallError::Panicked("boom".to_owned())));
    assert_eq!(pool.call(Ask::DropPort).await, Err(CallError::Dropped));
    assert_eq!(pool.call(Ask::Echo(6)).await, Ok(6));
    pool.stop(SOON).await;
    assert_eq!(pool.call(Ask::Echo(7)).await, Err(SendError::Stopped(Ask::Echo(7)).into()));
}

#[tokio::test]
async fn a08_a_handler_can_answer_later() {
    let (pool, _) = desks(1, 10).await;
    assert_eq!(pool.call(Ask::Later).await, Ok(77));
    assert_eq!(pool.stop(SOON).await.stats.handled, 1);
}

#[tokio::test]
async fn a01_a_message_left_in_place_survives_an_error_and_a_panic() {
    let (pool, letters) = desks(1, 10).await;
    pool.send(Ask::Look).await.unwrap();
    pool.send(Ask::PanicAfterLooking).await.unwrap();
    pool.send(Ask::Panic).await.unwrap();
    pool.send(Ask::Fail).await.unwrap();
    pool.stop(SOON).await;
    let expected = [
        (Some(Ask::Look), DeadLetterReason::Failed, Some("left in place".to_owned())),
        (Some(Ask::PanicAfterLooking), DeadLetterReason::Panicked, None),
        (None, DeadLetterReason::Panicked, None),
        (None, DeadLetterReason::Failed, Some("no".to_owned())),
    ];
    assert_eq!(*letters.lock().unwrap(), expected);
}

#[tokio::test]
async fn p18_queued_work_survives_the_death_of_its_worker() {
    let (pool, letters) = desks(1, 100).await;
    pool.send(Ask::Panic).await.unwrap();
    let calls = (0..20).map(|number| pool.call(Ask::Echo(number)));
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    assert_eq!(answers, (0..20).collect::<Vec<_>>());
    let stats = pool.stop(SOON).await.stats;
    assert_eq!((stats.restarts, stats.handled, stats.dead_lettered), (1, 20, 1));
    assert_eq!(letters.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn p19_with_no_slot_left_what_is_queued_is_dead_and_senders_are_told() {
    let letters = Letters::default();
    let dead = letters.clone();
    let pool = Pool::new(|_| Desk::default())
        .workers(1)
        .restarts(Restarts { max: 1, ..Restarts::default() })
        .on_dead_letter(move |letter| {
            dead.lock().unwrap().push((letter.message, letter.reason, letter.error))
        })
        .spawn()
        .await
        .unwrap();
    pool.send(Ask::Panic).await.unwrap();
    pool.send(Ask::Panic).await.unwrap();
    let waiting = pool.call(Ask::Echo(1));
    assert_eq!(waiting.await, Err(CallError::NoWorkers));
    assert!(matches!(pool.try_send(Ask::Echo(2)), Err(TrySendError::NoWorkers(Ask::Echo(2)))));
    let stats = pool.stop(SOON).await.stats;
    assert_eq!((stats.live, stats.dead_lettered), (0, 3));
    assert!(stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn a04_a05_a_full_pool_gives_the_message_back_and_serves_waiters_in_turn() {
    let (pool, _) = desks(1, 2).await;
    pool.send(Ask::Sleep(1_000)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    pool.try_send(Ask::Sleep(1)).unwrap();
    pool.try_send(Ask::Sleep(1)).unwrap();
    assert!(matches!(pool.try_send(Ask::Echo(9)), Err(TrySendError::Full(Ask::Echo(9)))));
    let cancelled = tokio::time::timeout(Duration::from_millis(5), pool.send(Ask::Echo(1))).await;
    assert!(cancelled.is_err(), "a full pool makes its senders wait");
    let permit = tokio::time::timeout(Duration::from_millis(5), pool.reserve()).await;
    assert!(permit.is_err());
    let (first, second) = tokio::join!(pool.call(Ask::Echo(1)), pool.call(Ask::Echo(2)));
    assert_eq!((first, second), (Ok(1), Ok(2)));
    let permit = pool.try_reserve().unwrap();
    let other = pool.try_reserve().unwrap();
    assert_eq!(pool.try_reserve().unwrap_err(), NotAccepted::Full);
    drop(other);
    permit.send(Ask::Echo(3)).unwrap();
    let stats = pool.stop(SOON).await.stats;
    assert_eq!((stats.accepted, stats.handled, stats.rejected), (6, 6, 1));
}

#[tokio::test(start_paused = true)]
async fn a05_many_are_queued_from_the_front_as_far_as_there_is_room() {
    let (pool, _) = desks(1, 3).await;
    let mut asks: VecDeque<_> = (0..5).map(Ask::Echo).collect();
    assert_eq!(pool.try_send_many(&mut asks), Ok(3));
    assert_eq!(asks, [Ask::Echo(3), Ask::Echo(4)]);
    assert_eq!(pool.try_send_many(&mut asks), Err(NotAccepted::Full));
    assert_eq!(pool.try_send_many(&mut VecDeque::new()), Ok(0));
    assert_eq!((asks.len(), pool.stats().accepted), (2, 3));
    let stats = pool.stop(SOON).await.stats;
    assert_eq!((stats.handled, pool.try_send_many(&mut asks)), (3, Err(NotAccepted::Stopped)));
    assert_eq!(asks.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn p02_a_key_function_that_panics_among_many_leaves_the_others_whole() {
    let keys = |ask: &Ask| match ask {
        Ask::Panic => panic!("no key"),
        _ => 1,
    };
    let pool = Pool::new(|_| Desk::default())
        .workers(2)
        .capacity(4)
        .ordered_by(keys)
        .spawn()
        .await
        .unwrap();
    let mut asks = VecDeque::from([Ask::Echo(1), Ask::Panic, Ask::Echo(2)]);
    let sent =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pool.try_send_many(&mut asks)));
    assert!(sent.is_err());
    assert_eq!(asks, [Ask::Panic, Ask::Echo(2)], "what was not queued is left with its sender");
    // The messages queued before the panic are announced, and the permits of the rest are back.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!((pool.stats().accepted, pool.stats().handled), (1, 1));
    let room: Vec<_> = (0..4).map(|_| pool.try_reserve().unwrap()).collect();
    assert!(pool.try_reserve().is_err());
    drop(room);
}

#[tokio::test(start_paused = true)]
async fn p22_a_permit_used_after_close_gives_its_message_back() {
    let (pool, _) = desks(1, 2).await;
    let address = pool.address();
    let permit = address.reserve().await.unwrap();
    pool.stop(SOON).await;
    assert_eq!(permit.send(Ask::Echo(1)).unwrap_err().into_message(), Some(Ask::Echo(1)));
    assert_eq!(address.reserve().await.unwrap_err(), NotAccepted::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a09_a_call_whose_caller_has_gone_is_skipped() {
    let (pool, letters) = desks(1, 10).await;
    pool.send(Ask::Sleep(100)).await.unwrap();
    let abandoned = tokio::time::timeout(Duration::from_millis(5), pool.call(Ask::Echo(1))).await;
    assert!(abandoned.is_err());
    let stats = pool.stop(SOON).await.stats;
    assert_eq!(*letters.lock().unwrap(), [(Some(Ask::Echo(1)), DeadLetterReason::Abandoned, None)]);
    assert_eq!((stats.handled, stats.dead_lettered), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a13_a_stop_returns_what_its_deadline_did_not_allow() {
    let (pool, letters) = desks(1, 10).await;
    pool.send(Ask::Sleep(10_000)).await.unwrap();
    pool.send(Ask::Echo(1)).await.unwrap();
    let waiting = pool.call(Ask::Echo(2));
    let (answer, report) = tokio::join!(waiting, pool.stop(Stop::within(Duration::from_secs(1))));
    assert_eq!(answer, Err(CallError::Stopped));
    assert_eq!(report.left_over, [Ask::Echo(1), Ask::Echo(2)]);
    assert_eq!(*letters.lock().unwrap(), [(None, DeadLetterReason::Killed, None)]);
    assert!(report.wedged.is_empty() && report.stats.ledger_holds());
    let again = pool.stop(SOON).await;
    assert!(again.left_over.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a13_stop_now_ends_after_the_message_in_hand() {
    let (pool, _) = desks(1, 10).await;
    pool.send(Ask::Sleep(60_000)).await.unwrap();
    pool.send(Ask::Echo(1)).await.unwrap();
    tokio::task::yield_now().await;
    let report = pool.stop(Stop::Now).await;
    assert_eq!((report.stats.handled, report.left_over), (1, vec![Ask::Echo(1)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a13_a_worker_that_blocks_its_thread_is_named() {
    let (pool, _) = desks(2, 10).await;
    pool.send(Ask::Block(3_000)).await.unwrap();
    while pool.stats().in_hand == 0 {
        tokio::task::yield_now().await;
    }
    let report = pool.stop(Stop::within(Duration::from_millis(50))).await;
    assert_eq!(report.wedged.len(), 1);
    assert!(report.wedged[0] == "pool-0" || report.wedged[0] == "pool-1");
    assert_eq!(report.stats.in_hand, 1);
}

#[tokio::test(start_paused = true)]
async fn a13_dropping_the_last_address_drains_and_stops() {
    let (pool, _) = desks(2, 100).await;
    let dropped = Arc::new(());
    let watch = Arc::downgrade(&dropped);
    let counted = Arc::new(AtomicUsize::new(0));
    let count = counted.clone();
    let last = Pool::new(move |_| Counting(count.clone(), dropped.clone()))
        .workers(2)
        .spawn()
        .await
        .unwrap();
    for _ in 0..50 {
        last.send(()).await.unwrap();
    }
    drop((pool, last));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(counted.load(Ordering::SeqCst), 50);
    assert!(watch.upgrade().is_none(), "the workers and their factory are gone");
}

#[tokio::test(start_paused = true)]
async fn a13_a_clone_keeps_the_pool_running_and_the_last_one_drains_it() {
    let counted = Arc::new(AtomicUsize::new(0));
    let (count, held) = (counted.clone(), Arc::new(()));
    let watch = Arc::downgrade(&held);
    let first = Pool::new(move |_| Counting(count.clone(), held.clone()));
    let first = first.workers(2).spawn().await.unwrap();
    let (second, admin) = (first.clone(), first.admin());
    assert_eq!(second.erase(), first.erase(), "it is the same pool");
    drop(first);
    tokio::time::sleep(Duration::from_secs(1)).await;
    second.call(()).await.unwrap();
    let third = second.clone();
    for _ in 0..50 {
        third.send(()).await.unwrap();
    }
    drop((second, third));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(counted.load(Ordering::SeqCst), 51);
    assert_eq!(admin.stats().handled, 51, "administration looks, and keeps nothing running");
    drop(admin);
    assert!(watch.upgrade().is_none(), "the workers and their factory are gone");
}

struct Counting(Arc<AtomicUsize>, #[expect(dead_code, reason = "held to see it dropped")] Arc<()>);

impl Actor for Counting {
    type Message = ();
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, (): (), _cx: &mut Context<Self>) -> Result<(), ()> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn p05_a_pool_of_which_no_worker_starts_is_an_error_and_leaves_nothing() {
    let starts = Arc::new(AtomicUsize::new(0));
    let count = starts.clone();
    let spawned = Pool::try_new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        Err::<Desk, _>("no such database")
    })
    .workers(3)
    .spawn()
    .await;
    assert!(
        matches!(spawned, Err(SpawnError::NoWorkerStarted { reason, .. }) if reason == "no such database")
    );
    let tried = starts.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(starts.load(Ordering::SeqCst), tried);
}

#[tokio::test(start_paused = true)]
async fn p20_a_slot_whose_factory_fails_is_tried_until_it_works() {
    let starts = Arc::new(AtomicUsize::new(0));
    let count = starts.clone();
    let pool = Pool::try_new(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        1..10 => Err("not now"),
        _ => Ok(Desk::default()),
    })
    .workers(1)
    .spawn()
    .await
    .unwrap();
    assert_eq!(pool.call(Ask::Panic).await, Err(CallError::Panicked("boom".to_owned())));
    assert_eq!(pool.call(Ask::Echo(1)).await, Ok(1));
    assert_eq!(starts.load(Ordering::SeqCst), 11);
    assert_eq!(pool.stats().live, 1);
}

#[tokio::test(start_paused = true)]
async fn p04_a_quick_factory_may_fail_and_panic_like_any_other() {
    let starts = Arc::new(AtomicUsize::new(0));
    let count = starts.clone();
    let pool = Pool::try_new(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 | 3.. => Ok(Desk::default()),
        1 => Err("not now"),
        _ => panic!("not now, either"),
    })
    .quick_factory()
    .workers(1)
    .spawn()
    .await
    .unwrap();
    assert_eq!(pool.call(Ask::Panic).await, Err(CallError::Panicked("boom".to_owned())));
    assert_eq!(pool.call(Ask::Echo(1)).await, Ok(1));
    assert_eq!(starts.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn p06_absurd_sizes_are_errors() {
    for workers in [65_537, usize::MAX] {
        let spawned = Pool::new(|_| Desk::default()).workers(workers).spawn().await;
        assert!(matches!(spawned, Err(SpawnError::OutOfRange { setting: "workers", .. })));
    }
    for capacity in [0, usize::MAX] {
        let spawned = Pool::new(|_| Desk::default()).capacity(capacity).spawn().await;
        assert!(matches!(spawned, Err(SpawnError::OutOfRange { setting: "capacity", .. })));
    }
}

#[tokio::test]
async fn p02_a_key_function_that_panics_has_admitted_nothing() {
    let pool = Pool::new(|_| Desk::default())
        .capacity(1)
        .ordered_by(|ask: &Ask| match ask {
            Ask::Panic => panic!("no key"),
            _ => 1,
        })
        .spawn()
        .await
        .unwrap();
    let sent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pool.try_send(Ask::Panic)));
    assert!(sent.is_err());
    assert_eq!(pool.stats().accepted, 0);
    assert_eq!(pool.call(Ask::Echo(1)).await, Ok(1), "its permit was not lost");
}

#[tokio::test(start_paused = true)]
async fn p27_a_pool_of_one_worker_is_first_in_first_out() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = log.clone();
    let pool = Pool::new(move |_| Scribe(seen.clone())).workers(1).spawn().await.unwrap();
    let other = pool.address();
    for number in 0..300 {
        let address = if number % 2 == 0 { &*pool } else { &other };
        address.send(number).await.unwrap();
    }
    pool.stop(SOON).await;
    assert_eq!(*log.lock().unwrap(), (0..300).collect::<Vec<_>>());
}

struct Scribe(Arc<Mutex<Vec<u32>>>);

impl Actor for Scribe {
    type Message = u32;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, number: u32, _cx: &mut Context<Self>) -> Result<(), ()> {
        if number.is_multiple_of(10) {
            tokio::task::yield_now().await;
        }
        self.0.lock().unwrap().push(number);
        Ok(())
    }
}

/// Steps aside and fails, once.
struct Shy(Arc<AtomicUsize>);

impl Actor for Shy {
    type Message = ();
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), ()> {
        tokio::task::yield_now().await;
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => Err(()),
            _ => Ok(()),
        }
    }
}

/// A retried message returns to the first shard, to which perhaps no sender has ever sent anything.
#[tokio::test(start_paused = true)]
async fn p18_a_message_is_attempted_again_whichever_worker_is_woken_for_it() {
    for senders in 1..5 {
        let attempts = Arc::new(AtomicUsize::new(0));
        let of_workers = attempts.clone();
        let backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(10));
        let row = Rule::Retry { attempts: 2, backoff, finally: FinalAction::DeadLetter };
        let pool = Pool::new(move |_| Shy(of_workers.clone())).workers(4).quick_handlers(true);
        let pool = pool.retry_with(|(): &()| (), FailureTable::all(row)).spawn().await.unwrap();
        let addresses: Vec<_> = (0..senders).map(|_| pool.address()).collect();
        addresses.last().unwrap().send(()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(attempts.load(Ordering::SeqCst), 2, "the address with number {senders}");
    }
}
