//! The reports of pools: each notice for its cause, in order (X01, X02), and drops once a second
//! (P07).

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use greenroom::{
    Actor, Backoff, Context, DeadLetterReason, ExitReason, NotAccepted, Overflow, Pool,
    PoolBuilder, PoolEvent, PoolEvents, Restarts, Stop, Supervisor,
    policy::RoundRobin,
    pool::WhenExhausted,
    pool_events::{Kind, PoolEventReceiver},
    supervisor::Strategy,
    topic::Event,
};

use tower::ServiceExt;

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Copy)]
enum Do {
    Nothing,
    Fail,
    Panic,
    Sleep(Duration),
}

struct Desk;

impl Actor for Desk {
    type Message = Do;
    type Reply = ();
    type Error = &'static str;

    async fn handle(&mut self, what: Do, _: &mut Context<Self>) -> Result<(), &'static str> {
        match what {
            Do::Nothing => {}
            Do::Fail => return Err("no paper"),
            Do::Panic => panic!("on purpose"),
            Do::Sleep(time) => tokio::time::sleep(time).await,
        }
        Ok(())
    }
}

/// One worker, whose notices are received.
fn desk() -> (PoolBuilder<Desk>, PoolEventReceiver) {
    let notices = PoolEvents::new(1_000);
    let receiver = notices.subscribe();
    (Pool::new(|_| Desk).quick_factory().workers(1).pool_events(notices), receiver)
}

/// The received notices, as text.
fn heard(receiver: &mut PoolEventReceiver) -> Vec<String> {
    let events = std::iter::from_fn(|| receiver.try_recv());
    events
        .map(|event| match event {
            Event::Item(notice) => format!("{:?}", notice.what),
            Event::Lagged(missed) => format!("Lagged({missed})"),
        })
        .collect()
}

fn kinds(receiver: &mut PoolEventReceiver) -> Vec<Kind> {
    let events = std::iter::from_fn(|| receiver.try_recv());
    events.filter_map(Event::into_item).map(|notice| notice.what.kind()).collect()
}

/// The kinds of one pool: other pools of this process report to the same hub.
fn kinds_of(pool: &str, receiver: &mut PoolEventReceiver) -> Vec<Kind> {
    let notices = std::iter::from_fn(|| receiver.try_recv()).filter_map(Event::into_item);
    notices.filter(|notice| &*notice.pool == pool).map(|notice| notice.what.kind()).collect()
}

async fn settle() {
    tokio::time::sleep(100 * SECOND).await;
}

/// This many restarts, each a millisecond after the last exit.
fn restarts(max: u32) -> Restarts {
    Restarts { max, window: 3_600 * SECOND, backoff: Backoff::new(MILLI, MILLI) }
}

#[tokio::test(start_paused = true)]
async fn x01_a_pool_tells_of_its_start_and_its_end() {
    let (desk, mut receiver) = desk();
    let pool = desk.workers(2).name("mails").spawn().await.unwrap();
    let started =
        ["WorkerStarted { slot: 0 }", "WorkerStarted { slot: 1 }", "Started { workers: 2 }"];
    assert_eq!(heard(&mut receiver), started);
    let ended = pool.erase();
    pool.stop(Stop::Now).await;
    pool.stop(Stop::Now).await;
    ended.ended().await;
    let notice = receiver.try_recv().and_then(Event::into_item).unwrap();
    assert_eq!(&*notice.pool, "mails");
    assert_eq!(format!("{:?}", notice.what), "Stopped { reason: Shutdown }");
    assert_eq!(heard(&mut receiver), [""; 0], "once");
}

#[tokio::test(start_paused = true)]
async fn x01_who_has_waited_for_the_end_has_been_told_of_it() {
    let (desk, mut receiver) = desk();
    let pool = desk.spawn().await.unwrap();
    let end = pool.erase();
    drop(pool);
    end.ended().await;
    assert_eq!(kinds(&mut receiver).last(), Some(&Kind::Stopped));
}

