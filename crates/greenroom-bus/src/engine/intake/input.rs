//! One input: its label, its events under way, and how it ends.

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use tokio::{sync::Notify, time::Instant};

use super::{
    budget::{BudgetView, InputConfig, ParkedPart},
    held_by::{HeldBy, HeldByShare},
    partition::{Assigned, GivenUp, Revocations},
    view::{InputView, PartitionView},
};
use crate::{
    engine::{
        account::report::InputReport,
        config::Finish,
        process::{origin::NO_ASSIGNMENT, replaying::ReplayQueue},
    },
    name::Name,
    settlement::Settled,
    source::{Committer, Lease, Partition, Place, Places, Source, SourceError, StatusCell},
    wait::wait_until,
};

/// Above 1,000,000 millionths: how much of the input has been read is not known.
const UNKNOWN: u64 = u64::MAX >> 16;

/// One input, for as long as the engine lives.
pub(crate) struct Input {
    pub(crate) name: Arc<str>,
    /// Its source.
    pub(crate) label: Arc<str>,
    source: SourceTells,
    /// Whether it was given a source: it is neither the way back nor the callers of a router.
    pub(crate) has_source: bool,
    /// Its source may give more.
    is_read: AtomicBool,
    pub(crate) stop: InputStop,
    progress: ReadingProgress,
    pub(crate) taken: AtomicU64,
    pub(crate) partitions: Partitions,
    /// Dead letters of it that are handled again.
    pub(crate) replays: ReplayQueue,
    outstanding: Outstanding,
    pub(crate) fate: Mutex<InputFate>,
}

/// Answers of a source to questions that are asked once.
#[derive(Default)]
struct SourceTells {
    /// Translates its positions into places, if it reads several things.
    places: Option<Arc<dyn Places>>,
    /// Its connection status, if it is a client of a server.
    status: Option<Arc<StatusCell>>,
    /// How long its partitions are its own, if they may be taken away.
    lease: Option<Arc<Lease>>,
}

impl SourceTells {
    fn ask(source: &dyn Source) -> Self {
        Self { places: source.places(), status: source.status(), lease: source.lease() }
    }
}

/// How far an input has been read, at the last look.
struct ReadingProgress {
    /// The part of it, in millionths; above that if it is not known.
    read: AtomicU64,
    /// Bytes that were not read yet; unknown as above.
    behind: AtomicU64,
    /// Files that are lost if they are removed.
    at_risk: AtomicUsize,
}

/// The remaining work of an input before it is gone.
#[derive(Default)]
struct Outstanding {
    /// Its intake, and batches with unsettled events.
    under_way: AtomicUsize,
    /// It keeps its positions, and the last ones are not stored yet.
    keeping: AtomicBool,
    /// Stores them.
    committer: OnceLock<Arc<dyn Committer>>,
    /// Its run is over: events that are not settled yet are not waited for, and may never be
    /// settled.
    is_over: AtomicBool,
    /// Told when nothing of it is under way any more, and when its last positions are stored.
    done: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct InputFate {
    pub(crate) removed: bool,
    /// The error of its source.
    pub(crate) error: Option<String>,
}

/// Counts an input as one that may still give events, until it is dropped, even by a panic of its
/// source.
pub(crate) struct StillReading {
    pub(crate) input: Arc<Input>,
    pub(crate) all: Arc<AtomicUsize>,
}

impl Drop for StillReading {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.input.fate.lock().error.get_or_insert_with(|| "its source panicked".to_owned());
        }
        self.input.is_read.store(false, Ordering::Release);
        self.all.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Something of an input that is not done: reading it, or a batch of its events. One for each
/// batch, not for each event.
pub(crate) struct UnderWay(Arc<Input>);

impl UnderWay {
    /// How an event of it ends that is of no partition, and settled like this.
    pub(crate) fn ends(&self, how: Settled) -> Settled {
        let revocations = &self.0.partitions.revocations;
        if revocations.has(NO_ASSIGNMENT) { revocations.give_back(how) } else { how }
    }

