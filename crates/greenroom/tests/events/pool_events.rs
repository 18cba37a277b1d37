//! Pool events: what operators receive (X01), and how far they may fall behind (X02).

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake},
    time::Duration,
};

use greenroom::{
    DeadLetterReason, ExitReason, PoolEvent, PoolEvents,
    advisor::{Advice, Advisor, Figures, Inbox, Judge},
    pool_events::{
        Holding, Kind, LimitChangeReason, PoolEventReceiver, PoolEventRecord, ResizeReason,
    },
    topic::Event,
};

fn pool() -> Arc<str> {
    "images".into()
}

fn one_of_each() -> Vec<PoolEvent> {
    use PoolEvent::*;
    let killed = || ExitReason::Killed;
    let (reason, age) = (DeadLetterReason::Failed, Some(Duration::from_secs(3)));
    vec![
        Started { workers: 3 },
        Stopped { reason: ExitReason::Shutdown },
        WorkerStarted { slot: 1 },
        WorkerAdded { slot: 2 },
        WorkerRemoved { slot: 2 },
        WorkerRestarted { slot: 1, restarts: 4, reason: killed() },
        StartFailed { slot: 1, error: "no disk".to_owned() },
        BudgetExceeded { slot: 1 },
        WorkerDisabled { slot: 1 },
        WorkerEnabled { slot: 1 },
        WorkerWedged { slot: 1, busy_for: Duration::from_secs(9) },
        Escalated { slot: 1 },
        DeadLetter { message_type: "u32", reason, age, attempts: 2 },
        MailboxFull,
        MailboxDrained { full_for: Duration::from_secs(5) },
        DroppedByOverflow { messages: 17 },
        Withdrawn { messages: 5 },
        Resized { from: 3, to: 4, reason: ResizeReason::Asked },
        CapacityChanged { from: 8, to: 4 },
        Advised { advice: advice() },
        LimitChanged { from: 8, to: 4, reason: LimitChangeReason::Asked },
        SlotHeld { slot: 1, messages: 2, held_for: Duration::from_secs(1) },
        KeyParked,
        KeyReleased,
        MemoryAboveCeiling { used: 3, ceiling: 2, holds: vec![(Holding::Queues, 1)] },
    ]
}

/// The advice for a quiet pool.
fn advice() -> Box<Advice> {
    let figures = Figures::of(Inbox::PerWorker(1000), 256);
    Box::new(Judge::new(Advisor::default()).unwrap().advise(&figures))
}

/// The contents of the receiver's buffer: kinds, and how many were missed.
fn received(receiver: &mut PoolEventReceiver) -> Vec<Event<Kind>> {
    let mut events = Vec::new();
    while let Some(event) = receiver.try_recv() {
        events.push(match event {
            Event::Item(notice) => Event::Item(notice.what.kind()),
            Event::Lagged(missed) => Event::Lagged(missed),
        });
    }
    events
}

fn items(kinds: &[Kind]) -> Vec<Event<Kind>> {
    kinds.iter().copied().map(Event::Item).collect()
}

fn item(receiver: &mut PoolEventReceiver) -> PoolEventRecord {
    receiver.try_recv().and_then(Event::into_item).unwrap()
}

#[test]
fn x01_one_subscription_hears_of_everything_in_order() {
    let notices = PoolEvents::new(100);
    let mut receiver = notices.subscribe();
    one_of_each().into_iter().for_each(|what| notices.emit(&pool(), what));
    assert_eq!(received(&mut receiver), items(Kind::ALL));
}

#[test]
fn x01_a_notice_says_where_and_when_and_carries_its_figures() {
    let notices = PoolEvents::new(100);
    let mut receiver = notices.subscribe();
    let before = std::time::SystemTime::now();
    let reason = ExitReason::failed("no disk");
    notices.emit(&pool(), PoolEvent::WorkerRestarted { slot: 7, restarts: 2, reason });
    let notice = item(&mut receiver);
    assert_eq!(&*notice.pool, "images");
    assert!(notice.at >= before && notice.at <= std::time::SystemTime::now());
    let PoolEvent::WorkerRestarted { slot: 7, restarts: 2, reason: ExitReason::Failed { error } } =
        notice.what
    else {
        panic!("another notice");
    };
    assert_eq!(error.to_string(), "no disk");
}

#[test]
fn x01_each_kind_is_counted_whether_anybody_listens_or_not() {
    let notices = PoolEvents::new(1);
    for (number, what) in one_of_each().into_iter().enumerate() {
        (0..=number).for_each(|_| notices.emit(&pool(), what.clone()));
    }
    let counts: Vec<_> = notices.counts().iter().collect();
    let expected: Vec<_> = Kind::ALL.iter().copied().zip(1..).collect();
    assert_eq!(counts, expected);
    assert_eq!(notices.counts().of(Kind::WorkerRestarted), 6);
    assert_eq!(notices.counts().total(), (1..=Kind::ALL.len() as u64).sum());
}

