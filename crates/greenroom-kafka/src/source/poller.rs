//! The thread that polls the consumer. It waits for nobody: not for the engine, a handler or a
//! broker (D11), so `max.poll.interval.ms` never passes.
//!
//! ```text
//!          ┌──────────────────────────── each turn ────────────────────────────┐
//! librdkafka ─ callbacks ─▶ written down ─▶ rebalance: ask offsets, assign │ drain, commit, unassign
//!          ├─ queue of each partition ─▶ receive, decode ─▶ ready, bounded ─▶ pull
//!          └─ commit: one snapshot under way ─▶ answer ─▶ confirmed, in its epoch
//! ```
//!
//! Each partition has a queue of its own in librdkafka, and is taken from while there is room in
//! what is ready: a full partition holds up no other, and what was fetched is not fetched again
//! (F05).
//!
//! # Rebalances (F04)
//!
//! The callback writes down what is assigned or revoked, and returns. What follows happens here, and
//! librdkafka waits for it, however long that takes.
//!
//! * **Assigned**: the offsets are asked for on another thread; with the answer an epoch begins, and
//!   the partitions are assigned.
//! * **Revoked**: nothing more is taken, and what is ready is dropped. The engine is told, and gives
//!   up what waits. Once nothing is in hand, or the budget has passed, a last commit is made. With
//!   its answer the epoch ends, and only then the partitions are unassigned.
//! * **Lost**: another member may have them already. The epoch ends at once, without a commit.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    sync::{Arc, Weak, atomic::Ordering, mpsc},
    thread,
    time::{Duration, Instant},
};

use greenroom_bus::{
    source::Partition,
    watermark::{Epoch, Received, Snapshot},
};
use rdkafka::{
    Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer, RebalanceProtocol, base_consumer::PartitionQueue},
    error::{KafkaError, RDKafkaErrorCode},
    message::BorrowedMessage,
};
use tokio::sync::oneshot;

use super::{
    context::{Context, Said},
    limits::Limits,
    offsets::{self, Answer, Beginning},
    options::KafkaSourceOptions,
    place::{Numbers, Place},
    shared::{Part, Shared, Tracker},
    storing::{Answers, Said as Stored, Storing},
};
use crate::client::advice;

/// Between turns in which there is nothing to do. Records wake the thread; callbacks do not.
const IDLE: Duration = Duration::from_millis(10);
/// Records taken of one partition in a turn.
const BATCH: usize = 256;
/// Between looks at whether a set that was full fits again.
const FULL_LOOK: Duration = Duration::from_millis(20);
/// Between questions for offsets that were not answered.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// For so long the last commit of a partition that is taken away is waited for.
const LAST_COMMIT: Duration = Duration::from_secs(5);
/// And is tried again after so long, where it meets the group between two generations.
const COMMIT_AGAIN: Duration = Duration::from_millis(50);
/// The same error is told so far apart.
const TOLD_EVERY: Duration = Duration::from_secs(30);
/// After its source was dropped, a consumer waits for a last commit.
const AFTER_DROP: Duration = Duration::from_secs(30);

/// While anybody holds this, the consumer stays.
pub(super) struct Lifeline;

/// A partition that is assigned.
struct Reading {
    place: Place,
    epoch: Epoch,
    tracker: Arc<Tracker>,
    /// Until it is taken away.
    queue: Option<PartitionQueue<Context>>,
    /// The last commit that was confirmed.
    committed: Option<Stored>,
    /// What is done no longer fits in a commit: nothing is taken since; and when that was looked at.
    full: Option<Instant>,
}

/// What librdkafka waits for.
enum Rebalance {
    Assigning {
        places: Vec<Place>,
        answer: mpsc::Receiver<Answer>,
        /// It is asked again then.
        again: Option<Instant>,
        failed: Option<KafkaError>,
    },
    Revoking {
        /// All that it wants, also such as were never read.
        places: Vec<Place>,
        numbers: Vec<Partition>,
        since: Instant,
        /// Nothing is in hand, and a last commit has to be answered by then.
        last_commit: Option<Instant>,
    },
}

