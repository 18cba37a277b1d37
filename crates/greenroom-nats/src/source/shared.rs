//! Shared by the driver of a partition and its source.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use greenroom_bus::{
    settlement::{Outcome, Settled},
    source::{Partition, PartitionStanding, Receipts, Taken},
    watermark::{Epoch, Positions, Watermark},
};
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::{stats::NatsSourceStats, statuses::Statuses, tracker::Tracker};

/// The message about a driver that has panicked.
pub(super) const PANICKED: &str =
    "the task that reads it has ended unexpectedly; see the log, and please report this";

/// One partition.
pub(super) struct Shared {
    pub(super) partition: Partition,
    state: Mutex<State>,
    /// Wakes the driver: something was settled, there is room, a pause began or ended.
    pub(super) to_driver: Notify,
    /// Wakes the source, which has one for all partitions.
    to_source: Arc<Notify>,
    /// The source is gone: nothing more is given.
    pub(super) is_closing: AtomicBool,
    /// The state of the source.
    pub(super) statuses: Arc<Statuses>,
}

/// The state of a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Revocation {
    #[default]
    None,
    /// The engine is to be told.
    Wanted,
    /// It was, and has not answered.
    Told,
}

pub(super) struct State {
    pub(super) tracker: Tracker,
    /// To be given next.
    pub(super) ready: VecDeque<Taken>,
    /// Answers to be sent to the server.
    pub(super) answers: Vec<(Box<str>, Answer)>,
    /// Makes the numbers of assignments, and holds nothing else.
    epochs: Watermark,
    pub(super) epoch: Epoch,
    pub(super) is_paused: bool,
    pub(super) revocation: Revocation,
    /// Why nothing can be read any more.
    pub(super) failure: Option<String>,
    /// Until then, no other process reads; `None` if that is not known to end.
    leased_until: Option<Instant>,
    /// Messages that the server has not delivered yet.
    pub(super) lag: Option<u64>,
    /// Above all that were given to the engine.
    given_below: u64,
    pub(super) stats: NatsSourceStats,
}

impl State {
    fn is_leased(&self, now: Instant) -> bool {
        self.leased_until.is_none_or(|until| now < until)
    }
}

/// An answer to the server about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is handled.
    Ack,
    /// It is a dead letter, which is stored.
    Term,
    /// It was not started.
    Nak,
    /// It is in hand.
    Progress,
}

impl Answer {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Ack => "+ACK",
            Self::Term => "+TERM dead letter",
            Self::Nak => "-NAK",
            Self::Progress => "+WPI",
        }
    }
}

impl Shared {
    pub(super) fn new(
        partition: Partition,
        to_source: Arc<Notify>,
        statuses: Arc<Statuses>,
    ) -> Arc<Self> {
        let mut epochs = Watermark::default();
        let epoch = epochs.assign(&Positions::starting_at(1));
        let state = Mutex::new(State {
            tracker: Tracker::default(),
            ready: VecDeque::new(),
            answers: Vec::new(),
            epochs,
            epoch,
            is_paused: false,
            revocation: Revocation::None,
            failure: None,
            leased_until: None,
            lag: None,
            given_below: 0,
            stats: NatsSourceStats::default(),
        });
        let (to_driver, is_closing) = (Notify::new(), AtomicBool::new(false));
        Arc::new(Self { partition, state, to_driver, to_source, is_closing, statuses })
    }

    /// The source fails if this is dropped by a panic.
    pub(super) fn fails_on_panic(self: &Arc<Self>) -> FailsOnPanic {
        FailsOnPanic(self.clone())
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock())
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Messages to give.
    pub(super) fn give(&self, taken: impl IntoIterator<Item = Taken>) {
        self.look(|state| state.ready.extend(taken));
        self.to_source.notify_one();
    }

    /// Nothing can be read any more.
    pub(super) fn fail(&self, why: String) {
        self.look(|state| state.failure = Some(why));
        self.to_source.notify_one();
    }

    /// The messages at these positions have changed: the engine is to give up its own.
    pub(super) fn revoke(&self) {
        self.look(|state| {
            state.revocation = Revocation::Wanted;
            state.ready.clear();
        });
        self.to_source.notify_one();
    }

