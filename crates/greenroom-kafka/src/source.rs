//! Kafka as a source: a member of a consumer group, whose partitions are the engine's.
//!
//! ```text
//! broker ─▶ librdkafka ─▶ polling thread ─▶ ready, of each partition ─▶ pull ─▶ engine
//!              ▲                │ ▲                                               │
//!              │                ▼ └──────────────── settled ◀─────────────────────┘
//!              └── commit: lowest open offset, and what is done beyond it
//! ```
//!
//! * **At least once.** A commit covers only settled offsets. It counts as made once the broker has
//!   answered, in the epoch in which it was taken.
//! * **Few repeats.** A commit [remembers](crate::commit_set) the settled offsets beyond the lowest
//!   open one. A crash repeats the events in hand and those settled since the last commit, however
//!   long one event has been stuck. When the settled offsets no longer fit in a commit, that
//!   partition is read on once its oldest event, or enough of those behind it, are settled.
//! * **Order** is that of keys, not of partitions: the engine handles as many events of a partition
//!   at once as there are keys and workers.
//! * **Back-pressure** pauses partitions one by one. The consumer is polled in every state, so that
//!   a slow handler does not cost its membership.
//! * **Stuck events** block their keys, and nothing else, until there are so many of them that a
//!   commit is full: the oldest can then be [moved to a topic](GuardOptions) by option.
//! * **Rebalances**: a revoked partition is drained within a
//!   [budget](KafkaInput::drain_budget), committed, and only then given away. librdkafka
//!   fetches nothing for the other partitions during that time; their fetched records continue.
//!
//! **Bounds.** For each partition at most 2,048 records or 4 MiB are decoded ahead, and librdkafka
//! holds up to `queued.max.messages.kbytes` (8 MiB here) of fetched data. Both are in addition to
//! the engine's events in flight.
//!
//! **Limits.** If a topic is recreated while it is read, or a partition loses its newest records
//! (an unclean election), offsets are used twice. New records at old offsets are distinguished from
//! the read ones by their time, which has to be later than that of the last one read. A topic that
//! is restored from a copy, with the times of old records, counts as already read, with a warning.

mod commits;
mod context;
mod figures;
mod guard;
mod limits;
mod looking;
mod numbers;
mod offsets;
mod poller;
pub(crate) mod redrive;
mod setup;
mod shared;
mod storing;

