//! A store of dead letters, as an engine and an operator have it.

use std::{
    path::Path,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    thread::{self, JoinHandle},
};

use greenroom_config::plural;
use parking_lot::Mutex;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::{
    care::give_reserve_back,
    change::{self, Dropped, Edit, Marked},
    error::LetterError,
    filter::Filter,
    jobs::{self, Job, JobChange},
    mask::Mask,
    options::LetterStoreOptions,
    reserve::Reserves,
    schema::SCHEMA,
    writer::{Change, LetterWriter, WriterOrder, WriterStatus, WriterWatch},
};
use crate::{
    BoxFuture,
    dead_letter::{
        DeadLetter, DeadLetterStore,
        replay::{ReplayEnd, Replayed, Replays, TakenLetters},
    },
    event::Event,
    settlement::Refusal,
    sink::{SinkError, Trouble},
    store::sqlite::{self, Owned},
};

/// Dead letters in a directory of their own. Clones are the same store. It is let go of once the
/// last of them is dropped, or once it was [finished](DeadLetterStore::finish).
///
/// A letter is confirmed once the transaction that it is in is synced to the disk; letters that
/// wait at the same time share one.
#[derive(Clone)]
pub struct LetterStore {
    inner: Arc<StoreInner>,
}

struct StoreInner {
    name: String,
    orders: Mutex<Option<Sender<WriterOrder>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    shown: Arc<WriterStatus>,
    /// Replays that an earlier process may have begun and did not end.
    recovered: u64,
    /// Values that errors must not repeat; empty if there are none.
    in_errors: Mask,
}

impl LetterStore {
    /// Opens the store in this directory, or creates it; the parent has to exist. Letters that an
    /// earlier process was replaying are marked again.
    ///
    /// # Errors
    /// Another process writes it, it is of a later version, or it cannot be read or written.
    pub fn open(directory: &Path, options: LetterStoreOptions) -> Result<Self, LetterError> {
        Self::start(directory, Some(options))
    }

    /// Like [`open`](Self::open), for an operator: nothing is removed because of its age, and the
    /// mask stays.
    ///
    /// # Errors
    /// As there.
    pub fn open_offline(directory: &Path) -> Result<Self, LetterError> {
        Self::start(directory, None)
    }

    /// Opens it, and marks letters that were being replayed again. Returns their number.
    fn own_and_recover(
        directory: &Path,
        options: Option<&LetterStoreOptions>,
    ) -> Result<(Owned, u64), LetterError> {
        let not_opened = |error| LetterError::not_opened(directory, error);
        let mut owned = sqlite::own(directory, &SCHEMA).map_err(not_opened)?;
        let tables = owned.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let recovered = jobs::recover(&tables)?;
        if let Some(options) = options {
            let written = serde_json::Value::from(options.mask.written()).to_string();
            change::note_mask(&tables, &written)?;
        }
        tables.commit()?;
        Ok((owned, recovered))
    }

    fn start(directory: &Path, options: Option<LetterStoreOptions>) -> Result<Self, LetterError> {
        let opened = match Self::own_and_recover(directory, options.as_ref()) {
            // The disk may be full.
            Err(_) if give_reserve_back(directory) => {
                Self::own_and_recover(directory, options.as_ref())
            }
            opened => opened,
        };
        let (owned, recovered) = opened?;
        let mut reserves = Reserves::new(directory);
        reserves.keep();
        let name = format!("letters:{}", directory.display());
        if recovered > 0 {
            tracing::warn!(
                store = name,
                at_most = recovered,
                "replays of dead letters were under way when greenroom ended: they are made again"
            );
        }
        let (orders, taken) = channel();
        let shown = Arc::<WriterStatus>::default();
        let options = options.unwrap_or_default();
        let in_errors = if options.mask_errors { options.mask.clone() } else { Mask::default() };
        let writer =
            LetterWriter::new(name.clone(), taken, owned, reserves, options, shown.clone())?;
        let watch = WriterWatch { name: name.clone(), shown: shown.clone() };
        let run = move || {
            let _watch = watch;
            writer.run();
        };
        let thread = thread::Builder::new().name("dead letters".to_owned()).spawn(run);
        let thread = thread.map_err(|error| LetterError::Failed(format!("no thread: {error}")))?;
        let (orders, writer) = (Mutex::new(Some(orders)), Mutex::new(Some(thread)));
        let inner = StoreInner { name, orders, writer, shown, recovered, in_errors };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Replays that an earlier process may have begun and did not end: as many are repeated at
    /// most.
    pub fn recovered(&self) -> u64 {
        self.inner.recovered
    }

    /// Letters that this process has removed because of the limits.
    pub fn removed(&self) -> u64 {
        self.inner.shown.removed()
    }

    /// Marks letters to be handled again, at most this many a second. An engine that has this store
    /// takes them at once; otherwise the next one that opens it does.
    ///
    /// # Errors
    /// It could not be stored: nothing is marked.
    ///
    /// # Cancel safety
    /// A dropped future may still mark them.
    pub async fn mark(&self, filter: Filter, rate: Option<f64>) -> Result<Marked, LetterError> {
        let marked = self.ask_quietly(move |tables| Ok(change::mark(tables, &filter, rate)?)).await;
        self.inner.shown.marked.notify_one();
        marked
    }

    /// Stops a replay, resumes it, or cancels it.
    ///
    /// # Errors
    /// There is none of this number, or it could not be stored.
    ///
    /// # Cancel safety
    /// A dropped future may still change it.
    pub async fn change_replay(&self, id: u64, change: JobChange) -> Result<Job, LetterError> {
        let job = self.ask_quietly(move |tables| jobs::change(tables, id, change)).await;
        self.inner.shown.marked.notify_one();
        job
    }

    /// Replaces the event of a letter. The original is kept.
    ///
    /// # Errors
    /// There is no such letter, it is being replayed, or it could not be stored.
    ///
    /// # Cancel safety
    /// A dropped future may still change it.
    pub async fn edit(&self, edit: Edit) -> Result<(), LetterError> {
        self.ask(move |tables| change::edit(tables, &edit)).await
    }

    /// Drops these letters for good, except those that are being replayed. Letters that are stored
    /// in the meantime are included, unless the filter has a last number. On a full disk, this uses
    /// the reserve.
    ///
    /// # Errors
    /// It could not be stored: some may be gone.
    ///
    /// # Cancel safety
    /// A dropped future has dropped some of them.
    pub async fn drop_letters(&self, filter: Filter) -> Result<Dropped, LetterError> {
        let mut all = Dropped::default();
        loop {
            let filter = filter.clone();
            let some = move |tables: &Transaction<'_>| Ok(change::drop_some(tables, &filter)?);
            let some = self.ask_with_reserve(some).await?;
            all = Dropped { letters: all.letters + some.letters, ..some };
            if some.letters == 0 {
                return Ok(all);
            }
        }
    }

    /// Has the writer do this in a transaction.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, LetterError> + Send + 'static,
    ) -> Result<T, LetterError> {
        self.ask_as(WriterOrder::Do, change).await
    }