#[tokio::test(start_paused = true)]
async fn x01_a_spawn_that_fails_tells_why_and_of_no_start() {
    let notices = PoolEvents::new(10);
    let mut receiver = notices.subscribe();
    let pool = Pool::<Desk>::try_new(|_| Err::<Desk, _>("no desk"));
    assert!(pool.workers(1).pool_events(notices).spawn().await.is_err());
    settle().await;
    assert_eq!(heard(&mut receiver), ["StartFailed { slot: 0, error: \"no desk\" }"]);
}

#[tokio::test(start_paused = true)]
async fn x01_restarts_their_budget_and_the_slot_are_told_in_order() {
    let (desk, mut receiver) = desk();
    let pool = desk.workers(2).restarts(restarts(1)).spawn().await.unwrap();
    heard(&mut receiver);
    let first = pool.admin().workers()[0].clone();
    first.send(Do::Panic).await.unwrap();
    settle().await;
    let told = heard(&mut receiver);
    assert!(told[0].starts_with("DeadLetter {") && told[0].contains("Panicked"), "{told:?}");
    let restarted = "WorkerRestarted { slot: 0, restarts: 1, reason: Panicked { message: \"on pu";
    assert!(told[1].starts_with(restarted) && told.len() == 2, "{told:?}");
    first.send(Do::Panic).await.unwrap();
    settle().await;
    let told = heard(&mut receiver);
    assert_eq!(told[1..], ["BudgetExceeded { slot: 0 }", "WorkerDisabled { slot: 0 }"]);
    pool.admin().enable(0).unwrap().done(SECOND).await;
    let told = heard(&mut receiver);
    assert_eq!(told, ["WorkerEnabled { slot: 0 }", "WorkerStarted { slot: 0 }"]);
}