/// A commit under way.
struct UnderWay {
    snapshots: Vec<(Partition, Snapshot, Stored)>,
    asks: Vec<oneshot::Sender<()>>,
    /// It began when nothing of what is taken away was in hand any more.
    is_last: bool,
}

pub(super) struct Poller {
    shared: Arc<Shared>,
    options: KafkaSourceOptions,
    consumer: Arc<BaseConsumer<Context>>,
    lifeline: Weak<Lifeline>,
    numbers: Numbers,
    reading: BTreeMap<Partition, Reading>,
    rebalance: Option<Rebalance>,
    /// Said while another rebalance was under way.
    later: VecDeque<Said>,
    /// Once it runs.
    storing: Option<Storing>,
    committing: Option<UnderWay>,
    /// The last commit of what is taken away failed, and is tried again then.
    again: Option<Instant>,
    limits: Limits,
    told: Vec<(RDKafkaErrorCode, Instant)>,
    /// The source is gone, and its last commit is made.
    is_parting: bool,
}

impl Poller {
    pub(super) fn new(
        shared: Arc<Shared>,
        options: KafkaSourceOptions,
        consumer: BaseConsumer<Context>,
        lifeline: &Arc<Lifeline>,
    ) -> Self {
        Self {
            shared,
            consumer: Arc::new(consumer),
            lifeline: Arc::downgrade(lifeline),
            numbers: Numbers::new(&options.topics),
            reading: BTreeMap::new(),
            rebalance: None,
            later: VecDeque::new(),
            storing: None,
            committing: None,
            again: None,
            limits: Limits::new(options.metadata_limit, options.remembers_done),
            told: Vec::new(),
            is_parting: false,
            options,
        }
    }

    /// Until nobody needs it any more. Leaves the group.
    pub(super) fn run(mut self) {
        self.shared.is_polled_by(&thread::current());
        match Storing::begin(&self.consumer) {
            Ok(storing) => self.storing = Some(storing),
            Err(error) => self.fail(format!("no thread to commit on: {error}")),
        }
        while !self.is_over() {
            let is_busy = self.turn();
            if !is_busy {
                thread::park_timeout(IDLE);
            }
        }
        self.close();
    }

    fn is_over(&self) -> bool {
        let state = self.shared.state.lock();
        let is_left = state.dropped.is_some_and(|since| {
            state.has_ended || self.is_parting || since.elapsed() > AFTER_DROP
        });
        is_left || self.lifeline.strong_count() == 0
    }

    fn close(self) {
        let Self { shared, consumer, reading, rebalance, storing, committing, .. } = self;
        consumer.context().close();
        // Each of these holds on to the consumer.
        drop((reading, rebalance, storing));
        drop(consumer);
        let asks = {
            let mut state = shared.state.lock();
            state.is_closed = true;
            mem::take(&mut state.asks)
        };
        // Whoever waits for a commit is answered by this.
        drop((asks, committing));
        shared.changed.notify_waiters();
    }

    /// True where there may be more to do at once.
    fn turn(&mut self) -> bool {
        // Callbacks run in here. Records come here only before their partition has a queue.
        let consumer = self.consumer.clone();
        match consumer.poll(Duration::ZERO) {
            Some(Ok(message)) => self.take_stray(&message),
            Some(Err(error)) => self.is_told(error),
            None => {}
        }
        while let Some(said) = consumer.context().next() {
            self.hear(said);
        }
        self.subscribe_anew();
        self.rebalance();
        self.commit();
        self.fill()
    }

