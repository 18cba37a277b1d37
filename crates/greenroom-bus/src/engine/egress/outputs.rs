//! The outputs of an engine: those that it was built with, and those that come and go while it runs
//! (G01).
//!
//! ```text
//! worker:   look at the list ──▶ match ──▶ enter ──▶ hand the event over ──▶ leave
//!                   ▲                                  │ no room, and closed: taken back
//!                   └──────────────────────────────────┘
//! removal:  take it off the list; close it ──▶ wait until nobody is inside ──▶ the sink stores what it accepted
//! ```
//!
//! Each worker has its own copy of the list, and reads one number to see whether it is current. So
//! a worker may match an event with an output that is being closed: then it cannot enter, reads the
//! list again, which was changed before, and matches again. A worker that waits inside for room
//! does the same once the output is closed, because its target may be down for good. A removal
//! waits for all workers that have entered. No worker enters unseen: a worker counts itself and
//! then checks whether the output is closed; the removal closes the output and then checks the
//! count. All four accesses are sequentially consistent, so one of the two sees the other.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, oneshot};

use crate::{
    engine::{
        account::report::OutputReport,
        control::change::{ChangeError, PortKind, known},
    },
    event::Event,
    name::Name,
    router::{Interest, Interests},
    sink::{Outgoing, Sink, SinkError, Trouble},
    wait::wait_until,
};

/// How often it is looked whether a sink gets on.
const LOOK: Duration = Duration::from_millis(50);

/// Why an event does not go to an output.
pub(crate) enum NotHanded {
    /// The output was removed while the event waited for room. The event is counted in no output
    /// any more, and is matched again.
    Removed(Event),
    /// It was given up while it waited, and is refused.
    GivenUp,
}

/// An output and the events that it covers.
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) interest: Interest,
    pub(crate) sink: Arc<dyn Sink>,
    /// Its permanent rejections, if it may reject.
    pub(crate) rejecting: Option<Arc<Rejecting>>,
    /// Workers that have begun to hand an event to it, whatever came of it; read after `left`.
    entered: AtomicU64,
    /// Of these, the ones whose event it was not given: it was closed, before or while they waited
    /// for room, or they were cut off there.
    turned_away: AtomicU64,
    /// And those that are done.
    left: AtomicU64,
    closed: AtomicBool,
    /// Told when it is closed, and when a worker has left from then on.
    changed: Notify,
    fate: Mutex<OutputFate>,
    /// Workers that wait for room, by pool.
    waiting: Mutex<BTreeMap<Name, u64>>,
}

/// The permanent rejections of an output.
#[derive(Debug)]
pub(crate) struct Rejecting {
    /// The name of the output.
    pub(crate) output: Arc<str>,
    /// How many events.
    pub(crate) events: AtomicU64,
}

#[derive(Debug, Default)]
struct OutputFate {
    removed: bool,
    /// Its sink stores nothing any more.
    over: bool,
    error: Option<String>,
}

/// A worker that hands an event to an output, until it is dropped.
pub(crate) struct Inside<'a> {
    output: &'a Output,
    /// The sink has taken the event.
    is_handed: bool,
}