    /// The engine has answered: another assignment begins, in which nothing is known.
    pub(super) fn revoked(&self) {
        let until = self.look(|state| {
            state.epoch = state.epochs.assign(&Positions::starting_at(1));
            state.tracker = Tracker::default();
            state.ready.clear();
            state.answers.clear();
            state.given_below = 0;
            state.revocation = Revocation::None;
            state.leased_until.filter(|_| state.stats.waiting == 0)
        });
        match until {
            Some(until) => self.statuses.leased_until(self.partition, until.into_std()),
            None => self.statuses.not_leased(self.partition),
        }
        self.to_driver.notify_one();
    }

    /// The engine gets messages only until then. Its handlers may also begin theirs until then,
    /// except those of an earlier lease that are yet to be given up.
    pub(super) fn lease_until(&self, until: Option<Instant>) {
        let (was, has_nothing_else) = self.look(|state| {
            let has_nothing_else = state.revocation == Revocation::None;
            (std::mem::replace(&mut state.leased_until, until), has_nothing_else)
        });
        if let Some(until) = until.filter(|_| has_nothing_else) {
            self.statuses.leased_until(self.partition, until.into_std());
        }
        if was.is_some_and(|was| Instant::now() >= was) {
            self.to_source.notify_one();
        }
    }

    /// Whether no other process reads it.
    pub(super) fn is_leased(&self, now: Instant) -> bool {
        self.look(|state| state.is_leased(now))
    }

    pub(super) fn set_paused(&self, is_paused: bool) {
        let was = self.look(|state| std::mem::replace(&mut state.is_paused, is_paused));
        if was != is_paused {
            self.to_driver.notify_one();
        }
    }

    /// Takes some of the ready messages, unless the partition is paused.
    pub(super) fn take(&self, most: usize, into: &mut Vec<Taken>) -> bool {
        let took = self.look(|state| {
            if state.is_paused || state.revocation != Revocation::None || state.ready.is_empty() {
                return false;
            }
            if !state.is_leased(Instant::now()) {
                return false;
            }
            let count = state.ready.len().min(most);
            for taken in state.ready.drain(..count) {
                state.stats.out_of_order += u64::from(taken.position < state.given_below);
                state.given_below = state.given_below.max(taken.position + 1);
                into.push(taken);
            }
            true
        });
        if took {
            self.to_driver.notify_one();
        }
        took
    }

    pub(super) fn standing(&self) -> PartitionStanding {
        self.look(|state| PartitionStanding {
            partition: self.partition,
            epoch: state.epoch,
            next: state.tracker.next(),
            oldest_open: state.tracker.oldest_open(),
            lag: state.lag.map(|lag| lag + state.ready.len() as u64),
            ahead: state.tracker.done_ahead(),
        })
    }

    /// Receives how events of the present assignment are settled.
    pub(super) fn heard(self: &Arc<Self>) -> Arc<Heard> {
        let epoch = self.look(|state| state.epoch);
        Arc::new(Heard { shared: self.clone(), epoch })
    }
}

/// Held by a driver: without it, a panic would go unnoticed, and the engine would wait for messages
/// for ever.
pub(super) struct FailsOnPanic(Arc<Shared>);

impl Drop for FailsOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(PANICKED.to_owned());
        }
    }
}

/// Hears of the settlements of one assignment.
pub(super) struct Heard {
    shared: Arc<Shared>,
    epoch: Epoch,
}