    fn hear(&mut self, said: Said) {
        match said {
            Said::Assigned(_) | Said::Revoked { .. } => self.later.push_back(said),
            Said::Error(code, reason) => self.tell(code, &reason),
            Said::Ends(ends) => {
                let mut state = self.shared.state.lock();
                for (number, reading) in &self.reading {
                    if let Some(part) = state.parts.get_mut(number) {
                        part.end = ends.get(&reading.place).copied().or(part.end);
                    }
                }
            }
        }
    }

    fn is_told(&mut self, error: KafkaError) {
        match error {
            KafkaError::MessageConsumptionFatal(code) => {
                let why = format!(
                    "the broker has put this consumer out for good: {code}; start it again, and \
                     see that no other one has its `group.instance.id`"
                );
                self.fail(why);
            }
            // Told by the callback for errors already, where they are of the whole.
            error => {
                if let Some(code) = error.rdkafka_error_code() {
                    self.tell(code, &error.to_string());
                }
            }
        }
    }

    /// The source cannot go on.
    fn fail(&self, why: String) {
        self.shared.state.lock().failed.get_or_insert(why);
        self.shared.changed.notify_one();
    }

    fn tell(&mut self, code: RDKafkaErrorCode, what: &str) {
        let now = Instant::now();
        self.told.retain(|(_, at)| now - *at <= TOLD_EVERY);
        if !self.told.iter().any(|(told, _)| *told == code) {
            self.told.push((code, now));
            tracing::warn!("{}: {what}{}", self.shared.name, advice(code));
        }
    }

    fn subscribe_anew(&mut self) {
        let topics = self.shared.state.lock().topics.take();
        let Some(topics) = topics else { return };
        let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
        let done = match topics.is_empty() {
            true => {
                self.consumer.unsubscribe();
                Ok(())
            }
            false => self.consumer.subscribe(&topics),
        };
        if let Err(error) = done {
            tracing::warn!("{}: other topics cannot be read: {error}", self.shared.name);
        }
    }
}

// Rebalances.
impl Poller {
    fn rebalance(&mut self) {
        self.rebalance = match self.rebalance.take() {
            None => match self.later.pop_front() {
                Some(Said::Assigned(places)) => Some(self.begin_assign(places)),
                Some(Said::Revoked { places, is_lost }) => self.begin_revoke(places, is_lost),
                _ => None,
            },
            // What was to be assigned is taken away before it was.
            Some(Rebalance::Assigning { .. }) if !self.later.is_empty() => None,
            Some(Rebalance::Assigning { places, answer, again, failed }) => {
                self.go_on_to_assign(places, answer, again, failed)
            }
            Some(Rebalance::Revoking { places, numbers, since, last_commit }) => {
                self.go_on_to_revoke(places, numbers, since, last_commit)
            }
        };
    }

    fn is_cooperative(&self) -> bool {
        matches!(self.consumer.rebalance_protocol(), RebalanceProtocol::Cooperative)
    }

    fn begin_assign(&self, places: Vec<Place>) -> Rebalance {
        let answer = offsets::ask(&self.consumer, &places, self.options.start);
        Rebalance::Assigning { places, answer, again: None, failed: None }
    }

    fn go_on_to_assign(
        &mut self,
        places: Vec<Place>,
        answer: mpsc::Receiver<Answer>,
        again: Option<Instant>,
        failed: Option<KafkaError>,
    ) -> Option<Rebalance> {
        if let Some(at) = again {
            if Instant::now() < at {
                return Some(Rebalance::Assigning { places, answer, again, failed });
            }
            let answer = offsets::ask(&self.consumer, &places, self.options.start);
            return Some(Rebalance::Assigning { places, answer, again: None, failed });
        }
        match answer.try_recv() {
            Ok(Ok(beginnings)) => {
                self.assign(beginnings);
                None
            }
            Ok(Err(error)) => {
                if offsets::is_worth_saying(&error, failed.as_ref()) {
                    let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
                    let name = &self.shared.name;
                    tracing::warn!(
                        "{name}: where to begin is not known yet: {error}{}", advice(code)
                    );
                }
                let again = Some(Instant::now() + ASK_AGAIN);
                Some(Rebalance::Assigning { places, answer, again, failed: Some(error) })
            }
            Err(mpsc::TryRecvError::Empty) => {
                Some(Rebalance::Assigning { places, answer, again, failed })
            }
            Err(mpsc::TryRecvError::Disconnected) => {
                let again = Some(Instant::now() + ASK_AGAIN);
                Some(Rebalance::Assigning { places, answer, again, failed })
            }
        }
    }