    pub(crate) fn new(input: &Arc<Input>) -> Self {
        input.outstanding.under_way.fetch_add(1, Ordering::AcqRel);
        Self(input.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if self.0.outstanding.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.outstanding.done.notify_waiters();
        }
    }
}

impl Input {
    pub(crate) fn new(
        name: String,
        label: Arc<str>,
        source: Option<&dyn Source>,
        partitions: Partitions,
    ) -> Arc<Self> {
        let has_source = source.is_some();
        Arc::new(Self {
            name: name.into(),
            label,
            source: source.map(SourceTells::ask).unwrap_or_default(),
            has_source,
            is_read: AtomicBool::new(has_source),
            stop: InputStop::default(),
            progress: ReadingProgress {
                read: AtomicU64::new(UNKNOWN),
                behind: AtomicU64::new(UNKNOWN),
                at_risk: AtomicUsize::new(0),
            },
            taken: AtomicU64::new(0),
            partitions,
            replays: ReplayQueue::default(),
            outstanding: Outstanding::default(),
            fate: Mutex::default(),
        })
    }

    /// The source of this position in this assignment, and the position in it.
    pub(crate) fn place(&self, assigned: u32, position: u64) -> Place {
        let partition = match self.partitions.come_and_go {
            true => self.partitions.partition_of(assigned),
            false => Some(Partition::ONLY),
        };
        match &self.source.places {
            Some(places) => places.place(partition, position),
            None => Place { source: self.label.clone(), position },
        }
    }

    /// How long its partitions are its own, if they may be taken away.
    pub(crate) fn lease(&self) -> Option<&Arc<Lease>> {
        self.source.lease.as_ref()
    }

    /// The progress that its source reports.
    pub(crate) fn show_progress(&self, source: &dyn Source) {
        if let Some(part) = source.progress() {
            self.progress.read.store((part.clamp(0.0, 1.0) * 1e6) as u64, Ordering::Relaxed);
        }
        if let Some(behind) = source.behind() {
            self.progress.behind.store(behind.min(UNKNOWN - 1), Ordering::Relaxed);
            self.progress.at_risk.store(source.files_at_risk(), Ordering::Relaxed);
        }
    }

    /// The part of it that has been read, in millionths; above that if it is not known.
    pub(crate) fn part_read(&self) -> u64 {
        self.progress.read.load(Ordering::Relaxed)
    }

    pub(crate) fn behind(&self) -> Option<u64> {
        Some(self.progress.behind.load(Ordering::Relaxed)).filter(|behind| *behind < UNKNOWN)
    }

    /// Its source has ended.
    pub(crate) fn ended(&self, how: &Result<(), SourceError>) {
        if let Err(error) = how {
            self.fate.lock().error = Some(error.to_string());
        }
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.fate.lock().removed
    }

    /// True while its source may give more.
    pub(crate) fn is_read(&self) -> bool {
        self.is_read.load(Ordering::Acquire)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.outstanding.under_way.load(Ordering::Acquire) == 0
    }

    /// Waits until it is not read any more, and all that it gave is settled.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn done(&self) {
        self.until(Self::is_done).await;
    }