    /// The same, for a change that makes room: if there is none for the change itself, it uses the
    /// reserve.
    pub(super) async fn ask_with_reserve<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, LetterError> + Clone + Send + 'static,
    ) -> Result<T, LetterError> {
        match self.ask(change.clone()).await {
            Err(LetterError::Full(_)) => self.ask_as(WriterOrder::MakeRoom, change).await,
            done => done,
        }
    }

    /// Like [`ask`](Self::ask), for a change that leaves the number of bytes unchanged.
    async fn ask_quietly<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, LetterError> + Send + 'static,
    ) -> Result<T, LetterError> {
        self.ask_as(WriterOrder::Mark, change).await
    }

    async fn ask_as<T: Send + 'static>(
        &self,
        order: fn(Change) -> WriterOrder,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, LetterError> + Send + 'static,
    ) -> Result<T, LetterError> {
        let (tell, told) = oneshot::channel();
        let change = move |tables: &mut Connection| {
            let changed = transact(tables, change);
            let _ = tell.send(changed);
        };
        self.order(order(Box::new(change)));
        told.await.unwrap_or(Err(LetterError::Closed))
    }

    fn order(&self, order: WriterOrder) {
        let orders = self.inner.orders.lock();
        let Some(orders) = &*orders else { return refuse(order) };
        if let Err(unsent) = orders.send(order) {
            refuse(unsent.0);
        }
    }
}

/// The writer is gone.
fn refuse(order: WriterOrder) {
    if let WriterOrder::Store(letter) = order {
        letter.ack.refuse(Refusal::NotStored);
    }
}

fn transact<T>(
    tables: &mut Connection,
    change: impl FnOnce(&Transaction<'_>) -> Result<T, LetterError>,
) -> Result<T, LetterError> {
    let tables = tables.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let changed = change(&tables)?;
    tables.commit()?;
    Ok(changed)
}

impl Drop for StoreInner {
    fn drop(&mut self) {
        self.orders.lock().take();
        let writer = self.writer.lock().take();
        // Its last confirmation may drop the last clone.
        if let Some(writer) = writer.filter(|one| one.thread().id() != thread::current().id()) {
            // Errors of its writes were reported.
            let _ = writer.join();
        }
    }
}

impl DeadLetterStore for LetterStore {
    fn describe(&self) -> String {
        self.inner.name.clone()
    }

    fn store(&self, letter: DeadLetter) {
        self.order(WriterOrder::Store(Box::new(letter)));
    }

    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
        let (tell, told) = oneshot::channel();
        self.order(WriterOrder::Finish(tell));
        Box::pin(async move {
            let finished = told.await;
            finished.unwrap_or_else(|_| self.failure().map_or(Ok(()), Err))
        })
    }

    fn failure(&self) -> Option<SinkError> {
        self.inner.shown.failure()
    }

    fn redact(&self, event: &Event, error: String) -> String {
        self.inner.in_errors.error(event, error)
    }

    fn remark(&self) -> Option<String> {
        let removed = self.removed();
        (removed > 0).then(|| {
            format!("{} removed because of `retention`", plural(removed as usize, "letter"))
        })
    }

    fn trouble(&self) -> Option<Trouble> {
        self.inner.shown.trouble()
    }

    fn replays(&self) -> Option<Arc<dyn Replays>> {
        Some(Arc::new(self.clone()))
    }
}

impl Replays for LetterStore {
    fn take<'a>(
        &'a self,
        most: usize,
        bytes: usize,
    ) -> BoxFuture<'a, Result<TakenLetters, SinkError>> {
        Box::pin(async move {
            let take = move |tables: &Transaction<'_>| Ok(jobs::take(tables, most, bytes)?);
            let taken = self.ask_quietly(take).await;
            taken.map_err(|error| SinkError::new(self.describe(), error.to_string()))
        })
    }

    fn marked<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(self.inner.shown.marked.notified())
    }

    fn ended(&self, replayed: Replayed, how: ReplayEnd) {
        self.order(WriterOrder::Ended(replayed, how));
    }
}