    fn assign(&mut self, beginnings: Vec<Beginning>) {
        let mut list = TopicPartitionList::with_capacity(beginnings.len());
        for beginning in beginnings {
            let Place { topic, partition } = &beginning.place;
            let from = i64::try_from(beginning.from).unwrap_or(i64::MAX);
            if let Err(error) = list.add_partition_offset(topic, *partition, Offset::Offset(from)) {
                tracing::warn!("{}: {topic}/{partition}: {error}", self.shared.name);
                continue;
            }
            self.begin_reading(beginning);
        }
        let assigned = match self.is_cooperative() {
            true => self.consumer.incremental_assign(&list),
            false => self.consumer.assign(&list),
        };
        if let Err(error) = assigned {
            tracing::warn!("{}: partitions cannot be assigned: {error}", self.shared.name);
        }
    }

    /// An epoch begins.
    fn begin_reading(&mut self, beginning: Beginning) {
        let Beginning { place, positions, is_committed, remark, .. } = beginning;
        let number = self.numbers.of(&place);
        if let Some(remark) = remark {
            tracing::warn!("{}: partition {place}: {remark}", self.shared.name);
        }
        let (lowest, done) = (positions.lowest(), positions.count_done());
        tracing::info!(
            "{}: partition {place} is read from offset {lowest} on, of which {done} behind it are done",
            self.shared.name
        );
        // Its queue is split off before it is assigned: what is fetched comes there from the first
        // record on, in order.
        let queue = self.consumer.split_partition_queue(&place.topic, place.partition);
        let queue = queue.map(|mut queue| {
            let poller = thread::current();
            queue.set_nonempty_callback(move || poller.unpark());
            queue
        });
        let mut state = self.shared.state.lock();
        let tracker = state.trackers.entry(number).or_default().clone();
        let epoch = tracker.watermark.lock().assign(&positions);
        tracker.is_watched.store(false, Ordering::Relaxed);
        state.parts.insert(number, Part::new(epoch, tracker.clone()));
        drop(state);
        let committed =
            is_committed.then(|| (lowest, self.limits.encode(&positions).text));
        let reading = Reading { place, epoch, tracker, queue, committed, full: None };
        self.reading.insert(number, reading);
    }

    fn begin_revoke(&mut self, places: Vec<Place>, is_lost: bool) -> Option<Rebalance> {
        let is_one = |reading: &Reading| places.contains(&reading.place);
        let numbers: Vec<Partition> =
            self.reading.iter().filter(|(_, reading)| is_one(reading)).map(|(of, _)| *of).collect();
        for number in &numbers {
            self.stop_reading(*number);
        }
        self.shared.changed.notify_one();
        if is_lost {
            self.lose(&numbers);
        }
        if is_lost || numbers.is_empty() {
            self.unassign(&places);
            return None;
        }
        let since = Instant::now();
        Some(Rebalance::Revoking { places, numbers, since, last_commit: None })
    }

    /// Nothing more of it is taken; what is ready and was not given is dropped.
    fn stop_reading(&mut self, number: Partition) {
        let Some(reading) = self.reading.get_mut(&number) else { return };
        reading.queue = None;
        reading.tracker.is_watched.store(true, Ordering::Relaxed);
        let mut state = self.shared.state.lock();
        let Some(part) = state.parts.remove(&number) else { return };
        let mut watermark = reading.tracker.watermark.lock();
        for taken in &part.ready {
            watermark.refuse(reading.epoch, taken.position);
        }
        if part.has_given && state.dropped.is_none() {
            state.leaving.insert(number, false);
        }
    }

