//! One settlement per event taken: acknowledged once, or refused once with a reason,
//! whatever happens in between.
//!
//! The engine gives every event a settlement when it takes it. Each output or dead letter that
//! stores a result of the event holds an [`Ack`], a part of that settlement. The event is settled
//! when every part is confirmed; a part that is refused or dropped refuses the event.
//!
//! ```text
//! Ack ──child──▶ Ack          confirm ──┐
//!  │    child──▶ Ack          refuse  ──┼──▶ the last part that goes settles the event
//!  └─ the event's own part    drop    ──┘    (acknowledged, where all were confirmed)
//! ```
//!
//! Settling a part consumes it, so no part counts twice. A part that is forgotten refuses the
//! event: an event that is not known to be safe is delivered again. Of several reasons for a
//! refusal, the most severe is reported, whatever the order in which they came ([`Refusal`]).
//!
//! ```
//! use std::sync::mpsc;
//! use greenroom_bus::settlement::{Ack, Outcome, Refusal, Settle, Settled};
//!
//! struct Tell(mpsc::Sender<Settled>);
//! impl Settle for Tell {
//!     fn settled(&self, how: Settled) {
//!         let _ = self.0.send(how);
//!     }
//! }
//!
//! let (tell, told) = mpsc::channel();
//! let event = Ack::new(Tell(tell.clone()));
//! let (stored, lost) = (event.child(), event.child());
//! event.confirm();
//! stored.confirm();
//! assert!(told.try_recv().is_err(), "a part is open");
//! drop(lost);
//! assert_eq!(told.recv()?, Settled::Refused(Refusal::Dropped));
//! # Ok::<(), mpsc::RecvError>(())
//! ```

mod lent;
mod watch;

#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;

use std::{
    cell::RefCell,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering},
    },
};

use parking_lot::Mutex;

pub(crate) use watch::Following;

/// How an acknowledged event ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Outcome {
    /// Its handler handled it, and the results are stored.
    Handled = 0,
    /// It is safely in the dead letters.
    DeadLettered = 1,
    /// No handler is named for it, and the configuration says to ignore such events.
    Ignored = 2,
}

/// Why an event was refused, the most severe last: of several reasons, that one is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum Refusal {
    /// It was not settled explicitly: a part was dropped, by a stop at its deadline, or by a panic.
    Dropped = 3,
    /// No handler is named for it, and the configuration says to refuse such events.
    NoHandler = 4,
    /// Its pool was full, and says `on_full: reject`.
    PoolFull = 5,
    /// Its results could not be stored.
    NotStored = 6,
    /// No handler for its type takes it, and the configuration says to refuse such events.
    HandlerRejected = 7,
    /// Its handler, which settles its events itself, has said so.
    Handler = 8,
    /// A stop came before it was done, and its input delivers it again.
    GivenBack = 9,
    /// Its partition was taken away before it was done. The next owner of the partition handles it.
    Revoked = 10,
}

impl Refusal {
    /// The spelling used in logs and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::NoHandler => "no_handler",
            Self::PoolFull => "pool_full",
            Self::NotStored => "not_stored",
            Self::HandlerRejected => "handler_rejected",
            Self::Handler => "handler",
            Self::GivenBack => "given_back",
            Self::Revoked => "revoked",
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How an event was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settled {
    /// The source need not deliver it again.
    Acknowledged(Outcome),
    /// The source should deliver it again, if it can.
    Refused(Refusal),
}

impl Settled {
    /// Whether the source need not deliver it again.
    pub fn is_acknowledged(self) -> bool {
        matches!(self, Self::Acknowledged(_))
    }

    /// The outcome or refusal that this state encodes.
    fn from_state(state: u8) -> Self {
        match state {
            0 => Self::Acknowledged(Outcome::Handled),
            1 => Self::Acknowledged(Outcome::DeadLettered),
            2 => Self::Acknowledged(Outcome::Ignored),
            4 => Self::Refused(Refusal::NoHandler),
            5 => Self::Refused(Refusal::PoolFull),
            6 => Self::Refused(Refusal::NotStored),
            7 => Self::Refused(Refusal::HandlerRejected),
            8 => Self::Refused(Refusal::Handler),
            9 => Self::Refused(Refusal::GivenBack),
            10 => Self::Refused(Refusal::Revoked),
            _ => Self::Refused(Refusal::Dropped),
        }
    }
}

/// Receives, once, how an event ended.
pub trait Settle: Send + Sync + 'static {
    /// Called exactly once for each settlement, on whichever thread released its last part. A panic
    /// in here ends here, with an error in the log: it may be reached from a `drop` that runs
    /// because of another panic.
    fn settled(&self, how: Settled);