#[test]
fn x01_no_two_kinds_have_the_same_name() {
    let names: std::collections::HashSet<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), Kind::ALL.len());
}

#[tokio::test]
async fn x01_switched_off_nothing_is_counted_or_sent() {
    let off = PoolEvents::off();
    assert!(!off.is_on());
    let mut receiver = off.subscribe();
    off.emit(&pool(), PoolEvent::KeyParked);
    assert_eq!(off.counts().total(), 0);
    assert!(receiver.recv().await.is_none());
}

#[test]
fn x01_the_process_has_one_hub_by_default() {
    let is_heard = || {
        let mut receiver = PoolEvents::global().subscribe();
        PoolEvents::default().emit(&"of this test alone".into(), PoolEvent::KeyReleased);
        let mut heard = std::iter::from_fn(|| receiver.try_recv()).filter_map(Event::into_item);
        heard.any(|notice| &*notice.pool == "of this test alone")
    };
    assert!((0..100).any(|_| is_heard()), "other tests may tell more than a receiver keeps");
}

#[tokio::test(start_paused = true)]
async fn x01_who_waits_is_woken_by_the_next_notice() {
    let notices = PoolEvents::new(1);
    let mut receiver = notices.subscribe();
    let waiting = tokio::spawn(async move { receiver.recv().await.and_then(Event::into_item) });
    tokio::time::sleep(Duration::from_secs(1)).await;
    notices.emit(&pool(), PoolEvent::MailboxFull);
    let notice = waiting.await.unwrap().unwrap();
    assert!(matches!(notice.what, PoolEvent::MailboxFull));
}

#[tokio::test(start_paused = true)]
async fn x01_who_waits_learns_that_no_notice_will_follow() {
    let notices = PoolEvents::new(1);
    let mut receiver = notices.subscribe();
    let waiting = tokio::spawn(async move { receiver.recv().await.is_none() });
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(notices);
    assert!(waiting.await.unwrap());
}

#[test]
fn x02_a_slow_receiver_learns_how_many_it_has_missed_and_gets_the_newest() {
    let notices = PoolEvents::new(3);
    let (mut slow, mut quick) = (notices.subscribe(), notices.subscribe());
    for slot in 0..10 {
        notices.emit(&pool(), PoolEvent::WorkerStarted { slot });
        assert_eq!(received(&mut quick), items(&[Kind::WorkerStarted]));
    }
    assert!(matches!(slow.try_recv(), Some(Event::Lagged(7))));
    for slot in 7..10 {
        assert!(
            matches!(item(&mut slow).what, PoolEvent::WorkerStarted { slot: of } if of == slot)
        );
    }
    assert!(slow.try_recv().is_none());
    assert_eq!((slow.missed(), quick.missed()), (7, 0));
}

#[test]
fn x02_a_receiver_that_is_dropped_takes_no_notices_any_more() {
    let notices = PoolEvents::new(1);
    drop(notices.subscribe());
    let mut other = notices.subscribe();
    drop(notices.subscribe());
    (0..3).for_each(|_| notices.emit(&pool(), PoolEvent::KeyParked));
    assert_eq!(other.missed(), 2, "the one that is left misses them");
    assert_eq!(received(&mut other), [Event::Lagged(2), Event::Item(Kind::KeyParked)]);
}

/// An error that emits a notice when it is dropped, and panics.
#[derive(Debug, thiserror::Error)]
#[error("nasty")]
struct Nasty(PoolEvents);

impl Drop for Nasty {
    fn drop(&mut self) {
        self.0.emit(&pool(), PoolEvent::KeyReleased);
        panic!("dropped on purpose");
    }
}

fn nasty(notices: &PoolEvents) -> PoolEvent {
    PoolEvent::Stopped { reason: ExitReason::failed(Nasty(notices.clone())) }
}

#[test]
fn x02_an_error_that_is_missed_is_dropped_under_no_lock_and_its_panic_ends_there() {
    let notices = PoolEvents::new(1);
    let mut receiver = notices.subscribe();
    notices.emit(&pool(), nasty(&notices));
    // It displaces that one, whose `Drop` emits another, which displaces this one.
    notices.emit(&pool(), PoolEvent::KeyParked);
    assert_eq!(received(&mut receiver), [Event::Lagged(2), Event::Item(Kind::KeyReleased)]);
    drop(receiver);
    notices.emit(&pool(), nasty(&notices));
    assert_eq!(notices.counts().of(Kind::KeyReleased), 2, "it is dropped where nobody listens");
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("woken on purpose");
    }
}

#[test]
fn x02_a_waker_that_panics_keeps_no_notice_from_others() {
    let notices = PoolEvents::new(1);
    let (mut first, mut second) = (notices.subscribe(), notices.subscribe());
    let waker = Arc::new(Panics).into();
    let mut waiting = pin!(first.recv());
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    notices.emit(&pool(), PoolEvent::KeyParked);
    assert_eq!(received(&mut second), items(&[Kind::KeyParked]));
    let ready = waiting.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(matches!(ready, Poll::Ready(Some(Event::Item(_)))));
}
