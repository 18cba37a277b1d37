//! Pool events as `tracing` events (X01). One subscriber records each thread separately.

use std::{
    cell::RefCell,
    fmt,
    sync::{
        Arc, Once,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Actor, CallError, Context, DeadLetterReason, EventPool, ExitReason, Pool, PoolEvent,
    PoolEvents,
    advisor::{Advice, Advisor, Figures, Inbox, Judge},
    event_pool::EventPoolConfig,
    pool_events::{Kind, LimitChangeReason, ResizeReason},
    topic::Event,
};
use tracing::{
    Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::Interest,
};

/// A logged line: level, and fields as text.
type Line = (Level, Vec<(&'static str, String)>);

thread_local! {
    /// What this thread listens to, and the lines that it has recorded.
    static NOTEBOOK: RefCell<Option<(Level, Vec<Line>)>> = const { RefCell::new(None) };
}

/// Notes the events of each thread separately. There is only one for all tests: with one per test,
/// `tracing` would cache whether an event is wanted from the thread that came first.
struct Notebooks;

struct Fields(Vec<(&'static str, String)>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }
}

impl Subscriber for Notebooks {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        NOTEBOOK
            .with_borrow(|notes| notes.as_ref().is_some_and(|(most, _)| metadata.level() <= most))
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields(Vec::new());
        event.record(&mut fields);
        let line = (*event.metadata().level(), fields.0);
        NOTEBOOK.with_borrow_mut(|notes| notes.as_mut().map(|(_, lines)| lines.push(line)));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The lines that are logged up to this level; with `None`, nothing listens.
fn logged(most: impl Into<Option<Level>>, run: impl FnOnce()) -> Vec<Line> {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| tracing::subscriber::set_global_default(Notebooks).unwrap());
    NOTEBOOK.set(most.into().map(|most| (most, Vec::new())));
    run();
    NOTEBOOK.take().map_or(Vec::new(), |(_, lines)| lines)
}

fn emitted(what: PoolEvent) -> Vec<Line> {
    logged(Level::TRACE, || PoolEvents::new(1).emit(&pool(), what))
}

fn field<'a>(line: &'a Line, name: &str) -> &'a str {
    &line.1.iter().find(|(of, _)| *of == name).unwrap().1
}

fn pool() -> Arc<str> {
    "images".into()
}

fn panicked() -> ExitReason {
    ExitReason::Panicked { message: "on purpose".to_owned(), location: None }
}

/// The advice for a pool whose inbox is too small.
fn advice() -> Box<Advice> {
    let quiet = Figures::of(Inbox::PerWorker(1000), 256);
    let crowded = Figures { inbox_full: 60, utilisation: 0.9, ..quiet };
    Box::new(Judge::new(Advisor::default()).unwrap().advise(&crowded))
}

fn dead_letter(reason: DeadLetterReason) -> PoolEvent {
    PoolEvent::DeadLetter { message_type: "u32", reason, age: None, attempts: 2 }
}

#[test]
fn x01_each_notice_is_a_tracing_event_at_a_fitting_level_with_its_pool_and_kind() {
    use PoolEvent::*;
    let busy_for = Duration::from_secs(9);
    let cases = [
        (Started { workers: 3 }, Level::INFO),
        (Stopped { reason: ExitReason::Shutdown }, Level::INFO),
        (Stopped { reason: ExitReason::Killed }, Level::ERROR),
        (WorkerStarted { slot: 1 }, Level::DEBUG),
        (WorkerAdded { slot: 2 }, Level::DEBUG),
        (WorkerRemoved { slot: 2 }, Level::DEBUG),
        (WorkerRestarted { slot: 1, restarts: 4, reason: panicked() }, Level::WARN),
        (StartFailed { slot: 1, error: "no disk".to_owned() }, Level::WARN),
        (BudgetExceeded { slot: 1 }, Level::ERROR),
        (WorkerDisabled { slot: 1 }, Level::ERROR),
        (WorkerEnabled { slot: 1 }, Level::INFO),
        (WorkerWedged { slot: 1, busy_for }, Level::ERROR),
        (Escalated { slot: 1 }, Level::ERROR),
        (dead_letter(DeadLetterReason::Failed), Level::WARN),
        (dead_letter(DeadLetterReason::Abandoned), Level::DEBUG),
        (MailboxFull, Level::WARN),
        (MailboxDrained { full_for: busy_for }, Level::INFO),
        (DroppedByOverflow { messages: 17 }, Level::WARN),
        (Withdrawn { messages: 5 }, Level::INFO),
        (Resized { from: 3, to: 4, reason: ResizeReason::Asked }, Level::INFO),
        (CapacityChanged { from: 8, to: 4 }, Level::INFO),
        (Advised { advice: advice() }, Level::INFO),
        (LimitChanged { from: 8, to: 4, reason: LimitChangeReason::Asked }, Level::INFO),
        (SlotHeld { slot: 1, messages: 2, held_for: Duration::from_secs(1) }, Level::WARN),
        (KeyParked, Level::WARN),
        (KeyReleased, Level::INFO),
        (MemoryAboveCeiling { used: 3, ceiling: 2, holds: Vec::new() }, Level::ERROR),
    ];
    let mut kinds = Vec::new();
    for (what, level) in cases {
        kinds.push(what.kind());
        let lines = emitted(what.clone());
        let [line] = &lines[..] else { panic!("{what:?}: {lines:?}") };
        let found = (line.0, field(line, "pool"), field(line, "kind"));
        assert_eq!(found, (level, "images", what.kind().name()));
    }
    kinds.dedup();
    assert_eq!(kinds, Kind::ALL, "each was tried");
}

#[test]
fn x01_the_figures_are_fields() {
    let lines = emitted(PoolEvent::WorkerRestarted { slot: 7, restarts: 2, reason: panicked() });
    let fields = ["slot", "restarts", "reason"].map(|name| field(&lines[0], name));
    assert_eq!(fields, ["7", "2", "panicked: on purpose"]);
}

#[test]
fn h10_advice_is_logged_with_the_line_to_change() {
    let lines = emitted(PoolEvent::Advised { advice: advice() });
    let advice = field(&lines[0], "advice");
    assert!(advice.ends_with("the inbox is too small: grow it; inbox_size: 1000 -> 2000"));
}

#[test]
fn x01_switched_off_nothing_is_logged() {
    let lines = logged(Level::TRACE, || PoolEvents::off().emit(&pool(), PoolEvent::KeyParked));
    assert_eq!(lines, []);
}

/// An error that panics when it is shown.
#[derive(Debug, Default)]
struct Shy {
    shown: Arc<AtomicUsize>,
}

impl fmt::Display for Shy {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown.fetch_add(1, Ordering::SeqCst);
        panic!("shown on purpose");
    }
}

impl std::error::Error for Shy {}

#[test]
fn x01_nothing_is_formatted_where_nobody_listens_to_it() {
    let times_shown = |most: Option<Level>| {
        let (error, notices) = (Shy::default(), PoolEvents::new(1));
        let shown = error.shown.clone();
        let reason = ExitReason::failed(error);
        let what = PoolEvent::WorkerRestarted { slot: 1, restarts: 1, reason };
        logged(most, || notices.emit(&pool(), what));
        shown.load(Ordering::SeqCst)
    };
    let listened = [None, Some(Level::ERROR), Some(Level::WARN)];
    assert_eq!(listened.map(times_shown), [0, 0, 1], "it is a warning");
}

#[test]
fn x01_a_logger_that_panics_keeps_no_notice_from_receivers() {
    let notices = PoolEvents::new(3);
    let mut receiver = notices.subscribe();
    let what = PoolEvent::Stopped { reason: ExitReason::failed(Shy::default()) };
    logged(Level::ERROR, || notices.emit(&pool(), what));
    let notice = receiver.try_recv().and_then(Event::into_item).unwrap();
    assert_eq!(notice.what.kind(), Kind::Stopped);
}

struct Clerk;

impl greenroom::Actor for Clerk {
    type Message = greenroom::event_pool::Keyed<u64, u64>;
    type Reply = ();
    type Error = ();

    async fn handle(
        &mut self,
        _: Self::Message,
        _: &mut greenroom::Context<Self>,
    ) -> Result<(), ()> {
        Ok(())
    }
}

/// A machine with this many bytes.
struct Small(u64);

impl greenroom::event_pool::MemoryReading for Small {
    fn process(&self) -> Option<u64> {
        None
    }

    fn machine(&self) -> Option<u64> {
        Some(self.0)
    }
}

#[test]
fn h03_an_event_pool_says_what_it_may_take_when_it_starts_and_warns_of_too_much() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for (machine, warned) in [(16_000, None), (15_999, Some("15999"))] {
        let lines = logged(Level::INFO, || {
            runtime.block_on(async {
                let config = EventPoolConfig {
                    pool_size: Some(2),
                    inbox_size: Some(10),
                    enable_event_stream: false,
                    ..EventPoolConfig::default()
                };
                let pool = EventPool::new(config, |_| Clerk).name("clerks");
                drop(
                    pool.memory_reading(std::sync::Arc::new(Small(machine))).spawn().await.unwrap(),
                );
            });
        });
        assert_eq!(lines[0].0, Level::INFO);
        for (name, value) in [("pool", "clerks"), ("estimate", "4000"), ("engine", "keyed")] {
            assert_eq!(field(&lines[0], name), value);
        }
        let warning = lines.get(1).map(|line| (line.0, field(line, "machine")));
        assert_eq!(warning, warned.map(|machine| (Level::WARN, machine)));
    }
}

struct Brittle;

impl Actor for Brittle {
    type Message = ();
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), ()> {
        panic!("on purpose")
    }
}

#[test]
fn x01_a_default_pool_whose_budget_is_used_up_says_with_what_call_it_is_revived() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build();
    let lines = logged(Level::ERROR, || {
        runtime.unwrap().block_on(async {
            let pool = Pool::new(|_| Brittle).name("brittle").spawn().await.unwrap();
            let mut panics = 0;
            while let Err(CallError::Panicked(_)) = pool.call(()).await {
                panics += 1;
            }
            assert_eq!(panics, 12);
            pool.admin().enable(0).unwrap().done(Duration::from_secs(1)).await;
            assert!(matches!(pool.call(()).await, Err(CallError::Panicked(_))));
        });
    });
    let revives = |line: &&Line| field(line, "message").contains("pool.admin().enable(slot)");
    let line = lines.iter().find(revives).unwrap();
    assert_eq!((line.0, field(line, "pool")), (Level::ERROR, "brittle"));
}