    /// Like [`done`](Self::done), and until its last positions are stored, if it keeps any; or
    /// until its run is over.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn gone(&self) {
        self.until(Self::is_gone).await;
    }

    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        wait_until(&self.outstanding.done, || is_so(self).then_some(())).await;
    }

    pub(crate) fn is_gone(&self) -> bool {
        (self.is_done() && !self.is_keeping()) || self.outstanding.is_over.load(Ordering::Acquire)
    }

    /// How often its positions are to be stored, where its configuration says so.
    pub(crate) fn commits_every(&self) -> Option<Duration> {
        self.partitions.config.commit_every
    }

    /// Its positions are stored from here on, by this.
    pub(crate) fn keeps_positions(&self, committer: Arc<dyn Committer>) {
        self.outstanding.keeping.store(true, Ordering::Release);
        // One run asks once.
        let _ = self.outstanding.committer.set(committer);
    }

    /// It keeps positions, so its source delivers events again that are not done.
    pub(crate) fn delivers_again(&self) -> bool {
        self.outstanding.committer.get().is_some()
    }

    /// A stop came that waits for the events of this `finish`; no others are started any more.
    pub(crate) fn stops(&self, finish: Option<Finish>) {
        match (finish, self.delivers_again()) {
            (Some(Finish::All), _) | (None, false) => {}
            (Some(Finish::InHand), false) => self.partitions.give_up(GivenUp::Refused),
            (Some(Finish::InHand) | None, true) => self.partitions.give_up(GivenUp::GivenBack),
        }
    }

    /// The state of the input and of each of its partitions.
    pub(crate) fn view(&self) -> InputView {
        let standings = self.outstanding.committer.get().map(|committer| committer.partitions());
        let standing = |partition: Partition| {
            standings.iter().flatten().find(|standing| standing.partition == partition).copied()
        };
        let (partitions, all) = (self.partitions.all(), self.partitions.sum());
        let partitions: Vec<PartitionView> =
            partitions.iter().map(|one| one.view(standing(one.partition))).collect();
        InputView {
            files_at_risk: self.progress.at_risk.load(Ordering::Relaxed),
            name: self.name.to_string(),
            source: self.label.to_string(),
            is_read: self.is_read(),
            status: self.source.status.as_ref().map(|status| status.get()),
            in_flight_bytes: all.in_flight_bytes,
            most_in_flight_bytes: all.most_in_flight_bytes,
            in_flight_limit: all.in_flight_limit,
            held_back: all.held_back,
            run_ahead: all.run_ahead,
            held_by: self.partitions.held_by.pool().map(|pool| pool.to_string()),
            held_by_share: self.partitions.held_by.share(),
            stood_for_share: self.partitions.held_by.stands_for(),
            parked: self.partitions.parked.events(),
            parked_bytes: self.partitions.parked.bytes(),
            refuses_parked: self.partitions.parked.is_full(),
            assigned_for: self.partitions.assigned_at.lock().elapsed(),
            last_settled: partitions.iter().filter_map(|one| one.last_settled).min(),
            partitions,
            stands: all.stands,
        }
    }

    pub(crate) fn is_keeping(&self) -> bool {
        self.outstanding.keeping.load(Ordering::Acquire)
    }

    /// Its name in the configuration.
    pub(crate) fn name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// Its positions are not stored from here on: all that it gave is settled and stored.
    pub(crate) fn keeps_none(&self) {
        self.outstanding.keeping.store(false, Ordering::Release);
        self.outstanding.done.notify_waiters();
    }

    /// Its run is over.
    pub(crate) fn let_go(&self) {
        self.outstanding.is_over.store(true, Ordering::Release);
        self.outstanding.done.notify_waiters();
    }

    pub(crate) fn report(&self) -> InputReport {
        let fate = self.fate.lock();
        InputReport {
            name: self.name.to_string(),
            source: self.label.to_string(),
            taken: self.taken.load(Ordering::Acquire),
            removed: fate.removed,
            error: fate.error.clone(),
        }
    }
}

