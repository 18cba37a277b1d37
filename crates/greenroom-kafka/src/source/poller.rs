//! The thread that polls the consumer. It never waits: not for the engine, a handler or a
//! broker (D11), so `max.poll.interval.ms` never passes.
//!
//! ```text
//!          ┌─────────────────────────── each turn ───────────────────────────┐
//! librdkafka ─ callbacks ─▶ written down ─▶ rebalance: assign │ drain, commit, unassign
//!          ├─ queue of each partition ─▶ receive, decode ─▶ ready, bounded ─▶ pull
//!          └─ commit: one snapshot under way ─▶ answer ─▶ confirmed, in its epoch
//! ```
//!
//! Each partition has a queue of its own in librdkafka, which is read while there is room for ready
//! records: a full partition blocks no other, and fetched records are not fetched again (F05).

mod anew;
mod committing;
mod contact;
mod filling;
mod guarding;
mod read_to;
mod rebalance;
mod standing;

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    sync::{Arc, Weak, mpsc},
    thread,
    time::{Duration, Instant},
};

use greenroom_bus::{
    source::{Partition, StartAt},
    watermark::{Epoch, Snapshot},
};
use rdkafka::{
    consumer::{BaseConsumer, Consumer, base_consumer::PartitionQueue},
    error::KafkaError,
};
use tokio::sync::oneshot;

use self::{
    contact::Contact,
    read_to::{Anew, ReadTo},
};
use super::{
    context::{Said, SourceContext},
    guard::Guard,
    limits::Limits,
    numbers::Numbers,
    offsets::{Answer, Known},
    setup::SourceSetup,
    shared::{Shared, Tracker},
    storing::{StoredOffset, Storing},
};
use crate::place::Place;

/// Between turns in which there is nothing to do. Records wake the thread; callbacks do not.
const IDLE: Duration = Duration::from_millis(10);
/// After its source was dropped, a consumer waits for a last commit.
const AFTER_DROP: Duration = Duration::from_secs(30);

pub(super) use self::contact::session;

/// The consumer stays as long as one of these is held.
pub(super) struct Lifeline;

/// A partition that is assigned.
struct AssignedPartition {
    place: Place,
    epoch: Epoch,
    tracker: Arc<Tracker>,
    /// Until it is taken away.
    queue: Option<PartitionQueue<SourceContext>>,
    read: ReadTo,
    /// Its log has begun again, and the records read before are drained.
    anew: Option<Anew>,
    /// The offset of a seek, until a record comes.
    sought: Option<u64>,
    /// All that is there was taken: up to which offset, and how often that was seen.
    at_end: Option<(u64, u32)>,
    /// The last commit that was confirmed.
    committed: Option<StoredOffset>,
    /// The settled offsets no longer fit in a commit: no records are taken since; and when that was
    /// checked.
    full: Option<Instant>,
    /// When that was told.
    told_full: Option<Instant>,
}

/// Partitions that are to be read, and whose start is being looked up.
struct Assigning {
    places: Vec<Place>,
    answer: mpsc::Receiver<Answer>,
    /// It is asked again then.
    again: Option<Instant>,
    failed: Option<KafkaError>,
    /// librdkafka was told of some of them, or that there are none yet.
    has_assigned: bool,
}

/// The rebalance that librdkafka waits for.
enum Rebalance {
    Assigning(Assigning),
    Revoking {
        /// All that it wants, also such as were never read.
        places: Vec<Place>,
        numbers: Vec<Partition>,
        since: Instant,
        /// Nothing is in hand, and the last commit has to be answered by then.
        last_commit: Option<Instant>,
    },
}

/// A commit under way.
struct UnderWay {
    snapshots: Vec<(Partition, Snapshot, StoredOffset)>,
    asks: Vec<oneshot::Sender<()>>,
    /// It began when no event of the revoked partitions was in hand any more.
    is_last: bool,
    /// It stores where partitions begin.
    has_begun: bool,
}

struct Rebalances {
    rebalance: Option<Rebalance>,
    /// Said while another one was under way.
    later: VecDeque<Said>,
}

struct PollerCommits {
    /// Once the poller runs.
    storing: Option<Storing>,
    committing: Option<UnderWay>,
    /// The last commit of the revoked partitions failed, or one made unasked: it is tried again
    /// then.
    again: Option<Instant>,
    /// Partitions have begun at their end, which is to be stored before anything is settled.
    has_begun: bool,
}

pub(super) struct Poller {
    shared: Arc<Shared>,
    setup: SourceSetup,
    consumer: Arc<BaseConsumer<SourceContext>>,
    lifeline: Weak<Lifeline>,
    numbers: Numbers,
    /// The state at the start.
    known: Arc<Known>,
    reading: BTreeMap<Partition, AssignedPartition>,
    rebalances: Rebalances,
    commits: PollerCommits,
    limits: Limits,
    /// If there is one.
    guard: Option<Guard>,
    contact: Contact,
}

