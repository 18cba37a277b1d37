//! The one thread that writes a store of dead letters.
//!
//! ```text
//! orders ──▶ letters and ends of replays: one transaction for all that wait ──▶ confirmed
//!        └─▶ what an operator asks for: a transaction of its own ──▶ answered
//!
//! no room ──▶ the reserve is given back ──▶ no room again ──▶ they wait; tried again each second
//! no room for a change that makes some ──▶ the journal's reserve is given back for as long
//! a write or a sync fails ──▶ for good: what waits and what comes is refused
//! ```

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use greenroom_config::plural;
use parking_lot::Mutex;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{Notify, oneshot};

use super::{change, jobs, options::LetterStoreOptions, reserve::Reserves, row};
use crate::{
    dead_letter::{
        DeadLetter,
        replay::{ReplayEnd, Replayed},
    },
    settlement::Refusal,
    sink::{SinkError, Trouble},
    store::sqlite::{Failed, Owned, checkpoint, error_text, vacuum},
};

/// Letters wait this long for others, as those of a file do: a sync for each would take processor
/// time from the handlers.
const PAUSE: Duration = Duration::from_millis(10);

/// The limits of one transaction: letters, and bytes of them, unless a single one has more. The
/// reserve for the journal depends on it.
const AT_ONCE: usize = 1_024;
const BYTES_AT_ONCE: usize = 2 << 20;

/// How long a transaction that found no room waits before it is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// How often the age of letters is looked at, and whether there is room for the reserves again.
const CARE: Duration = Duration::from_secs(10);

/// An order to the writer.
pub(super) enum WriterOrder {
    Store(Box<DeadLetter>),
    Ended(Replayed, ReplayEnd),
    /// Done at once, in a transaction of its own; it may change how much there is.
    Do(Change),
    /// Like that, if it does not.
    Mark(Change),
    /// As the first, of a change that makes room and found none for itself.
    MakeRoom(Change),
    Finish(oneshot::Sender<Result<(), SinkError>>),
}

/// A change that a caller waits for.
pub(super) type Change = Box<dyn FnOnce(&mut Connection) + Send>;

/// The writer's state, as seen by others.
#[derive(Debug, Default)]
pub(super) struct WriterStatus {
    failure: Mutex<Option<SinkError>>,
    trouble: Mutex<Option<(Instant, bool, String)>>,
    removed: Mutex<u64>,
    /// Told when letters were marked.
    pub(super) marked: Notify,
}

impl WriterStatus {
    pub(super) fn failure(&self) -> Option<SinkError> {
        self.failure.lock().clone()
    }

    pub(super) fn fail(&self, error: SinkError) {
        self.failure.lock().get_or_insert(error);
    }

    pub(super) fn trouble(&self) -> Option<Trouble> {
        let trouble = self.trouble.lock();
        trouble.as_ref().map(|(since, paused, error)| match paused {
            true => Trouble::paused(since.elapsed(), error),
            false => Trouble::failing(since.elapsed(), error),
        })
    }

    fn set_trouble(&self, paused: bool, error: String) {
        let mut trouble = self.trouble.lock();
        let since = trouble.as_ref().map_or_else(Instant::now, |(since, ..)| *since);
        *trouble = Some((since, paused, error));
    }

    pub(super) fn removed(&self) -> u64 {
        *self.removed.lock()
    }
}

/// Work that waits for a transaction.
enum Pending {
    Letter(Box<DeadLetter>),
    Ended(Replayed, ReplayEnd),
}

impl Pending {
    fn bytes(&self) -> usize {
        match self {
            Self::Letter(letter) => letter.approximate_bytes(),
            Self::Ended(..) => 0,
        }
    }
}

/// Orders that are not done.
#[derive(Default)]
struct Due {
    pending: Vec<Pending>,
    /// Orders of operators that came with letters.
    asked: Vec<Change>,
    /// One of them may change how much there is.
    is_unweighed: bool,
    finish: Option<oneshot::Sender<Result<(), SinkError>>>,
}

pub(super) struct LetterWriter {
    name: String,
    orders: Receiver<WriterOrder>,
    /// Dropped before the lock: the next holder of the lock finds the database unused.
    tables: Connection,
    _lock: crate::sink::lock::Locked,
    reserves: Reserves,
    options: LetterStoreOptions,
    shown: Arc<WriterStatus>,
    due: Due,
    /// The bytes of all letters.
    bytes: i64,
    cared: Instant,
    /// When letters that found no room are tried again.
    again: Option<Instant>,
}