/// The assigned partitions of an input, and the limits that they share.
pub(crate) struct Partitions {
    config: InputConfig,
    /// They come and go. Otherwise there is one, for as long as the input is there.
    pub(crate) come_and_go: bool,
    assigned: RwLock<Vec<Arc<Assigned>>>,
    /// Revoked ones, as long as some of their events are under way.
    revoked: Mutex<Vec<Weak<Assigned>>>,
    pub(crate) parked: ParkedPart,
    /// No event of any of them is started any more, nor of those that are assigned later. If both
    /// are locked, `assigned` comes first.
    given_up: Mutex<Option<GivenUp>>,
    revocations: Arc<Revocations>,
    /// Events of all partitions that wait for full pools, at the last look.
    held_back: AtomicU64,
    held_by: HeldBy,
    /// When one was assigned last.
    assigned_at: Mutex<Instant>,
    /// Those that an operator has paused, including unassigned ones.
    paused: Mutex<Vec<Partition>>,
    /// Told when that has changed.
    pub(crate) changed: Notify,
}

impl Partitions {
    /// The most levels in the data of an event.
    pub(crate) fn max_depth(&self) -> u32 {
        self.config.max_depth
    }

    pub(crate) fn new(
        config: InputConfig,
        come_and_go: bool,
        revocations: &Arc<Revocations>,
    ) -> Self {
        let partitions = Self {
            config,
            come_and_go,
            assigned: RwLock::default(),
            revoked: Mutex::default(),
            parked: ParkedPart::default(),
            given_up: Mutex::default(),
            revocations: revocations.clone(),
            held_back: AtomicU64::new(0),
            held_by: HeldBy::default(),
            assigned_at: Mutex::new(Instant::now()),
            paused: Mutex::default(),
            changed: Notify::new(),
        };
        if !come_and_go {
            partitions.assign(Partition::ONLY);
        }
        partitions
    }

    /// The assignment of this partition; begins one if there is none.
    pub(crate) fn assign(&self, partition: Partition) -> Arc<Assigned> {
        let mut assigned = self.assigned.write();
        if let Some(known) = assigned.iter().find(|known| known.partition == partition) {
            return known.clone();
        }
        let new = Assigned::new(&self.revocations, partition, &self.config);
        new.set_paused(self.paused.lock().contains(&partition));
        if let Some(why) = *self.given_up.lock() {
            new.give_up(why);
        }
        assigned.push(new.clone());
        *self.assigned_at.lock() = Instant::now();
        self.share(&assigned);
        new
    }

    /// Ends the assignment of this partition, if it has one.
    pub(crate) fn revoke(&self, partition: Partition) -> Option<Arc<Assigned>> {
        let mut assigned = self.assigned.write();
        let at = assigned.iter().position(|known| known.partition == partition)?;
        let gone = assigned.remove(at);
        self.share(&assigned);
        gone.give_up(GivenUp::Revoked);
        let mut revoked = self.revoked.lock();
        revoked.retain(|known| known.strong_count() > 0);
        revoked.push(Arc::downgrade(&gone));
        Some(gone)
    }

    /// From now on nothing of any partition is started, except for the events that handlers have in
    /// hand.
    fn give_up(&self, why: GivenUp) {
        let assigned = self.assigned.write();
        *self.given_up.lock() = Some(why);
        assigned.iter().for_each(|one| one.give_up(why));
    }

    fn share(&self, assigned: &[Arc<Assigned>]) {
        assigned.iter().for_each(|one| one.budget.share(&self.config, assigned.len()));
    }

    pub(crate) fn all(&self) -> Vec<Arc<Assigned>> {
        self.assigned.read().clone()
    }

    /// True if this is, or was, an assignment of one of them, and some of its events are under way.
    pub(crate) fn has(&self, number: u32) -> bool {
        // Held until the end, because a revoked partition moves from one list to the other in
        // between.
        let assigned = self.assigned.read();
        assigned.iter().any(|known| known.number == number)
            || self.revoked.lock().iter().filter_map(Weak::upgrade).any(|of| of.number == number)
    }

    /// The partition of this assignment, if there are several.
    pub(crate) fn partition_of(&self, number: u32) -> Option<Partition> {
        if !self.come_and_go {
            return None;
        }
        let assigned = self.assigned.read();
        assigned.iter().find(|known| known.number == number).map(|known| known.partition)
    }