use std::{
    fmt,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use greenroom_bus::{
    record::Mapping,
    source::{
        Committer, Lease, Partition, Places, Pull, Pulling, Receipts, Source, SourceError,
        StatusCell, Taken,
    },
    wait::wait_until,
    watermark::Epoch,
};
use rdkafka::{
    ClientConfig,
    consumer::{BaseConsumer, Consumer},
};

pub use self::looking::KafkaLooking;
pub(crate) use self::setup::SourceSetup;
use self::{
    commits::Commits,
    context::SourceContext,
    guard::Guard,
    poller::{Lifeline, Poller},
    shared::{Heard, Shared, Tracker},
};
pub use crate::options::{FormerConsumer, GuardOptions};
use crate::{client, options::KafkaInput, topic::check_name, unusable::Unusable};
pub use greenroom_bus::source::StartAt;

/// Events of one pull.
const BATCH: usize = 1_024;

/// How long the drop of a source waits until it has left its group.
const LEAVE: Duration = Duration::from_secs(2);

/// Properties that would break a promise: older aliases of those that are set here, and one that
/// turns the end of a partition into an error.
const REFUSED: [&str; 3] =
    ["auto.commit.enable", "auto.commit.interval.ms", "enable.partition.eof"];

/// Defaults that we set for librdkafka.
const DEFAULTS: [(&str, &str); 7] = [
    ("partition.assignment.strategy", "cooperative-sticky"),
    // Of each partition. The defaults, 100,000 records and 64 MiB, are for one queue of all.
    ("queued.max.messages.kbytes", "8192"),
    ("queued.min.messages", "10000"),
    // With a second, which is the default, each partition gave that much and no more in a second.
    ("fetch.queue.backoff.ms", "10"),
    // A broker handles one fetch at a time. If the requested partitions have nothing new, it holds
    // the request for this long, and partitions that got room in the meantime wait; the default is
    // 500.
    ("fetch.wait.max.ms", "50"),
    ("statistics.interval.ms", "1000"),
    // Topics that match a pattern, and topics that were missing, are found within this time.
    ("topic.metadata.refresh.interval.ms", "10000"),
];

/// Reads topics as a member of a consumer group. Positions are offsets. It never ends by itself.
///
/// Dropped, it leaves its group, after a last commit where the engine makes one; for that, the drop
/// waits up to 2 s.
pub struct KafkaSource {
    shared: Arc<Shared>,
    lifeline: Option<Arc<Lifeline>>,
    /// The result of the last pull.
    last: Option<Given>,
    /// Disconnected when the consumer is closed.
    closed: mpsc::Receiver<()>,
}

struct Given {
    partition: Partition,
    epoch: Epoch,
    tracker: Arc<Tracker>,
}

impl KafkaSource {
    /// Joins the group, in the background: brokers that do not answer, and topics that are not
    /// there, are tried again. Records are CloudEvents, or what `records` makes events of.
    ///
    /// # Errors
    /// An option or a property cannot be used. Values of properties are not shown.
    pub fn open(input: KafkaInput, records: Option<Mapping>) -> Result<Self, SourceError> {
        let name = input.described();
        let failed = |why: String| SourceError::new(name.clone(), why);
        let setup = SourceSetup::new(input, records).map_err(|error| failed(error.why))?;
        let consumer = consumer(&setup).map_err(|error| failed(error.why))?;
        let guard = Guard::begin(&name, &setup).map_err(failed)?;
        let topics: Vec<&str> = setup.input.topics.iter().map(String::as_str).collect();
        consumer
            .subscribe(&topics)
            .map_err(|error| failed(format!("these topics cannot be read: {error}")))?;
        let session = poller::session(&setup.access.properties);
        let shared = Arc::new(Shared::new(name.clone(), &setup.access.brokers, session));
        let lifeline = Arc::new(Lifeline);
        let poller = Poller::new(shared.clone(), setup, consumer, guard, &lifeline);
        let (closes, closed) = mpsc::channel::<()>();
        let polls = move || {
            poller.run();
            drop(closes);
        };
        let thread = thread::Builder::new().name("kafka-poll".to_owned()).spawn(polls);
        thread.map_err(|error| failed(format!("no thread to poll on: {error}")))?;
        Ok(Self { shared, lifeline: Some(lifeline), last: None, closed })
    }

    /// Whether [`open`](Self::open) would take these options. No broker is asked; files that
    /// properties name are read.
    ///
    /// # Errors
    /// An option cannot be used. Values of properties are not shown.
    pub fn check(input: &KafkaInput) -> Result<(), Unusable> {
        let consumer = consumer(&SourceSetup::new(input.clone(), None)?.disconnected())?;
        for (place, topic) in input.topics.iter().enumerate() {
            let option = format!("topics.{place}");
            match topic.starts_with('^') {
                false => check_name(&option, topic)?,
                true => consumer.subscribe(&[topic]).map_err(|_| {
                    Unusable::option(
                        &option,
                        "this pattern is no extended regular expression of POSIX",
                    )
                })?,
            }
        }
        let guard = input.guard.as_ref();
        guard.map_or(Ok(()), |guard| check_name("guard.topic", &guard.topic))
    }

    /// Changes the topics that it reads while it runs.
    pub fn subscription(&self) -> Subscription {
        Subscription(self.shared.clone())
    }

    /// The next items or message.
    fn next(&mut self, into: &mut Vec<Taken>) -> Option<Result<Pull, SourceError>> {
        let mut state = self.shared.state.lock();
        if let Some(why) = &state.failed {
            return Some(Err(SourceError::new(self.shared.name.clone(), why.clone())));
        }
        if state.any_untold() {
            return Some(Ok(Pull::Revoke));
        }
        let partition = state.next()?;
        state.last = Some(partition);
        let part = state.parts.get_mut(&partition)?;
        let count = part.ready.len().min(BATCH);
        let bytes: usize = part.ready.iter().take(count).map(shared::Part::bytes).sum();
        into.extend(part.ready.drain(..count));
        part.ready_bytes -= bytes;
        part.has_given = true;
        let (epoch, tracker) = (part.epoch, part.tracker.clone());
        drop(state);
        self.last = Some(Given { partition, epoch, tracker });
        self.shared.wake();
        Some(Ok(Pull::More))
    }
}

fn consumer(setup: &SourceSetup) -> Result<BaseConsumer<SourceContext>, Unusable> {
    config(setup)?
        .create_with_context(SourceContext::new(setup.name()))
        .map_err(|error| client::creation_error(error, &setup.access.properties))
}

fn config(setup: &SourceSetup) -> Result<ClientConfig, Unusable> {
    let ours = [
        ("group.id", setup.input.group.clone()),
        // Commits are ours, and so is where to begin.
        ("enable.auto.commit", "false".to_owned()),
        ("enable.auto.offset.store", "false".to_owned()),
        ("auto.offset.reset", "earliest".to_owned()),
    ];
    let mut defaults = DEFAULTS.to_vec();
    // The broker assigns then, and librdkafka does not take both.
    let is_broker = setup.is_assigned_by_broker();
    defaults.retain(|(name, _)| !is_broker || *name != "partition.assignment.strategy");
    client::config(&setup.access, &ours, &REFUSED, &defaults)
}

impl Source for KafkaSource {
    fn describe(&self) -> String {
        self.shared.name.clone()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            let shared = self.shared.clone();
            wait_until(&shared.changed, || self.next(into)).await
        })
    }

    fn replayable(&self) -> bool {
        true
    }

    fn places(&self) -> Option<Arc<dyn Places>> {
        Some(self.shared.names.clone())
    }

    fn status(&self) -> Option<Arc<StatusCell>> {
        Some(self.shared.status.clone())
    }

    fn lease(&self) -> Option<Arc<Lease>> {
        self.shared.lease.clone()
    }

    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        let lifeline = self.lifeline.clone()?;
        Some(Arc::new(Commits { shared: self.shared.clone(), _lifeline: lifeline }))
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        let Given { epoch, tracker, .. } = self.last.as_ref()?;
        let (shared, tracker) = (self.shared.clone(), tracker.clone());
        Some(Arc::new(Heard { shared, tracker, epoch: *epoch }))
    }

    fn is_partitioned(&self) -> bool {
        true
    }

    fn partition(&self) -> Partition {
        self.last.as_ref().map_or(Partition::ONLY, |given| given.partition)
    }

    fn set_paused(&mut self, paused: &[Partition]) {
        self.shared.state.lock().paused = paused.to_vec();
    }

    fn revoking(&mut self) -> Vec<Partition> {
        let mut state = self.shared.state.lock();
        let untold = state.leaving.iter_mut().filter(|(_, told)| !**told);
        let untold = untold.map(|(partition, told)| {
            *told = true;
            *partition
        });
        untold.collect()
    }

    fn revoked(&mut self, partition: Partition) {
        self.shared.state.lock().leaving.remove(&partition);
        self.shared.wake();
        self.shared.changed.notify_one();
    }
}

impl Drop for KafkaSource {
    fn drop(&mut self) {
        self.lifeline = None;
        let has_ended = {
            let mut state = self.shared.state.lock();
            state.dropped = Some(Instant::now());
            state.has_ended
        };
        self.shared.wake();
        // Without a committer, or after its last commit, nothing holds the consumer any more.
        if has_ended {
            // It is disconnected in either case.
            let _ = self.closed.recv_timeout(LEAVE);
        }
    }
}

impl fmt::Debug for KafkaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSource").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// Changes the topics that a source reads while it runs.
#[derive(Clone)]
pub struct Subscription(Arc<Shared>);

impl Subscription {
    /// It reads these topics and patterns from now on, and no others. Those that it no longer reads
    /// are given away as in a rebalance. With none, it leaves its group, until it is given some.
    pub fn set_topics<T: Into<String>>(&self, topics: impl IntoIterator<Item = T>) {
        self.0.state.lock().topics = Some(topics.into_iter().map(Into::into).collect());
        self.0.wake();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subscription").field(&self.0.name).finish()
    }
}