impl LetterWriter {
    pub(super) fn new(
        name: String,
        orders: Receiver<WriterOrder>,
        owned: Owned,
        reserves: Reserves,
        options: LetterStoreOptions,
        shown: Arc<WriterStatus>,
    ) -> rusqlite::Result<Self> {
        let Owned { connection: tables, lock } = owned;
        let bytes = change::bytes(&tables)?;
        Ok(Self {
            name,
            orders,
            tables,
            _lock: lock,
            reserves,
            options,
            shown,
            due: Due::default(),
            bytes,
            cared: Instant::now(),
            again: None,
        })
    }

    /// Runs until it gets the order to finish, or all senders are dropped.
    pub(super) fn run(mut self) {
        self.care();
        loop {
            let open = self.wait();
            self.write_pending();
            for order in std::mem::take(&mut self.due.asked) {
                order(&mut self.tables);
            }
            self.weigh();
            if self.cared.elapsed() >= CARE || self.is_too_large() {
                self.care();
            }
            if let Some(tell) = self.due.finish.take() {
                return self.end(Some(tell));
            }
            if !open {
                return self.end(None);
            }
        }
    }

    /// Waits for orders, or until it is time to do something. False once there are no more.
    fn wait(&mut self) -> bool {
        let care = CARE.saturating_sub(self.cared.elapsed());
        let again = self.again.map(|again| again.saturating_duration_since(Instant::now()));
        let patience = again.map_or(care, |again| again.min(care));
        match self.orders.recv_timeout(patience) {
            Ok(order) => self.take(order),
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        if !self.due.pending.is_empty() && self.again.is_none() && self.due.finish.is_none() {
            thread::sleep(PAUSE);
        }
        while let Ok(order) = self.orders.try_recv() {
            self.take(order);
        }
        true
    }

    fn take(&mut self, order: WriterOrder) {
        match order {
            WriterOrder::Store(letter) => self.due.pending.push(Pending::Letter(letter)),
            WriterOrder::Ended(replayed, how) => {
                self.due.pending.push(Pending::Ended(replayed, how))
            }
            WriterOrder::Do(order) => {
                self.due.is_unweighed = true;
                self.due.asked.push(order);
            }
            WriterOrder::Mark(order) => self.due.asked.push(order),
            WriterOrder::MakeRoom(order) => self.make_room(order),
            WriterOrder::Finish(tell) => self.due.finish = Some(tell),
        }
    }

    /// Stores pending letters. Those that find no room keep waiting.
    fn write_pending(&mut self) {
        let is_due = self.again.is_none_or(|again| Instant::now() >= again);
        if self.due.pending.is_empty() || !(is_due || self.due.finish.is_some()) {
            return;
        }
        while !self.due.pending.is_empty() {
            if self.shown.failure().is_some() {
                return self.refuse();
            }
            let count = self.group();
            match self.write(count) {
                Ok(grown) => {
                    self.bytes += grown;
                    self.stored(count);
                }
                Err(error) => match Failed::classify(&error) {
                    Failed::Full if self.gives_reserve_back() => {}
                    Failed::Full | Failed::Busy => {
                        return self.waits(&error_text(&error));
                    }
                    Failed::ForGood => self.fail(&error),
                },
            }
        }
    }

    /// How many of the pending letters go into the next transaction.
    fn group(&self) -> usize {
        let mut together = 0;
        let fits = |pending: &&Pending| {
            together += pending.bytes();
            together <= BYTES_AT_ONCE
        };
        self.due.pending.iter().take(AT_ONCE).take_while(fits).count().max(1)
    }

    fn write(&mut self, count: usize) -> rusqlite::Result<i64> {
        let tables = self.tables.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut grown = 0;
        for pending in &self.due.pending[..count] {
            match pending {
                Pending::Letter(letter) => grown += row::store(&tables, letter)?,
                Pending::Ended(replayed, how) => grown -= jobs::ended(&tables, *replayed, how)?,
            }
        }
        tables.commit()?;
        Ok(grown)
    }

    fn stored(&mut self, count: usize) {
        for pending in self.due.pending.drain(..count) {
            if let Pending::Letter(letter) = pending {
                letter.ack.confirm();
            }
        }
        if self.again.take().is_some() {
            tracing::info!(store = self.name, "dead letters are stored again");
            self.shown.trouble.lock().take();
            if !self.reserves.letters.is_kept() {
                self.shown.set_trouble(false, IN_RESERVE.to_owned());
            }
        }
    }

    fn gives_reserve_back(&mut self) -> bool {
        if !self.reserves.letters.give_back() {
            return false;
        }
        tracing::error!(store = self.name, "{IN_RESERVE}");
        self.shown.set_trouble(false, IN_RESERVE.to_owned());
        true
    }

    /// Lets the change use the whole reserve. The reserve of the journal is rebuilt before a letter
    /// can use it.
    fn make_room(&mut self, change: Change) {
        self.gives_reserve_back();
        self.reserves.journal.give_back();
        // Without it, the journal would keep growing. If it fails, the change reports why.
        let _ = checkpoint(&self.tables);
        change(&mut self.tables);
        self.due.is_unweighed = true;
        let _ = vacuum(&self.tables).and_then(|()| checkpoint(&self.tables));
        let _ = self.reserves.journal.keep();
    }

    fn waits(&mut self, why: &str) {
        // Before the log says so: whoever reads it looks at the health next.
        self.shown.set_trouble(true, format!("nothing is stored, letters wait: {why}"));
        if self.again.is_none() {
            let letters = self.due.pending.len();
            tracing::error!(
                store = self.name,
                letters,
                "dead letters cannot be stored; they wait, their events stay unsettled: {why}"
            );
        }
        self.again = Some(Instant::now() + AGAIN);
    }

    fn fail(&mut self, error: &rusqlite::Error) {
        let reason = format!("cannot be written: {}; then run again", error_text(error));
        tracing::error!(store = self.name, reason, "dead letters cannot be stored any more");
        self.shown.fail(SinkError::new(self.name.clone(), reason));
    }

    fn refuse(&mut self) {
        for pending in self.due.pending.drain(..) {
            if let Pending::Letter(letter) = pending {
                letter.ack.refuse(Refusal::NotStored);
            }
        }
        self.again = None;
    }

    /// An operator may have changed how much there is.
    fn weigh(&mut self) {
        if std::mem::take(&mut self.due.is_unweighed)
            && let Ok(bytes) = change::bytes(&self.tables)
        {
            self.bytes = bytes;
        }
    }

    fn is_too_large(&self) -> bool {
        self.options.size.is_some_and(|most| self.bytes > i64::try_from(most).unwrap_or(i64::MAX))
    }

    /// Removes letters beyond the limits, returns room to the file system, and maintains the
    /// reserves.
    fn care(&mut self) {
        self.cared = Instant::now();
        if self.shown.failure().is_some() {
            return;
        }
        if let Err(error) = self.retire() {
            tracing::warn!(store = self.name, error = error_text(&error), "nothing was removed");
        }
        if self.reserves.letters.is_kept() && self.reserves.journal.is_kept() {
            return;
        }
        // The room of dropped letters is used for the reserves. Without any, it stays.
        let _ = vacuum(&self.tables).and_then(|()| checkpoint(&self.tables));
        let kept = self.reserves.journal.keep();
        if self.again.is_none() && kept.and_then(|()| self.reserves.letters.keep()).is_ok() {
            tracing::info!(store = self.name, "room for dead letters is kept again");
            self.shown.trouble.lock().take();
        }
    }

    fn retire(&mut self) -> rusqlite::Result<()> {
        let mut removed = 0;
        loop {
            let tables = self.tables.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (letters, bytes) = change::retire(&tables, &self.options, self.bytes)?;
            tables.commit()?;
            if letters == 0 {
                break;
            }
            removed += letters;
            self.bytes -= bytes;
        }
        if removed > 0 {
            *self.shown.removed.lock() += removed;
            tracing::warn!(
                store = self.name,
                letters = removed,
                "dead letters were removed: `retention` says how many are kept, and for how long"
            );
            vacuum(&self.tables)?;
        }
        Ok(())
    }

    fn end(mut self, tell: Option<oneshot::Sender<Result<(), SinkError>>>) {
        // The last letters that were stored may have ended replays.
        while let Ok(order) = self.orders.try_recv() {
            self.take(order);
        }
        self.write_pending();
        if self.again.is_some() {
            let why = self.shown.trouble().map_or_else(String::new, |trouble| trouble.error);
            let letters = plural(self.due.pending.len(), "letter");
            let reason = format!("{letters} not stored: {why}");
            self.shown.fail(SinkError::new(self.name.clone(), reason));
        }
        self.refuse();
        let result = self.shown.failure().map_or(Ok(()), Err);
        let Self { tables, _lock, mut reserves, .. } = self;
        let found_no_room = checkpoint(&tables).is_err();
        if found_no_room {
            reserves.journal.give_back();
        }
        // Takes the journal into the database, and removes it.
        let _ = tables.close();
        if found_no_room {
            let _ = reserves.journal.keep();
        }
        drop(_lock);
        if let Some(tell) = tell {
            let _ = tell.send(result);
        }
    }
}

const IN_RESERVE: &str = "the disk is full: the room that was kept for dead letters is being used \
                          up; make room before it is";

/// Says that the store is broken, should the thread end by a panic.
pub(super) struct WriterWatch {
    pub(super) name: String,
    pub(super) shown: Arc<WriterStatus>,
}

impl Drop for WriterWatch {
    fn drop(&mut self) {
        if thread::panicking() {
            let reason = "its writer panicked; please report this, and run again";
            self.shown.fail(SinkError::new(self.name.clone(), reason));
        }
    }
}