impl Poller {
    pub(super) fn new(
        shared: Arc<Shared>,
        setup: SourceSetup,
        consumer: BaseConsumer<SourceContext>,
        guard: Option<Guard>,
        lifeline: &Arc<Lifeline>,
    ) -> Self {
        Self {
            shared,
            consumer: Arc::new(consumer),
            lifeline: Arc::downgrade(lifeline),
            numbers: Numbers::new(&setup.input.topics),
            known: Arc::default(),
            reading: BTreeMap::new(),
            rebalances: Rebalances { rebalance: None, later: VecDeque::new() },
            commits: PollerCommits {
                storing: None,
                committing: None,
                again: None,
                has_begun: false,
            },
            limits: Limits::new(setup.input.metadata_limit, setup.input.remember_done),
            guard,
            contact: Contact::new(&setup.access.properties),
            setup,
        }
    }

    /// Runs until the consumer is not needed any more. Leaves the group.
    pub(super) fn run(mut self) {
        self.shared.is_polled_by(&thread::current());
        let end = PollingEnd { shared: self.shared.clone(), consumer: self.consumer.clone() };
        if self.setup.input.start == StartAt::Latest {
            // The present topics are learned; records of later ones are read from the first.
            drop(self.ask(&[]));
        }
        match Storing::begin(&self.consumer) {
            Ok(storing) => self.commits.storing = Some(storing),
            Err(error) => self.fail(format!("no thread to commit on: {error}")),
        }
        while !self.is_over() {
            let is_busy = self.turn();
            if !is_busy {
                thread::park_timeout(IDLE);
            }
        }
        drop(end);
        self.close();
    }

    fn is_over(&self) -> bool {
        let state = self.shared.state.lock();
        let is_left =
            state.dropped.is_some_and(|since| state.has_ended || since.elapsed() > AFTER_DROP);
        is_left || self.lifeline.strong_count() == 0
    }

    fn close(self) {
        let Self { shared, consumer, reading, rebalances, commits, .. } = self;
        consumer.context().close();
        // Each of these holds on to the consumer.
        drop((reading, rebalances.rebalance, commits.storing));
        drop(consumer);
        let asks = {
            let mut state = shared.state.lock();
            state.is_closed = true;
            mem::take(&mut state.asks)
        };
        // This answers callers that wait for a commit.
        drop((asks, commits.committing));
        shared.changed.notify_waiters();
    }

    /// True if there may be more to do at once.
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
        self.guard();
        self.commit();
        self.fill()
    }

    fn hear(&mut self, said: Said) {
        match said {
            Said::Assigned(_) | Said::Revoked { .. } => self.rebalances.later.push_back(said),
            Said::Error(code, reason) => self.tell(code, &reason),
            Said::Figures(figures) => self.hear_figures(&figures),
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
            // Reported by the callback for errors already, if they concern the whole client.
            error => {
                if let Some(code) = error.rdkafka_error_code() {
                    self.tell(code, &error.to_string());
                }
            }
        }
    }

    /// The source cannot continue.
    fn fail(&self, why: String) {
        self.shared.state.lock().failed.get_or_insert(why);
        self.shared.changed.notify_one();
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

/// If the thread panics, nothing waits for it for ever: neither a pull or a commit, nor the
/// consumer, which goes with the poller.
struct PollingEnd {
    shared: Arc<Shared>,
    consumer: Arc<BaseConsumer<SourceContext>>,
}

impl Drop for PollingEnd {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        self.consumer.context().close();
        let asks = {
            let mut state = self.shared.state.lock();
            let why = "its thread panicked; see the log, and please report this";
            state.failed.get_or_insert_with(|| why.to_owned());
            state.is_closed = true;
            mem::take(&mut state.asks)
        };
        drop(asks);
        self.shared.changed.notify_one();
        self.shared.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d11_a_thread_that_panics_is_a_failure_of_its_source_and_leaves_nobody_waiting() {
        let shared = Arc::new(Shared::new("kafka".to_owned(), "", None));
        let context = SourceContext::new("kafka".to_owned());
        let config = rdkafka::ClientConfig::new().set("group.id", "g").clone();
        let consumer: BaseConsumer<_> = config.create_with_context(context).expect("it needs none");
        let (ask, mut answer) = oneshot::channel();
        shared.state.lock().asks.push(ask);
        let end = PollingEnd { shared: shared.clone(), consumer: Arc::new(consumer) };
        let polls = thread::spawn(move || {
            let _end = end;
            panic!("as told");
        });
        assert!(polls.join().is_err());
        let state = shared.state.lock();
        assert!(
            state.is_closed && state.failed.as_ref().is_some_and(|why| why.contains("panicked"))
        );
        assert_eq!(answer.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }
}