    /// The event has left its line: its handler is done with it, and the outputs have taken the
    /// results. Called at most once, and before [`settled`](Self::settled); never for an event that
    /// does not leave.
    fn left(&self) {}

    /// True once the partition of its event was revoked: the new owner handles it again, so its
    /// results need not go anywhere any more.
    fn is_revoked(&self) -> bool {
        false
    }

    /// The settlement that this one is a part of, if there is one and it is not settled yet: that
    /// of the event that this one was made of.
    fn part_of(&self) -> Option<Watch> {
        None
    }

    /// Called before, for each part that was [rejected](Ack::reject), on the thread that rejects
    /// it. False if nothing follows from it: the event is then refused.
    fn rejected(&self, why: String) -> bool {
        let _ = why;
        false
    }
}

/// One part of an event's settlement. Confirmed or refused; dropped, it refuses.
pub struct Ack {
    /// None in a settled part, and in a detached settlement.
    shared: Option<Arc<Shared>>,
}

struct Shared<S: Settle + ?Sized = dyn Settle> {
    /// Parts that are neither confirmed nor refused. At 0, the settlement has
    /// fired, and it stays there.
    open: AtomicU32,
    /// The number of the outcome or refusal: it only rises, so that the order in which
    /// parts go does not matter.
    state: AtomicU8,
    /// A listener is to be notified in addition to `settle`. Set by holders of a part, so that the
    /// last one sees it.
    is_watched: AtomicBool,
    /// Something that was made of the event has gone back in.
    has_sent_back: AtomicBool,
    /// The watchers.
    watchers: Mutex<Option<Box<Watchers>>>,
    settle: S,
}

/// Refers to a settlement, without keeping it open. Cheap to clone.
///
/// The engine attaches it to an event as a [local value](crate::event::Event::local) if a layer
/// asks for it: a [deduplication](crate::layer::Deduplication) counts an event as seen only once it
/// is acknowledged.
#[derive(Clone)]
pub struct Watch {
    /// None for a detached settlement, which is never settled.
    shared: Option<Weak<Shared>>,
}

/// In a box of their own: hardly any settlement has one, and without them it fits into a cache
/// line.
#[derive(Default)]
struct Watchers {
    told: Vec<Watcher>,
    /// Parts of other settlements, which are confirmed or refused as this one is.
    waiting: Vec<Ack>,
}

type Watcher = Box<dyn FnOnce(Settled) + Send>;

impl Ack {
    /// The first part of a new settlement, which reports to `settle`.
    pub fn new(settle: impl Settle) -> Self {
        let shared = Shared {
            open: AtomicU32::new(1),
            state: AtomicU8::new(Outcome::Handled as u8),
            is_watched: AtomicBool::new(false),
            has_sent_back: AtomicBool::new(false),
            watchers: Mutex::default(),
            settle,
        };
        Self { shared: Some(Arc::new(shared)) }
    }

    /// A detached settlement, which reports to no one, for tests and tools.
    pub fn detached() -> Self {
        Self { shared: None }
    }

    /// Another part of the same settlement.
    pub fn child(&self) -> Self {
        if let Some(shared) = &self.shared {
            shared.open.fetch_add(1, Ordering::Relaxed);
        }
        Self { shared: self.shared.clone() }
    }

    /// The meaning of an acknowledgement, unless the event is refused; [`Outcome::Handled`] by
    /// default. If set several times, the last in the order of [`Outcome`] counts.
    pub fn set_outcome(&self, outcome: Outcome) {
        if let Some(shared) = &self.shared {
            shared.state.fetch_max(outcome as u8, Ordering::Relaxed);
        }
    }