    fn lose(&mut self, numbers: &[Partition]) {
        for number in numbers {
            let Some(reading) = self.reading.get(number) else { continue };
            let (name, place) = (&self.shared.name, &reading.place);
            let open = reading.tracker.watermark.lock().in_hand();
            tracing::warn!(
                "{name}: partition {place} is lost: this member was not heard of for too long; whoever \
                 has it next handles again what was not committed; {open} events of it are in hand"
            );
        }
        self.finish(numbers);
    }

    fn go_on_to_revoke(
        &mut self,
        places: Vec<Place>,
        numbers: Vec<Partition>,
        since: Instant,
        last_commit: Option<Instant>,
    ) -> Option<Rebalance> {
        let now = Instant::now();
        if self.consumer.assignment_lost() {
            self.lose(&numbers);
            self.unassign(&places);
            return None;
        }
        if last_commit.is_some_and(|until| now < until) {
            return Some(Rebalance::Revoking { places, numbers, since, last_commit });
        }
        if last_commit.is_some() {
            tracing::warn!(
                "{}: the last commit of partitions that are given away is not answered; what it \
                 would have said is handled again",
                self.shared.name
            );
            self.finish(&numbers);
            self.unassign(&places);
            return None;
        }
        let in_hand = self.count_in_hand(&numbers);
        let is_told = self.is_answered(&numbers);
        let is_over = now - since > self.options.drain_budget;
        if !is_over && (in_hand > 0 || !is_told) {
            return Some(Rebalance::Revoking { places, numbers, since, last_commit });
        }
        if in_hand > 0 {
            let (name, budget) = (&self.shared.name, self.options.drain_budget);
            tracing::warn!(
                "{name}: {in_hand} events of partitions that are given away are still in hand after \
                 {budget:?}; their next owner handles them again, perhaps at the same time"
            );
        }
        let last_commit = Some(now + LAST_COMMIT);
        Some(Rebalance::Revoking { places, numbers, since, last_commit })
    }

    fn count_in_hand(&self, numbers: &[Partition]) -> u64 {
        let readings = numbers.iter().filter_map(|number| self.reading.get(number));
        readings.map(|reading| reading.tracker.watermark.lock().in_hand()).sum()
    }

    fn is_answered(&self, numbers: &[Partition]) -> bool {
        let mut state = self.shared.state.lock();
        if state.dropped.is_some() {
            state.leaving.clear();
        }
        !numbers.iter().any(|number| state.leaving.contains_key(number))
    }

    /// Their epochs end.
    fn finish(&mut self, numbers: &[Partition]) {
        for number in numbers {
            if let Some(reading) = self.reading.remove(number) {
                reading.tracker.watermark.lock().revoke();
                reading.tracker.is_watched.store(false, Ordering::Relaxed);
            }
        }
    }

    /// The last commit was answered, however that was.
    fn is_last_committed(&mut self) {
        match self.rebalance.take() {
            Some(Rebalance::Revoking { places, numbers, last_commit: Some(_), .. }) => {
                self.finish(&numbers);
                self.unassign(&places);
            }
            other => self.rebalance = other,
        }
    }

    fn unassign(&self, places: &[Place]) {
        let mut list = TopicPartitionList::with_capacity(places.len());
        for Place { topic, partition } in places {
            list.add_partition(topic, *partition);
        }
        let done = match self.is_cooperative() {
            true => self.consumer.incremental_unassign(&list),
            false => self.consumer.unassign(),
        };
        if let Err(error) = done {
            tracing::warn!("{}: partitions cannot be given away: {error}", self.shared.name);
        }
    }
}