impl Inside<'_> {
    /// Waits until the sink has room; if it makes no progress, at most until `given_up`.
    ///
    /// # Errors
    /// The event does not go to this output, and does not count as given to it.
    ///
    /// # Cancel safety
    /// A dropped future has dropped the event, which is refused and does not count as given to this
    /// output.
    pub(crate) async fn hand_over<F: Future<Output = ()>>(
        mut self,
        outgoing: Outgoing,
        given_up: impl FnOnce() -> F,
    ) -> Result<(), NotHanded> {
        if let Err(outgoing) = self.output.sink.try_accept(outgoing) {
            // Boxed, so that callers that need not wait do not carry its state.
            Box::pin(self.wait_for_room(outgoing, given_up())).await?;
        }
        self.is_handed = true;
        Ok(())
    }

    /// The sink has only a part that it is lent, so that dropping its future refuses nothing.
    async fn wait_for_room(
        &self,
        outgoing: Outgoing,
        given_up: impl Future<Output = ()>,
    ) -> Result<(), NotHanded> {
        let _waits = Waits::begin(self.output, outgoing.pool);
        let event = outgoing.event.clone();
        let (ack, lent) = outgoing.ack.lend();
        let mut accepted = self.output.sink.accept(Outgoing { ack, ..outgoing });
        tokio::select! {
            biased;
            () = &mut accepted => return Ok(()),
            () = self.output.closed() => {}
            () = self.waits_in_vain(given_up) => {
                // Unless the sink has just settled it, it is refused.
                drop(lent.take_back());
                return Err(NotHanded::GivenUp);
            }
        }
        // Before the sink drops it, which would refuse the event.
        match lent.take_back() {
            Some(ack) => {
                ack.confirm();
                Err(NotHanded::Removed(event))
            }
            // The sink has already settled or refused it.
            None => Ok(()),
        }
    }

    /// Resolves once the event is given up and the sink makes no progress: an event that waits for
    /// room in it could wait for ever.
    async fn waits_in_vain(&self, given_up: impl Future<Output = ()>) {
        given_up.await;
        while self.output.sink.trouble().is_none() {
            tokio::time::sleep(LOOK).await;
        }
    }

    pub(crate) fn rejecting(&self) -> Option<&Arc<Rejecting>> {
        self.output.rejecting.as_ref()
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        if !self.is_handed {
            // Pairs with the load in `report`, which reads `entered` after it: an event counts as
            // turned away only if it counts as entered. Otherwise the difference could be negative.
            self.output.turned_away.fetch_add(1, SeqCst);
        }
        // Pairs with the load in `is_empty`, as the load of `closed` pairs with the store in
        // `remove`: either the removal counts this worker as gone, or this worker sees that the
        // output is closed, and wakes the removal. Otherwise it could wait for ever.
        self.output.left.fetch_add(1, SeqCst);
        // Pairs with the store in `remove`: the other half.
        if self.output.closed.load(SeqCst) {
            self.output.changed.notify_waiters();
        }
    }
}

/// A worker of a pool that waits for room, until it is dropped.
struct Waits<'a>(&'a Output, Name);

impl<'a> Waits<'a> {
    fn begin(output: &'a Output, pool: Name) -> Self {
        *output.waiting.lock().entry(pool).or_default() += 1;
        Self(output, pool)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting.lock();
        let workers = waiting.get_mut(&self.1).map(|workers| {
            *workers -= 1;
            *workers
        });
        if workers == Some(0) {
            waiting.remove(&self.1);
        }
    }
}

impl Output {
    pub(crate) fn new(name: String, interest: Interest, sink: Arc<dyn Sink>) -> Self {
        let rejecting = sink.is_remote().then(|| {
            let output = name.as_str().into();
            Arc::new(Rejecting { output, events: AtomicU64::new(0) })
        });
        Self {
            name,
            interest,
            sink,
            rejecting,
            entered: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            left: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            changed: Notify::new(),
            fate: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// `None` once it is closed.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        // Pairs with the load in `is_empty`, as the load of `closed` pairs with the
        // store in `remove`: either the removal counts this worker and waits for it, or
        // this worker sees that the output is closed. Otherwise a sink could be given an
        // event after it has finished.
        self.entered.fetch_add(1, SeqCst);
        let inside = Inside { output: self, is_handed: false };
        // Pairs with the store in `remove`: the other half.
        (!self.closed.load(SeqCst)).then_some(inside)
    }

    /// How many it has rejected for good.
    pub(crate) fn rejected(&self) -> u64 {
        self.rejecting.as_ref().map_or(0, |rejecting| rejecting.events.load(Relaxed))
    }

    /// How many workers of which pools wait for room.
    pub(crate) fn waiting(&self) -> Vec<(String, u64)> {
        let waiting = self.waiting.lock();
        waiting.iter().map(|(pool, workers)| (pool.to_string(), *workers)).collect()
    }

    fn is_empty(&self) -> bool {
        // In this order: a worker that is seen to have left is seen to have entered. Pairs with the
        // addition in `Inside::drop`.
        let left = self.left.load(SeqCst);
        // Pairs with the addition in `enter`: a worker that is not counted here sees the output
        // closed.
        left == self.entered.load(SeqCst)
    }

    /// Waits until no worker is inside any more.
    async fn empty(&self) {
        wait_until(&self.changed, || self.is_empty().then_some(())).await;
    }

    /// Waits until it is closed.
    async fn closed(&self) {
        // Pairs with the store in `remove`, which is followed by a notification: either the close
        // is seen here, or the notification arrives.
        wait_until(&self.changed, || self.closed.load(SeqCst).then_some(())).await;
    }

    /// Lets the sink store all accepted events. No worker may enter any more.
    async fn end(&self) -> Result<(), SinkError> {
        let _over = OutputOver(self);
        self.empty().await;
        let ended = self.sink.finish().await;
        if let Err(error) = &ended {
            self.fate.lock().error = Some(error.to_string());
        }
        ended
    }

    pub(crate) fn report(&self) -> OutputReport {
        let fate = self.fate.lock();
        // In this order: never fewer than none. Pairs with the addition in `Inside::drop`.
        let turned_away = self.turned_away.load(SeqCst);
        OutputReport {
            name: self.name.clone(),
            target: self.sink.describe(),
            // Pairs with the addition in `enter`: each that was turned away is counted here.
            events: self.entered.load(SeqCst) - turned_away,
            rejected: self.rejected(),
            trouble: self
                .sink
                .trouble()
                .filter(|_| !fate.over)
                .map(|trouble| trouble_text(&trouble)),
            removed: fate.removed,
            error: fate.error.clone(),
        }
    }
}

/// As reports and errors have it.
pub(crate) fn trouble_text(trouble: &Trouble) -> String {
    let (seconds, error) = (trouble.lasted.as_secs(), &trouble.error);
    match trouble.paused {
        true => format!("paused for {seconds} s: {error}"),
        false => format!("failing for {seconds} s: {error}"),
    }
}

/// Frees the name of an output, also where its sink panics.
struct OutputOver<'a>(&'a Output);