#[tokio::test(start_paused = true)]
async fn x01_a_pool_that_stops_because_of_a_worker_says_so() {
    let (desk, mut receiver) = desk();
    let desk = desk.restarts(restarts(0)).when_exhausted(WhenExhausted::StopPool);
    let pool = desk.spawn().await.unwrap();
    heard(&mut receiver);
    pool.send(Do::Panic).await.unwrap();
    settle().await;
    let told = heard(&mut receiver);
    assert_eq!(told[1], "BudgetExceeded { slot: 0 }");
    assert!(told[2].starts_with("Stopped { reason: Panicked {"), "{told:?}");
    assert_eq!(told.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn x01_a_slot_that_is_left_to_a_supervisor_is_told_of_as_escalated_and_then_started() {
    let (desk, mut receiver) = desk();
    let (pool, child) = desk.restarts(restarts(0)).supervised().unwrap();
    let root = Supervisor::new(Strategy::OneForOne).child(child).spawn().await.unwrap();
    pool.send(Do::Panic).await.unwrap();
    settle().await;
    let told = kinds(&mut receiver);
    let started = [Kind::WorkerStarted, Kind::Started];
    assert_eq!(told[..2], started);
    assert_eq!(told[2..5], [Kind::DeadLetter, Kind::BudgetExceeded, Kind::Escalated]);
    assert_eq!(told[5..], started);
    root.stop(Stop::Now).await;
    assert_eq!(kinds(&mut receiver), [Kind::Stopped]);
}

#[tokio::test(start_paused = true)]
async fn x01_an_actor_that_is_adopted_is_told_to_come_and_to_go() {
    let (desk, mut receiver) = desk();
    let pool = desk.spawn().await.unwrap();
    let other =
        Pool::new(|_| Desk).workers(1).pool_events(PoolEvents::off()).spawn().await.unwrap();
    heard(&mut receiver);
    pool.admin().adopt(other.address()).unwrap().done(SECOND).await;
    let came = [
        "Resized { from: 1, to: 2, reason: Asked }",
        "WorkerAdded { slot: 1 }",
        "WorkerStarted { slot: 1 }",
    ];
    assert_eq!(heard(&mut receiver), came);
    other.stop(Stop::Now).await;
    for _ in 0..4 {
        pool.send(Do::Sleep(SECOND)).await.unwrap();
    }
    settle().await;
    let went = ["Resized { from: 2, to: 1, reason: Left }", "WorkerRemoved { slot: 1 }"];
    assert_eq!(heard(&mut receiver), went);
}

#[tokio::test(start_paused = true)]
async fn x01_a_worker_that_was_killed_is_told_to_be_restarted() {
    let (desk, mut receiver) = desk();
    let pool = desk.spawn().await.unwrap();
    heard(&mut receiver);
    let worker = pool.admin().workers()[0].erase();
    worker.exit(ExitReason::Killed);
    settle().await;
    let told = heard(&mut receiver);
    assert_eq!(told, ["WorkerRestarted { slot: 0, restarts: 1, reason: Killed }"]);
}

#[tokio::test(start_paused = true)]
async fn x01_each_start_that_fails_is_told_and_the_one_that_does_not() {
    let notices = PoolEvents::new(100);
    let mut receiver = notices.subscribe();
    let builds = AtomicUsize::new(0);
    let factory = move |_| match builds.fetch_add(1, Ordering::SeqCst) {
        0 | 3 => Ok(Desk),
        _ => Err("no desk"),
    };
    let pool = Pool::try_new(factory).quick_factory().workers(2).pool_events(notices);
    let pool = pool.restarts(restarts(3)).spawn().await.unwrap();
    settle().await;
    let told = heard(&mut receiver);
    let failed = "StartFailed { slot: 1, error: \"no desk\" }";
    let expected = [
        "WorkerStarted { slot: 0 }",
        failed,
        "Started { workers: 2 }",
        failed,
        "WorkerStarted { slot: 1 }",
    ];
    assert_eq!(told, expected);
    drop(pool);
}

#[tokio::test(start_paused = true)]
async fn x01_sizes_and_those_who_come_and_go_are_told() {
    let (desk, mut receiver) = desk();
    let pool = desk.spawn().await.unwrap();
    heard(&mut receiver);
    pool.admin().resize(3).unwrap().done(SECOND).await;
    let added = [
        "Resized { from: 1, to: 3, reason: Asked }",
        "WorkerAdded { slot: 1 }",
        "WorkerAdded { slot: 2 }",
        "WorkerStarted { slot: 1 }",
        "WorkerStarted { slot: 2 }",
    ];
    assert_eq!(heard(&mut receiver), added);
    pool.admin().remove_worker(1).unwrap().done(SECOND).await;
    let removed = ["Resized { from: 3, to: 2, reason: Asked }", "WorkerRemoved { slot: 1 }"];
    assert_eq!(heard(&mut receiver), removed);
    pool.admin().remove(5).unwrap().done(SECOND).await;
    assert_eq!(heard(&mut receiver)[0], "Resized { from: 2, to: 0, reason: Asked }");
    pool.admin().resize(0).unwrap().done(SECOND).await;
    assert_eq!(heard(&mut receiver), [""; 0], "it has that size");
}

#[tokio::test(start_paused = true)]
async fn x01_a_dead_letter_is_told_with_its_type_age_and_attempts_whoever_takes_it() {
    for hooked in [false, true] {
        let (desk, mut receiver) = desk();
        let desk = desk.retry(3, Backoff::new(MILLI, MILLI));
        let desk = if hooked { desk.on_dead_letter(drop) } else { desk };
        let pool = desk.spawn().await.unwrap();
        heard(&mut receiver);
        pool.send(Do::Fail).await.unwrap();
        settle().await;
        let notice = receiver.try_recv().and_then(Event::into_item).unwrap();
        let PoolEvent::DeadLetter { message_type, reason, age, attempts } = notice.what else {
            panic!()
        };
        assert_eq!((message_type, attempts), (std::any::type_name::<Do>(), 3));
        assert_eq!(reason, DeadLetterReason::Failed);
        assert!(age.is_some_and(|age| age > MILLI && age < SECOND), "{age:?}");
        assert_eq!(heard(&mut receiver), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn x01_a_mailbox_is_told_to_be_full_once_and_to_have_drained_once() {
    let (desk, mut receiver) = desk();
    let pool = desk.capacity(10).spawn().await.unwrap();
    heard(&mut receiver);
    let address = pool.address();
    let sender = tokio::spawn(async move {
        for _ in 0..100 {
            address.send(Do::Sleep(SECOND)).await.unwrap();
        }
    });
    tokio::time::sleep(50 * SECOND).await;
    assert_eq!(heard(&mut receiver), ["MailboxFull"]);
    sender.await.unwrap();
    assert!(pool.try_send(Do::Nothing).is_err(), "it is as full as it was");
    settle().await;
    let drained = heard(&mut receiver);
    // It became full at once, when 11 had been sent; it was half empty after the 95th had been
    // started.
    let [full_for] = &drained[..] else { panic!("{drained:?}") };
    let seconds = full_for.strip_prefix("MailboxDrained { full_for: ").unwrap();
    let seconds: f64 = seconds.strip_suffix("s }").unwrap().parse().unwrap();
    assert!((93.0..97.0).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn x01_a_mailbox_without_room_is_told_of_by_whatever_is_sent() {
    for way in 0..5 {
        let (desk, mut receiver) = desk();
        let pool = desk.capacity(2).spawn().await.unwrap();
        pool.call(Do::Nothing).await.unwrap();
        pool.send(Do::Sleep(SECOND)).await.unwrap();
        tokio::task::yield_now().await;
        let mut two = [Do::Nothing; 2].into();
        assert_eq!(pool.try_send_many(&mut two), Ok(2));
        kinds(&mut receiver);
        match way {
            0 => assert!(pool.try_send(Do::Nothing).is_err()),
            1 => assert!(pool.try_reserve().is_err()),
            2 => drop(tokio::time::timeout(MILLI, pool.reserve()).await),
            3 => assert!(pool.try_send_many(&mut [Do::Nothing; 9].into()).is_err()),
            _ => assert!(tokio::time::timeout(MILLI, pool.call(Do::Nothing)).await.is_err()),
        }
        assert_eq!(kinds(&mut receiver), [Kind::MailboxFull], "way {way}");
        settle().await;
        let rest = kinds(&mut receiver);
        let abandoned = rest.iter().filter(|kind| **kind == Kind::DeadLetter).count();
        assert_eq!(rest.len(), 1 + abandoned, "way {way}: {rest:?}");
        assert!(rest.contains(&Kind::MailboxDrained), "way {way}: {rest:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn x01_who_waits_to_reserve_or_for_one_worker_tells_of_a_full_pool_too() {
    for way in 0..6 {
        let (desk, mut receiver) = desk();
        let pool = desk.capacity(2).spawn().await.unwrap();
        pool.send(Do::Sleep(SECOND)).await.unwrap();
        tokio::time::sleep(MILLI).await;
        pool.try_send_many(&mut [Do::Nothing; 2].into()).unwrap();
        let worker = pool.admin().workers().remove(0);
        kinds(&mut receiver);
        match way {
            0 => drop(tokio::time::timeout(MILLI, pool.reserve()).await),
            1 => drop(tokio::time::timeout(MILLI, pool.service().ready()).await),
            2 => drop(tokio::time::timeout(MILLI, worker.reserve()).await),
            3 => assert!(worker.try_reserve().is_err()),
            4 => assert!(worker.try_send(Do::Nothing).is_err()),
            _ => assert!(tokio::time::timeout(MILLI, worker.send(Do::Nothing)).await.is_err()),
        }
        assert_eq!(kinds(&mut receiver), [Kind::MailboxFull], "way {way}");
        settle().await;
        assert_eq!(kinds(&mut receiver), [Kind::MailboxDrained], "way {way}");
    }
}

#[tokio::test(start_paused = true)]
async fn x01_one_worker_without_room_is_no_full_pool_where_workers_pull() {
    let (desk, mut receiver) = desk();
    let pool = desk.capacity(20).mailbox(1).workers(2).spawn().await.unwrap();
    let worker = pool.admin().workers().remove(0);
    worker.send(Do::Sleep(SECOND)).await.unwrap();
    tokio::time::sleep(MILLI).await;
    worker.send(Do::Nothing).await.unwrap();
    kinds(&mut receiver);
    assert!(worker.try_send(Do::Nothing).is_err() && worker.try_reserve().is_err());
    assert!(tokio::time::timeout(MILLI, worker.reserve()).await.is_err());
    assert!(pool.broadcast().try_send(Do::Nothing).is_ok());
    assert_eq!(kinds(&mut receiver), []);
}

#[tokio::test(start_paused = true)]
async fn x01_a_chosen_worker_that_stays_full_is_one_episode() {
    let (desk, mut receiver) = desk();
    let desk = desk.workers(2).mailbox(4).overflow(Overflow::Reject);
    let pool = desk.dispatch(RoundRobin::new()).spawn().await.unwrap();
    heard(&mut receiver);
    for _ in 0..50 {
        while pool.try_send(Do::Sleep(SECOND)).is_ok() {}
        tokio::time::sleep(SECOND).await;
    }
    assert_eq!(heard(&mut receiver), ["MailboxFull"]);
    settle().await;
    assert_eq!(kinds(&mut receiver), [Kind::MailboxDrained]);
}

#[tokio::test(flavor = "multi_thread")]
async fn x01_a_worker_that_does_not_let_go_is_told_at_the_deadline() {
    struct Stuck(Arc<Mutex<mpsc::Receiver<()>>>);

    impl Actor for Stuck {
        type Message = ();
        type Reply = ();
        type Error = ();

        async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), ()> {
            let _ = self.0.lock().unwrap().recv();
            Ok(())
        }
    }

    let (let_go, held) = mpsc::channel();
    let held = Arc::new(Mutex::new(held));
    let notices = PoolEvents::new(10);
    let mut receiver = notices.subscribe();
    let pool = Pool::new(move |_| Stuck(held.clone())).workers(1).pool_events(notices);
    let pool = pool.spawn().await.unwrap();
    pool.send(()).await.unwrap();
    while pool.stats().in_hand == 0 {
        tokio::task::yield_now().await;
    }
    heard(&mut receiver);
    let report = pool.stop(Stop::within(MILLI)).await;
    let_go.send(()).unwrap();
    assert_eq!(report.wedged, ["pool-0"]);
    let notice = receiver.try_recv().and_then(Event::into_item).unwrap();
    let PoolEvent::WorkerWedged { slot: 0, busy_for } = notice.what else { panic!("{notice:?}") };
    assert!(busy_for >= Duration::from_millis(500), "{busy_for:?}");
    assert_eq!(heard(&mut receiver), ["Stopped { reason: Shutdown }"]);
}

#[tokio::test(start_paused = true)]
async fn x01_switched_off_a_pool_tells_nothing() {
    let mut global = PoolEvents::global().subscribe();
    let off = PoolEvents::off();
    let pool = Pool::new(|_| Desk).workers(1).capacity(1).name("quiet").pool_events(off.clone());
    let pool = pool.overflow(Overflow::DropOldest).restarts(restarts(0)).spawn().await.unwrap();
    for _ in 0..10 {
        pool.send(Do::Panic).await.unwrap();
    }
    settle().await;
    assert_eq!(pool.stats().dead_lettered, 10);
    pool.stop(Stop::Now).await;
    assert_eq!(off.counts().total(), 0);
    assert_eq!(kinds_of("quiet", &mut global), [], "nor anywhere else");
}

#[tokio::test(start_paused = true)]
async fn x01_unless_said_otherwise_a_pool_tells_the_hub_of_the_process() {
    let (mut told, mut missed) = (Vec::new(), 1);
    // Other tests may report more than a receiver keeps.
    while missed > 0 {
        let mut receiver = PoolEvents::global().subscribe();
        let pool = Pool::new(|_| Desk).workers(1).name("told to all").spawn().await.unwrap();
        pool.stop(Stop::Now).await;
        (told, missed) = (kinds_of("told to all", &mut receiver), receiver.missed());
    }
    assert_eq!(told, [Kind::WorkerStarted, Kind::Started, Kind::Stopped]);
}

#[tokio::test(start_paused = true)]
async fn x01_a_pool_in_order_by_key_tells_the_same_hub() {
    let (desk, mut receiver) = desk();
    let pool = desk.ordered_by(|_| 7).spawn().await.unwrap();
    pool.stop(Stop::Now).await;
    assert_eq!(kinds(&mut receiver), [Kind::WorkerStarted, Kind::Started, Kind::Stopped]);
}

#[tokio::test(start_paused = true)]
async fn x02_who_lags_is_told_how_many_it_has_missed_and_another_misses_nothing() {
    let notices = PoolEvents::new(2);
    let (mut slow, mut quick) = (notices.subscribe(), notices.subscribe());
    let pool = Pool::new(|_| Desk).quick_factory().workers(1).pool_events(notices.clone());
    let pool = pool.restarts(restarts(9)).spawn().await.unwrap();
    let mut all = heard(&mut quick);
    for _ in 0..3 {
        pool.send(Do::Panic).await.unwrap();
        settle().await;
        all.extend(heard(&mut quick));
    }
    assert_eq!(all.len(), 8, "{all:?}");
    let told = heard(&mut slow);
    assert_eq!(told[0], "Lagged(6)");
    assert_eq!(told[1..], all[6..]);
    assert_eq!((slow.missed(), notices.counts().total()), (6, 8));
    assert_eq!(notices.counts().of(Kind::WorkerRestarted), 3);
}

/// The reported drops, and the second of each after the first.
async fn drops_told(overflow: Overflow<Do, (), &'static str>) -> Vec<(f64, u64)> {
    let (desk, mut receiver) = desk();
    let pool = desk.capacity(1).overflow(overflow).spawn().await.unwrap();
    let told = tokio::spawn(async move {
        let mut told = Vec::new();
        let mut first = None;
        while let Some(Event::Item(notice)) = receiver.recv().await {
            match notice.what {
                PoolEvent::DroppedByOverflow { messages } => {
                    let now = tokio::time::Instant::now();
                    let since = now - *first.get_or_insert(now);
                    told.push((since.as_secs_f64(), messages));
                }
                PoolEvent::DeadLetter { reason, .. } => {
                    assert_eq!(reason, DeadLetterReason::Killed)
                }
                _ => {}
            }
        }
        told
    });
    pool.send(Do::Sleep(100 * SECOND)).await.unwrap();
    tokio::task::yield_now().await;
    pool.send(Do::Nothing).await.unwrap();
    // A flood of 2.5 seconds; quiet; one more, and others just before the end.
    for _ in 0..25 {
        let _ = pool.try_send(Do::Nothing);
        tokio::time::sleep(100 * MILLI).await;
    }
    tokio::time::sleep(8 * SECOND).await;
    for _ in 0..4 {
        let refused = pool.send(Do::Nothing).await.err().map(|error| error.without_message());
        assert!(matches!(refused, None | Some(NotAccepted::Dropped)));
    }
    let stats = pool.stats();
    pool.stop(Stop::within(Duration::ZERO)).await;
    assert_eq!(stats.rejected + stats.dead_lettered, 29);
    drop(pool);
    told.await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn p07_drops_are_counted_and_told_at_most_once_a_second_with_their_number() {
    for overflow in [Overflow::DropNewest, Overflow::DropOldest] {
        let told = drops_told(overflow).await;
        assert_eq!(told.iter().map(|(_, messages)| messages).sum::<u64>(), 29, "{told:?}");
        let told: Vec<_> = told.into_iter().map(|(at, messages)| (at.round(), messages)).collect();
        let expected = [(0.0, 1), (1.0, 10), (2.0, 10), (3.0, 4), (11.0, 1), (11.0, 3)];
        assert_eq!(told, expected, "the last ones of the flood too, and what is left at the end");
    }
}