// Commits.
impl Poller {
    /// Takes the answer to the last commit, and begins another where somebody asks for one.
    fn commit(&mut self) {
        if let Some(answers) = self.storing.as_ref().and_then(Storing::answer) {
            self.is_committed(&answers);
        }
        if self.committing.is_some() {
            return;
        }
        let is_due = self.again.is_none_or(|at| Instant::now() >= at);
        let is_last = is_due
            && matches!(self.rebalance, Some(Rebalance::Revoking { last_commit: Some(_), .. }));
        let asks = mem::take(&mut self.shared.state.lock().asks);
        if asks.is_empty() && !is_last {
            return;
        }
        self.shared.begins_commit();
        let snapshots = self.snapshots();
        let (false, Some(storing)) = (snapshots.is_empty(), &self.storing) else {
            return self.are_answered(asks, is_last);
        };
        let place = |(number, _, said): &(Partition, Snapshot, Stored)| {
            (self.reading[number].place.clone(), said.clone())
        };
        storing.ask(snapshots.iter().map(place).collect());
        self.committing = Some(UnderWay { snapshots, asks, is_last });
    }

    /// Of each partition that has something new to say: all of one moment (F02).
    fn snapshots(&self) -> Vec<(Partition, Snapshot, Stored)> {
        let mut snapshots = Vec::new();
        for (number, reading) in &self.reading {
            let snapshot = reading.tracker.watermark.lock().snapshot();
            let Some(snapshot) = snapshot.filter(|of| of.epoch() == reading.epoch) else {
                continue;
            };
            let lowest = snapshot.positions().lowest();
            let said = (lowest, self.limits.encode(snapshot.positions()).text);
            if reading.committed.as_ref() == Some(&said) {
                reading.tracker.watermark.lock().confirm(&snapshot);
                continue;
            }
            snapshots.push((*number, snapshot, said));
        }
        snapshots
    }

    fn is_committed(&mut self, answers: &Answers) {
        let Some(UnderWay { snapshots, asks, is_last }) = self.committing.take() else { return };
        let (mut is_too_large, mut is_again) = (false, false);
        for ((number, snapshot, said), answer) in snapshots.into_iter().zip(answers) {
            match answer {
                Ok(()) => {
                    // An answer of an epoch that has ended confirms nothing.
                    if let Some(reading) = self.reading.get_mut(&number)
                        && reading.tracker.watermark.lock().confirm(&snapshot)
                    {
                        reading.committed = Some(said);
                    }
                }
                Err(RDKafkaErrorCode::OffsetMetadataTooLarge) => is_too_large = true,
                Err(code) => {
                    is_again |= may_pass(*code);
                    self.cannot_commit(*code);
                }
            }
        }
        self.again = (is_last && is_again).then(|| Instant::now() + COMMIT_AGAIN);
        if is_too_large {
            let next = self.limits.shrink();
            tracing::warn!(
                "{}: the broker takes less metadata beside an offset than was thought; {next}",
                self.shared.name
            );
            // At once, with what fits now.
            self.shared.state.lock().asks.extend(asks);
            return;
        }
        self.are_answered(asks, is_last && self.again.is_none());
    }

    fn cannot_commit(&mut self, code: RDKafkaErrorCode) {
        use RDKafkaErrorCode as Code;
        match code {
            // Somebody else has the partition, or will have: that is said elsewhere.
            Code::RebalanceInProgress
            | Code::IllegalGeneration
            | Code::UnknownMemberId
            | Code::StaleMemberEpoch
            | Code::AssignmentLost => {
                tracing::debug!("{}: a commit came too late: {code}", self.shared.name);
            }
            code => self.tell(code, &format!("positions are not stored for now: {code}")),
        }
    }

    fn are_answered(&mut self, asks: Vec<oneshot::Sender<()>>, is_last: bool) {
        self.is_parting |= self.shared.state.lock().dropped.is_some() && !asks.is_empty();
        // Whoever does not wait any more need not know.
        asks.into_iter().for_each(|ask| _ = ask.send(()));
        if is_last {
            self.is_last_committed();
        }
    }
}