impl Drop for OutputOver<'_> {
    fn drop(&mut self) {
        let mut fate = self.0.fate.lock();
        fate.over = true;
        if std::thread::panicking() {
            fate.error = Some("its sink panicked".to_owned());
        }
    }
}

/// An output that was removed, and that the run is to end.
pub(crate) struct Departure {
    output: Arc<Output>,
    /// Dropping it signals that the end will never come.
    ended: oneshot::Sender<()>,
}

impl Departure {
    pub(crate) fn describe(&self) -> String {
        self.output.sink.describe()
    }

    pub(crate) async fn end(self) -> Result<(), SinkError> {
        let ended = self.output.end().await;
        // The caller may not wait for it.
        let _ = self.ended.send(());
        ended
    }
}

pub(crate) type List = Arc<[Arc<Output>]>;

/// All outputs.
pub(crate) struct EngineOutputs {
    /// The active ones, in the order in which they are tried.
    list: RwLock<List>,
    /// Changes with the list, after it.
    version: AtomicU64,
    /// Taken before the list, where both are.
    door: Mutex<OutputRoster>,
    /// Told when one was removed.
    departed: Notify,
}

struct OutputRoster {
    open: bool,
    /// Including removed ones, in the order in which they were added.
    all: Vec<Arc<Output>>,
    departures: Vec<Departure>,
}

impl EngineOutputs {
    pub(crate) fn new() -> Self {
        Self {
            list: RwLock::new(Arc::from([])),
            version: AtomicU64::new(0),
            door: Mutex::new(OutputRoster { open: true, all: Vec::new(), departures: Vec::new() }),
            departed: Notify::new(),
        }
    }

    /// The active ones.
    pub(crate) fn list(&self) -> List {
        self.list.read().clone()
    }

    fn set_list(&self, list: List) {
        *self.list.write() = list;
        // Pairs with the loads in `View`: a view that has this version has this list or a later
        // one, and a worker that found an output closed sees that there is a new one. Otherwise it
        // would match with the closed output again and again.
        self.version.fetch_add(1, SeqCst);
    }

