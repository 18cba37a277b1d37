//! An actor that does what it is told, and a journal of what happened to it.

use std::{
    fmt,
    future::{Future, poll_fn},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use greenroom::{
    Actor, Answer, AnyAddress, Context, Delivery, ExitReason, OnExit, Pool, PoolStats,
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

type Deed = Arc<dyn Fn(&mut Context<Probe>) + Send + Sync>;

/// The request to a probe.
#[derive(Clone)]
pub(crate) enum Do {
    Nothing,
    Sleep(Duration),
    Panic,
    PanicAfter(Duration),
    Fail,
    /// Fails, and reports that the process behind the handler has died.
    Crash,
    /// Has its own worker killed.
    Kill,
    With(Deed),
}

impl Do {
    pub(crate) fn with(deed: impl Fn(&mut Context<Probe>) + Send + Sync + 'static) -> Self {
        Self::With(Arc::new(deed))
    }

    pub(crate) fn exit(reason: ExitReason) -> Self {
        Self::with(move |cx| cx.exit(reason.clone()))
    }
}

impl fmt::Debug for Do {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Sleep(_) => "Sleep",
            Self::Panic | Self::PanicAfter(_) => "Panic",
            Self::Fail => "Fail",
            Self::Crash => "Crash",
            Self::Kill => "Kill",
            Self::With(_) => "With",
        })
    }
}

/// The events of some probes, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    pub(crate) fn note(&self, what: impl fmt::Display) {
        self.0.lock().unwrap().push(what.to_string());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.all().iter().filter(|note| note.starts_with(what)).count()
    }
}

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Probe {
    pub(crate) journal: Journal,
    /// Its name in the journal.
    pub(crate) name: &'static str,
    /// It traps exits.
    pub(crate) traps: bool,
    /// It takes the message out before it does anything.
    pub(crate) consumes: bool,
    pub(crate) slow_start: Duration,
    pub(crate) at_start: Option<Deed>,
    /// Its start fails while this is set.
    pub(crate) broken: Arc<AtomicBool>,
    /// The hook of this name panics.
    pub(crate) bad_hook: &'static str,
}

impl Probe {
    pub(crate) fn new(name: &'static str, journal: &Journal) -> Self {
        Self { journal: journal.clone(), name, ..Self::default() }
    }

    pub(crate) fn trap(name: &'static str, journal: &Journal) -> Self {
        Self { traps: true, ..Self::new(name, journal) }
    }

    fn told(&self, hook: &str, what: impl fmt::Display) {
        self.journal.note(format_args!("{} {hook} {what}", self.name));
        assert!(self.bad_hook != hook, "a bad hook");
    }

    async fn act(&mut self, what: &Do, cx: &mut Context<Self>) -> Result<AnyAddress, &'static str> {
        match what {
            Do::Nothing => {}
            Do::Sleep(time) => tokio::time::sleep(*time).await,
            Do::Panic => panic!("on purpose"),
            Do::PanicAfter(time) => {
                tokio::time::sleep(*time).await;
                panic!("on purpose");
            }
            Do::Fail | Do::Crash => return Err("failed on purpose"),
            Do::Kill => {
                cx.me().exit(ExitReason::Killed);
                tokio::time::sleep(HOUR).await;
            }
            Do::With(deed) => deed(cx),
        }
        Ok(cx.me())
    }
}

impl Actor for Probe {
    type Message = Do;
    type Reply = AnyAddress;
    type Error = &'static str;

    /// Not true for one that `consumes`.
    const KEEPS_MESSAGE: bool = true;

    async fn handle(&mut self, _: Do, _cx: &mut Context<Self>) -> Result<AnyAddress, &'static str> {
        unreachable!("it receives")
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Do, AnyAddress, &'static str>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<AnyAddress>, &'static str> {
        let what = delivery.message().unwrap().clone();
        if self.consumes {
            drop(delivery.take());
        }
        if matches!(what, Do::Crash) {
            delivery.crashed();
        }
        self.act(&what, cx).await.map(Answer::Reply)
    }

    async fn started(&mut self, cx: &mut Context<Self>) -> Result<(), &'static str> {
        tokio::time::sleep(self.slow_start).await;
        self.told("started", cx.restarts());
        if let Some(deed) = self.at_start.clone() {
            deed(cx);
        }
        if self.broken.load(Ordering::SeqCst) { Err("it is broken") } else { Ok(()) }
    }

    async fn restarting(&mut self, reason: &ExitReason) {
        self.told("restarting", reason);
    }

    async fn exited(
        &mut self,
        who: Option<&AnyAddress>,
        reason: &ExitReason,
        _cx: &mut Context<Self>,
    ) -> OnExit {
        self.told("exited", format_args!("{} {reason}", who.map_or("-", AnyAddress::name)));
        let stop = who.is_none() || reason.is_abnormal();
        if stop && !self.traps { OnExit::Stop } else { OnExit::GoOn }
    }

    async fn down(&mut self, who: &AnyAddress, reason: &ExitReason, _cx: &mut Context<Self>) {
        self.told("down", format_args!("{} {reason}", who.name()));
    }

    async fn stopped(&mut self, reason: &ExitReason) {
        self.told("stopped", reason);
    }
}

/// An actor that stands alone.
pub(crate) async fn alone(probe: Probe) -> Pool<Probe> {
    let name = probe.name;
    Pool::one(probe).name(name).spawn().await.unwrap()
}

/// Lets all tasks run until nothing more happens; under paused time.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Waits until the condition holds for a pool.
pub(crate) async fn until(pool: &Pool<Probe>, done: impl Fn(PoolStats) -> bool) {
    let waited = tokio::time::timeout(HOUR, async {
        while !done(pool.stats()) {
            settle().await;
        }
    });
    waited.await.unwrap();
}

/// A pool in which every worker has started.
pub(crate) async fn up(pool: greenroom::PoolBuilder<Probe>) -> Pool<Probe> {
    let pool = pool.spawn().await.unwrap();
    until(&pool, |stats| stats.idle == stats.configured).await;
    pool
}

/// Polls a future once, and drops it.
pub(crate) async fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    let mut future = std::pin::pin!(future);
    poll_fn(|task| Poll::Ready(future.as_mut().poll(task))).await
}