    /// Pauses this partition, or resumes it. Returns its assignment, if it has one.
    pub(crate) fn set_paused(
        &self,
        partition: Partition,
        is_paused: bool,
    ) -> Option<Arc<Assigned>> {
        let known = {
            let assigned = self.assigned.read();
            let mut paused = self.paused.lock();
            paused.retain(|known| *known != partition);
            if is_paused {
                paused.push(partition);
            }
            assigned.iter().find(|known| known.partition == partition).cloned()
        };
        known.iter().for_each(|assigned| assigned.set_paused(is_paused));
        self.changed.notify_one();
        known
    }

    /// Those that an operator has paused.
    pub(crate) fn paused(&self) -> Vec<Partition> {
        self.paused.lock().clone()
    }

    /// True if none is read further until something is settled.
    pub(crate) fn stand(&self) -> bool {
        let assigned = self.assigned.read();
        !assigned.is_empty() && assigned.iter().all(|one| one.budget.stands())
    }

    /// Events that were taken and that no pool has yet.
    pub(crate) fn waiting(&self) -> u64 {
        let assigned = self.assigned.read();
        let resting = assigned.iter().map(|one| one.budget.resting()).sum::<u64>();
        self.held_back.load(Ordering::Relaxed) + resting
    }

    /// This many events of all partitions wait for full pools, most of them for this one.
    pub(crate) fn show_held_back(
        &self,
        input: &str,
        events: usize,
        (by, by_share): (Option<Name>, Option<HeldByShare>),
    ) {
        self.held_back.store(events as u64, Ordering::Relaxed);
        self.held_by.set(by, by_share);
        self.held_by.tell(input, events as u64, self.config.run_ahead.max(1) as u64);
    }

    /// This many of its events wait behind parked keys.
    pub(crate) fn hold_parked(&self, events: u64) {
        let all = self.assigned.read();
        let passed = all.iter().map(|one| one.budget.passed());
        let passed = passed.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        self.parked.hold(events, passed, self.config.in_flight_bytes.min(i64::MAX as u64));
    }

    pub(crate) fn sum(&self) -> BudgetView {
        let assigned = self.assigned.read();
        let none = BudgetView {
            in_flight_bytes: 0,
            most_in_flight_bytes: 0,
            in_flight_limit: self.config.in_flight_bytes.min(i64::MAX as u64),
            held_back: self.held_back.load(Ordering::Relaxed),
            run_ahead: self.config.run_ahead.max(1) as u64,
            stands: !assigned.is_empty(),
        };
        assigned.iter().map(|one| one.budget.view()).fold(none, |all, one| BudgetView {
            in_flight_bytes: all.in_flight_bytes + one.in_flight_bytes,
            most_in_flight_bytes: all.most_in_flight_bytes + one.most_in_flight_bytes,
            stands: all.stands && one.stands,
            ..all
        })
    }
}

/// Tells an input to stop, and why.
#[derive(Debug, Default)]
pub(crate) struct InputStop {
    why: Mutex<Option<WhyStop>>,
    told: Notify,
}

/// Why an input is to stop.
#[derive(Debug, Clone)]
pub(crate) enum WhyStop {
    /// A handler says that nothing more of it can be handled.
    Fatal(String),
    /// It was removed.
    Removed,
}

impl InputStop {
    /// Only the first reason counts.
    pub(crate) fn stop(&self, why: impl FnOnce() -> String) {
        self.why.lock().get_or_insert_with(|| WhyStop::Fatal(why()));
        self.told.notify_one();
    }

    /// Like [`stop`](Self::stop), without an error.
    pub(crate) fn remove(&self) {
        self.why.lock().get_or_insert(WhyStop::Removed);
        self.told.notify_one();
    }

    /// Waits until it is to stop.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn told(&self) -> WhyStop {
        loop {
            if let Some(why) = self.why.lock().clone() {
                return why;
            }
            self.told.notified().await;
        }
    }
}