    /// Adds an output, before another one or as the last.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn add(&self, output: Output, before: Option<&str>) -> Result<(), ChangeError> {
        let mut door = self.door.lock();
        if !door.open {
            return Err(ChangeError::Ending);
        }
        PortKind::Output.usable(&output.name)?;
        if let Some(other) = door.all.iter().rev().find(|other| other.name == output.name) {
            let OutputFate { removed, over, .. } = *other.fate.lock();
            if !over {
                return Err(PortKind::Output.name_taken(&output.name, removed));
            }
        }
        let mut list = self.list().to_vec();
        let place = match before {
            Some(before) => find(&list, before)?,
            None => list.len(),
        };
        let output = Arc::new(output);
        door.all.push(output.clone());
        list.insert(place, output);
        self.set_list(list.into());
        Ok(())
    }

    /// The output of this name, among those that are [at work](Self::at_work).
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<Output>, ChangeError> {
        let at_work = self.at_work();
        find(&at_work, name).map(|place| at_work[place].clone())
    }

    /// Takes an output off the list, closes it, and leaves its sink to the run. The returned
    /// receiver resolves when that has ended.
    ///
    /// # Errors
    /// There is none of this name, or the run is ending.
    pub(crate) fn remove(
        &self,
        name: &str,
    ) -> Result<(Arc<Output>, oneshot::Receiver<()>), ChangeError> {
        let mut door = self.door.lock();
        if !door.open {
            return Err(ChangeError::Ending);
        }
        let mut list = self.list().to_vec();
        let output = list.remove(find(&list, name)?);
        self.set_list(list.into());
        output.fate.lock().removed = true;
        // Pairs with the loads in `enter`, `closed` and `Inside::drop`: a worker that does not see
        // it was counted before, and is waited for.
        output.closed.store(true, SeqCst);
        output.changed.notify_waiters();
        let (ended, told) = oneshot::channel();
        door.departures.push(Departure { output: output.clone(), ended });
        drop(door);
        self.departed.notify_one();
        Ok((output, told))
    }

    /// Those that were removed since the last call.
    pub(crate) fn departures(&self) -> Vec<Departure> {
        std::mem::take(&mut self.door.lock().departures)
    }

    /// Waits until one was removed.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn departed(&self) {
        self.departed.notified().await;
    }

    /// None is added or removed any more.
    pub(crate) fn close(&self) {
        self.door.lock().open = false;
    }

    /// Those that may still store something, in the order in which they are tried; then those that
    /// were removed, and are not done.
    pub(crate) fn at_work(&self) -> Vec<Arc<Output>> {
        let door = self.door.lock();
        let leaving = door.all.iter().filter(|output| {
            let OutputFate { removed, over, .. } = *output.fate.lock();
            removed && !over
        });
        self.list().iter().chain(leaving).cloned().collect()
    }

    /// Remarks about them that an operator should know.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let door = self.door.lock();
        let remark = |output: &Arc<Output>| {
            output.sink.remark().map(|what| format!("{}: {what}", output.sink.describe()))
        };
        door.all.iter().filter_map(remark).collect()
    }

    /// How often they sent an event again although the target may already have it.
    pub(crate) fn unanswered(&self) -> u64 {
        self.door.lock().all.iter().map(|output| output.sink.unanswered()).sum()
    }

    /// A row for each that there is or was.
    pub(crate) fn report(&self) -> Vec<OutputReport> {
        self.door.lock().all.iter().map(|output| output.report()).collect()
    }
}

fn find(list: &[Arc<Output>], name: &str) -> Result<usize, ChangeError> {
    let place = list.iter().position(|output| output.name == name);
    place.ok_or_else(|| {
        PortKind::Output.unknown(name, known(list.iter().map(|output| &*output.name)))
    })
}

/// A worker's copy of the outputs.
pub(crate) struct View {
    version: u64,
    list: List,
    /// Those of the list.
    interests: Interests,
}

impl View {
    pub(crate) fn new(outputs: &EngineOutputs) -> Self {
        // Before the list. Pairs with the addition in `set_list`: the list is never older than the
        // version. Were it older, `refresh` would take it for the latest.
        let version = outputs.version.load(SeqCst);
        let list = outputs.list();
        let interests = list.iter().map(|output| output.interest.clone()).collect();
        Self { version, list, interests: Interests::new(interests) }
    }

    /// Reads the current list. Costs a load if it has not changed.
    pub(crate) fn refresh(&mut self, outputs: &EngineOutputs) {
        // Pairs with the addition in `set_list`, which comes before an output is closed: a worker
        // that found one closed gets the list without it.
        if self.version != outputs.version.load(SeqCst) {
            *self = Self::new(outputs);
        }
    }

    /// The only output that an event can go to, if no matcher has to be evaluated: most engines
    /// have one.
    pub(crate) fn plain(&self, event: &Event) -> Option<&Output> {
        self.interests.plain(event).map(|place| &*self.list[place])
    }

    /// The outputs that it knows now.
    pub(crate) fn known(&self) -> List {
        self.list.clone()
    }

    /// The outputs that an event goes to: the first that covers and takes it, or all of them except
    /// those that `have` it. `None` if one of them was removed in between: then there is a newer
    /// list to [read](Self::refresh), in which another output may take its place.
    ///
    /// # Errors
    /// The name of an output whose matcher panicked, and the message of the panic.
    pub(crate) fn taking(
        &self,
        event: &Event,
        all: bool,
        have: &[Arc<Output>],
    ) -> Result<Option<Vec<Inside<'_>>>, (&str, String)> {
        let mut taking = Vec::new();
        for taker in self.interests.takers(event) {
            let place = taker.map_err(|why| (&*self.list[why.place].name, why.panic))?;
            let output = &self.list[place];
            if have.iter().any(|has| Arc::ptr_eq(has, output)) {
                continue;
            }
            let Some(inside) = output.enter() else { return Ok(None) };
            taking.push(inside);
            if !all {
                break;
            }
        }
        Ok(Some(taking))
    }
}