    /// True once the partition of its event was revoked. A sink that delivers to another party
    /// checks this before it sends events that have waited: the new owner of the partition sends
    /// them again.
    pub fn is_revoked(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.settle.is_revoked())
    }

    /// The event leaves its line.
    pub(crate) fn leave(&self) {
        if let Some(shared) = &self.shared {
            contained(|| shared.settle.left());
        }
    }

    /// A part for an event that goes back in. From now on the event may wait for events that wait
    /// for others.
    pub(crate) fn child_sent_back(&self) -> Self {
        if let Some(shared) = &self.shared {
            shared.has_sent_back.store(true, Ordering::Relaxed);
        }
        self.child()
    }

    /// This part is done: stored, or handled with nothing to store.
    pub fn confirm(mut self) {
        if let Some(shared) = self.shared.take() {
            release(shared);
        }
    }

    /// This part failed: the event is refused, whatever its other parts say.
    pub fn refuse(mut self, why: Refusal) {
        self.give_up(why);
    }

    /// This part ends as another settlement has.
    fn follow(self, how: Settled) {
        match how {
            Settled::Acknowledged(_) => self.confirm(),
            Settled::Refused(why) => self.refuse(why),
        }
    }

    /// Reads of its settlement. Done for many in a row, their cache misses overlap.
    pub(crate) fn fetch(&self) -> u8 {
        self.shared.as_ref().map_or(0, |shared| shared.state.load(Ordering::Relaxed))
    }

    /// No attempt will help: the event that this part represents will never be stored. In an
    /// engine, the input of a rejected event becomes a dead letter with the reason
    /// `output_rejected`, which holds the event and this error.
    ///
    /// This is for sinks that declare it ([`Sink::is_remote`](crate::sink::Sink::is_remote)). For
    /// others, the engine has not kept the contents of a letter, and the event is refused.
    pub fn reject(self, why: impl Into<String>) {
        let why = why.into();
        let told = self.shared.as_ref().is_some_and(|shared| {
            catch_unwind(AssertUnwindSafe(|| shared.settle.rejected(why))).unwrap_or(false)
        });
        match told {
            true => self.confirm(),
            false => self.refuse(Refusal::NotStored),
        }
    }

    fn give_up(&mut self, why: Refusal) {
        if let Some(shared) = self.shared.take() {
            shared.state.fetch_max(why as u8, Ordering::Relaxed);
            release(shared);
        }
    }
}

thread_local! {
    /// Settlements that are to fire once the one has that fires on this thread now.
    static BEHIND: RefCell<Option<VecDeque<Arc<Shared>>>> = const { RefCell::new(None) };
}

/// A part is released. Its writes to the state, and to the watchers, are visible to the one that is
/// released last.
fn release(shared: Arc<Shared>) {
    if shared.open.fetch_sub(1, Ordering::AcqRel) == 1 {
        fire_in_turn(shared);
    }
}

/// Settlements may be parts of others: of an event that came back in, for as often as it did. They
/// fire one after the other, as one inside the other would take a stack as deep as that.
fn fire_in_turn(shared: Arc<Shared>) {
    let mut next = Some(shared);
    let is_first = BEHIND.try_with(|behind| match &mut *behind.borrow_mut() {
        Some(behind) => {
            behind.extend(next.take());
            false
        }
        none => {
            *none = Some(VecDeque::new());
            true
        }
    });
    // On a thread that ends, there is no such place any more.
    let is_first = is_first.unwrap_or(false);
    while let Some(shared) = next.take() {
        shared.fire(Settled::from_state(shared.state.load(Ordering::Relaxed)));
        drop(shared);
        if is_first {
            next = BEHIND.with(|behind| behind.borrow_mut().as_mut()?.pop_front());
        }
    }
    if is_first {
        BEHIND.set(None);
    }
}

impl Shared {
    fn fire(&self, how: Settled) {
        if self.is_watched.load(Ordering::Relaxed) {
            let watchers = self.watchers.lock().take().unwrap_or_default();
            for watcher in watchers.told {
                contained(|| watcher(how));
            }
            for part in watchers.waiting {
                part.follow(how);
            }
        }
        contained(|| self.settle.settled(how));
    }
}

/// Runs user code that may panic, in places that must not unwind.
fn contained(call: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(call)).is_err() {
        tracing::error!("what was told of a settlement panicked; the settlement stands");
    }
}

impl Drop for Ack {
    fn drop(&mut self) {
        self.give_up(Refusal::Dropped);
    }
}

impl std::fmt::Debug for Ack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ack").finish_non_exhaustive()
    }
}