/// Whether a commit may succeed a little later. While a group goes from one generation to the next,
/// a member may name the last one.
fn may_pass(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    !matches!(
        code,
        Code::UnknownMemberId
            | Code::FencedInstanceId
            | Code::FencedMemberEpoch
            | Code::AssignmentLost
            | Code::GroupAuthorizationFailed
            | Code::TopicAuthorizationFailed
    )
}

// Records.
impl Poller {
    /// Takes what there is room for. True where there was anything.
    fn fill(&mut self) -> bool {
        let mut any = false;
        let mut reading = mem::take(&mut self.reading);
        for (number, reading) in &mut reading {
            let has_room = {
                let state = self.shared.state.lock();
                state.parts.get(number).is_some_and(Part::has_room)
            };
            if has_room && self.has_set_room(reading) {
                any |= self.fill_one(*number, reading);
            }
        }
        self.reading = reading;
        any
    }

    fn fill_one(&mut self, number: Partition, reading: &Reading) -> bool {
        let Some(queue) = &reading.queue else { return false };
        let mut messages = Vec::new();
        while messages.len() < BATCH {
            match queue.poll(Duration::ZERO) {
                Some(Ok(message)) => messages.push(message),
                Some(Err(error)) => self.is_told(error),
                None => break,
            }
        }
        self.take(number, &reading.tracker, &messages);
        !messages.is_empty()
    }

    /// One that came before its partition had a queue.
    fn take_stray(&mut self, message: &BorrowedMessage<'_>) {
        let place = Place::new(message.topic(), message.partition());
        let found = self.reading.iter().find(|(_, reading)| reading.place == place);
        if let Some((number, reading)) = found {
            self.take(*number, &reading.tracker, std::slice::from_ref(message));
        }
    }

    /// Decodes those that are not done, and makes them ready.
    fn take(&self, number: Partition, tracker: &Tracker, messages: &[BorrowedMessage<'_>]) {
        if messages.is_empty() {
            return;
        }
        let is_new: Vec<bool> = {
            let mut watermark = tracker.watermark.lock();
            let receive = |message: &BorrowedMessage<'_>| {
                watermark.receive(message.offset().unsigned_abs()) == Received::New
            };
            messages.iter().map(receive).collect()
        };
        let new = messages.iter().zip(is_new).filter(|(_, is_new)| *is_new);
        let taken: Vec<_> =
            new.map(|(message, _)| self.options.format.taken(message)).collect();
        let bytes: usize = taken.iter().map(Part::bytes).sum();
        if let Some(part) = self.shared.state.lock().parts.get_mut(&number) {
            part.ready.extend(taken);
            part.ready_bytes += bytes;
        }
        self.shared.changed.notify_one();
    }

    /// Whether what is done will fit in a commit, once the next are done in whatever order (F01).
    fn has_set_room(&self, reading: &mut Reading) -> bool {
        let (span, snapshot) = {
            let watermark = reading.tracker.watermark.lock();
            let span = watermark.next() - watermark.lowest();
            if span < self.limits.sure() {
                reading.full = None;
                return true;
            }
            let looked = reading.full.is_some_and(|at| at.elapsed() < FULL_LOOK);
            (span, if looked { None } else { watermark.snapshot() })
        };
        let Some(snapshot) = snapshot else { return false };
        let (is_new, name, place) = (reading.full.is_none(), &self.shared.name, &reading.place);
        if self.limits.has_room(snapshot.positions(), BATCH as u64) {
            reading.full = None;
            return true;
        }
        if is_new {
            let lowest = snapshot.positions().lowest();
            tracing::warn!(
                "{name}: partition {place} is read no further until offset {lowest} is settled: what \
                 is done of the {span} offsets from there on would no longer fit in a commit"
            );
        }
        reading.full = Some(Instant::now());
        false
    }
}