impl Receipts for Heard {
    fn settled(&self, position: u64, how: Settled) {
        let is_first = self.shared.look(|state| {
            if state.epoch != self.epoch {
                state.stats.fenced += 1;
                return false;
            }
            let answer = match how {
                Settled::Acknowledged(Outcome::DeadLettered) => Answer::Term,
                Settled::Acknowledged(_) => Answer::Ack,
                Settled::Refused(_) => {
                    state.tracker.refuse(position);
                    return true;
                }
            };
            let Some(reply) = state.tracker.settle(position) else { return false };
            state.answers.push((reply, answer));
            state.answers.len() == 1
        });
        if is_first {
            self.shared.to_driver.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use greenroom_bus::{settlement::Refusal, source::Malformed};

    use super::*;

    fn shared(received: impl IntoIterator<Item = u64>) -> Arc<Shared> {
        let statuses = Statuses::new("nats", "", String::new());
        let shared = Shared::new(Partition::ONLY, Arc::default(), statuses);
        for position in received {
            shared.look(|state| {
                _ = state.tracker.receive(position, &format!("reply-{position}"), Instant::now());
            });
            let event = Err(Malformed::new(Vec::new(), "test"));
            shared.give([Taken { position, event }]);
        }
        shared
    }

    #[tokio::test]
    async fn n02_the_server_hears_how_each_message_ended() {
        let shared = shared([1, 2, 3, 4]);
        let heard = shared.heard();
        heard.settled(1, Settled::Acknowledged(Outcome::Handled));
        heard.settled(2, Settled::Acknowledged(Outcome::DeadLettered));
        heard.settled(3, Settled::Acknowledged(Outcome::Ignored));
        heard.settled(4, Settled::Refused(Refusal::NoHandler));
        let answers = shared.look(|state| std::mem::take(&mut state.answers));
        let answers: Vec<_> = answers.iter().map(|(to, answer)| (&**to, *answer)).collect();
        assert_eq!(
            answers,
            [("reply-1", Answer::Ack), ("reply-2", Answer::Term), ("reply-3", Answer::Ack)],
            "what is refused is neither acknowledged nor given back"
        );
    }

    #[tokio::test]
    async fn d12_a_result_of_an_assignment_that_has_ended_is_fenced() {
        let shared = shared([1]);
        let late = shared.heard();
        shared.revoke();
        shared.revoked();
        late.settled(1, Settled::Acknowledged(Outcome::Handled));
        assert!(shared.look(|state| state.answers.is_empty() && state.stats.fenced == 1));
    }

    #[tokio::test]
    async fn d15_what_is_paused_gives_nothing() {
        let (shared, mut into) = (shared([1, 2]), Vec::new());
        shared.set_paused(true);
        assert!(!shared.take(9, &mut into));
        shared.set_paused(false);
        assert!(shared.take(1, &mut into) && shared.take(9, &mut into));
        assert!(!shared.take(9, &mut into));
        assert_eq!(into.iter().map(|taken| taken.position).collect::<Vec<_>>(), [1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn n03_nothing_is_given_once_the_lease_is_over() {
        let (shared, mut into) = (shared([1]), Vec::new());
        let second = std::time::Duration::from_secs(1);
        shared.lease_until(Some(Instant::now() + second));
        tokio::time::advance(second).await;
        assert!(!shared.take(9, &mut into), "another process may read it");
        shared.lease_until(Some(Instant::now() + second));
        assert!(shared.take(9, &mut into));
    }

    #[tokio::test]
    async fn n03_handlers_begin_nothing_of_an_earlier_lease() {
        let statuses = Statuses::new("nats", "", String::new());
        let lease = statuses.lease.clone();
        let of = |partition| Shared::new(Partition(partition), Arc::default(), statuses.clone());
        let (lost, other) = (of(1), of(2));
        let later = Some(Instant::now() + std::time::Duration::from_secs(600));
        lost.lease_until(Some(Instant::now()));
        lost.look(|state| state.stats.waiting = 1);
        lost.revoke();
        other.lease_until(later);
        assert!(!lease.is_held(), "the engine has what the other process reads by now");
        lost.look(|state| state.stats.waiting = 0);
        lost.lease_until(later);
        assert!(!lease.is_held(), "and has it still when this one reads again");
        lost.revoked();
        assert!(lease.is_held());
    }

    #[tokio::test]
    async fn n05_a_driver_that_panics_fails_its_source() {
        let shared = shared([]);
        let fails = shared.fails_on_panic();
        let driver = tokio::spawn(async move {
            let _fails = fails;
            panic!("as a defect would have it");
        });
        assert!(driver.await.is_err());
        shared.to_source.notified().await;
        assert!(shared.look(|state| state.failure.as_deref() == Some(PANICKED)));
    }

    #[tokio::test]
    async fn n06_what_comes_after_later_ones_is_counted() {
        let (shared, mut into) = (shared([5, 7, 6]), Vec::new());
        shared.take(9, &mut into);
        assert_eq!(shared.look(|state| state.stats.out_of_order), 1);
    }
}
