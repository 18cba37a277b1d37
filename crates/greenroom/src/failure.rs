//! The consequences of a failed attempt: one table for errors and panics.
//!
//! ```text
//!                      plain pool                    with retry(attempts, backoff)
//! handler's error      a call gets the error,        tried again, then as in a plain pool
//!                      a send is a dead letter
//! panic, timeout,      dead letter                   tried again, then a dead letter;
//! crash, kill                                        after `poison_limit` panics or crashes quarantined
//! ```
//!
//! A retry needs the message. It exists if the actor leaves it in its delivery
//! ([`Actor::KEEPS_MESSAGE`](crate::Actor::KEEPS_MESSAGE)), or if the pool keeps a copy while the
//! message is in hand ([`retry`](crate::PoolBuilder::retry),
//! [`keep_copies`](crate::PoolBuilder::keep_copies)). A pool whose policy needs the message, but
//! which has neither, is not started.

use std::time::Duration;

use greenroom_config::{At, Take, Typed, units::DurationRange};

/// Exponential backoff with jitter.
///
/// The n-th wait is `first * 2^(n-1)`, at most `max`, minus a random part of up to half ("equal
/// jitter", described by Marc Brooker in "Exponential Backoff And Jitter", AWS Architecture Blog,
/// 2015), so that messages that failed together do not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait.
    pub first: Duration,
    /// The longest wait.
    pub max: Duration,
}

/// The longest possible wait, a hundred years: `Duration::MAX` cannot be multiplied.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Backoff {
    /// A backoff from `first` to `max`.
    pub const fn new(first: Duration, max: Duration) -> Self {
        Self { first, max }
    }

    /// The wait after the n-th failure (1 for the first), with `chance` between 0 and 1
    /// deciding the jitter.
    pub fn wait(&self, failures: u32, chance: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let whole = self.first.saturating_mul(1 << doublings).min(self.max);
        whole.min(LONGEST).mul_f64(0.5 + 0.5 * chance.clamp(0.0, 1.0))
    }
}

/// Two durations with `..` between them: the first wait, and the longest.
impl Take for Backoff {
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self> {
        DurationRange::take(found, at).map(|waits| Self::new(waits.from, waits.to))
    }
}

/// Why an attempt failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause<'a, E> {
    /// The handler returned this error.
    Error(&'a E),
    /// The handler panicked with this message. Its worker is restarted.
    Panic(&'a str),
    /// The handler did not return within the pool's limit, and was dropped.
    Timeout(Duration),
    /// The process or connection that did the work for the handler has died
    /// ([`Delivery::crashed`](crate::Delivery::crashed)); the handler returned this error.
    Crash(&'a E),
    /// The worker was killed while it handled the message, or its supervisor suspended it and it
    /// did not release the message in time: the handler was dropped. The message need not be at
    /// fault, so this does not count towards the poison limit.
    Kill,
}

/// A failed attempt, as the failure policy sees it.
#[derive(Debug)]
pub struct FailedAttempt<'a, E> {
    /// The cause.
    pub cause: Cause<'a, E>,
    /// How many attempts have failed and count, this one included.
    pub failures: u32,
}

/// The consequence of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureAction {
    /// Another attempt after this wait. In a keyed pool the key waits, not the worker.
    Retry {
        /// How long the message waits.
        after: Duration,
        /// Whether the failed attempt counts.
        counted: bool,
    },
    /// A dead letter.
    DeadLetter,
    /// Dropped, and counted.
    Drop,
    /// Given back to the caller; a send becomes a dead letter.
    Return,
    /// The key waits for an operator, with this message at its head: no later message of the key is
    /// handled before it. Callers that wait for them get
    /// [`CallError::Parked`](crate::CallError::Parked) at once. See [`Keys`](crate::keys::Keys). A
    /// message without a key becomes a dead letter.
    ParkKey,
    /// A dead letter, and the pool stops: messages in hand are finished, and queued
    /// ones are given back.
    StopPool,
}

/// A rule of the failure table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Up to this many attempts in total, then `finally`.
    Retry {
        /// Attempts in total, including the first.
        attempts: u32,
        /// The waits between them.
        backoff: Backoff,
        /// The consequence once all attempts have failed.
        finally: FinalAction,
    },
    /// No further attempt.
    Once(FinalAction),
}

/// The consequence when no further attempt is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalAction {
    /// A dead letter.
    DeadLetter,
    /// Dropped, and counted.
    Drop,
    /// Given back to the caller; a send becomes a dead letter.
    Return,
    /// The key waits for an operator. See [`FailureAction::ParkKey`].
    ParkKey,
    /// A dead letter, and the pool stops.
    StopPool,
}

impl From<FinalAction> for FailureAction {
    fn from(finally: FinalAction) -> Self {
        match finally {
            FinalAction::DeadLetter => Self::DeadLetter,
            FinalAction::Drop => Self::Drop,
            FinalAction::Return => Self::Return,
            FinalAction::ParkKey => Self::ParkKey,
            FinalAction::StopPool => Self::StopPool,
        }
    }
}

impl Rule {
    /// The action on the n-th failure.
    pub fn action(&self, failures: u32, chance: f64) -> FailureAction {
        match *self {
            Self::Retry { attempts, backoff, .. } if failures < attempts => {
                FailureAction::Retry { after: backoff.wait(failures, chance), counted: true }
            }
            Self::Retry { finally, .. } | Self::Once(finally) => finally.into(),
        }
    }

    fn retries(&self) -> bool {
        matches!(self, Self::Retry { attempts: 2.., .. })
    }

    fn parks(&self) -> bool {
        let (Self::Retry { finally, .. } | Self::Once(finally)) = self;
        *finally == FinalAction::ParkKey
    }
}

/// The failure table of a pool: a rule for each way in which an attempt can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureTable {
    /// For errors that the handler returns.
    pub error: Rule,
    /// For panics.
    pub panic: Rule,
    /// For handlers that do not return within the pool's limit.
    pub timeout: Rule,
    /// For a crash of the process or connection that did the work for the handler.
    pub crash: Rule,
    /// For workers that were killed while they handled the message.
    pub kill: Rule,
}

impl FailureTable {
    /// The same rule for every failure.
    pub const fn all(rule: Rule) -> Self {
        Self { error: rule, panic: rule, timeout: rule, crash: rule, kill: rule }
    }

    fn rules(&self) -> [Rule; 5] {
        [self.error, self.panic, self.timeout, self.crash, self.kill]
    }
}

impl Default for FailureTable {
    /// Errors return to the caller; after a panic, a timeout, a crash or a kill the message is a
    /// dead letter.
    fn default() -> Self {
        Self {
            error: Rule::Once(FinalAction::Return),
            ..Self::all(Rule::Once(FinalAction::DeadLetter))
        }
    }
}

/// Decides the consequence of a failed attempt. A closure or a [`FailureTable`] can be one.
pub trait FailurePolicy<E>: Send + Sync + 'static {
    /// Decides. `chance` is a random number between 0 and 1, for jitter.
    fn decide(&self, attempt: FailedAttempt<'_, E>, chance: f64) -> FailureAction;

    /// Whether it may ask for a retry or park a key, which needs the message: a pool that would not
    /// have the message then is not started. True by default, even for closures.
    fn needs_message(&self) -> bool {
        true
    }

    /// Whether its purpose is to park keys: a pool without keys is then not started. False by
    /// default, even for closures; without a key, a message to park becomes a dead letter.
    fn needs_keys(&self) -> bool {
        false
    }
}

impl<E: 'static> FailurePolicy<E> for FailureTable {
    fn decide(&self, attempt: FailedAttempt<'_, E>, chance: f64) -> FailureAction {
        let rule = match attempt.cause {
            Cause::Error(_) => self.error,
            Cause::Panic(_) => self.panic,
            Cause::Timeout(_) => self.timeout,
            Cause::Crash(_) => self.crash,
            Cause::Kill => self.kill,
        };
        rule.action(attempt.failures, chance)
    }

    fn needs_message(&self) -> bool {
        self.rules().iter().any(|rule| rule.retries() || rule.parks())
    }

    fn needs_keys(&self) -> bool {
        self.rules().iter().any(Rule::parks)
    }
}

impl<E, F> FailurePolicy<E> for F
where
    F: Fn(FailedAttempt<'_, E>, f64) -> FailureAction + Send + Sync + 'static,
{
    fn decide(&self, attempt: FailedAttempt<'_, E>, chance: f64) -> FailureAction {
        self(attempt, chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(30));

    #[test]
    fn waits_double_up_to_the_longest() {
        assert_eq!(BACKOFF.wait(1, 1.0), Duration::from_millis(200));
        assert_eq!(BACKOFF.wait(2, 1.0), Duration::from_millis(400));
        assert_eq!(BACKOFF.wait(4, 0.0), Duration::from_millis(800));
        assert_eq!(BACKOFF.wait(40, 1.0), Duration::from_secs(30));
        assert_eq!(BACKOFF.wait(u32::MAX, 1.0), Duration::from_secs(30));
        assert_eq!(Backoff::new(Duration::MAX, Duration::MAX).wait(9, 1.0), LONGEST);
    }

    #[test]
    fn p18_each_row_of_the_table_gives_its_verdict() {
        let retry = Rule::Retry { attempts: 3, backoff: BACKOFF, finally: FinalAction::Drop };
        let table = FailureTable { error: retry, ..FailureTable::default() };
        let error = |failures| FailedAttempt { cause: Cause::Error(&()), failures };
        let after = Duration::from_millis(200);
        assert_eq!(table.decide(error(1), 1.0), FailureAction::Retry { after, counted: true });
        assert!(matches!(table.decide(error(2), 1.0), FailureAction::Retry { .. }));
        assert_eq!(table.decide(error(3), 1.0), FailureAction::Drop);
        let panic = FailedAttempt::<()> { cause: Cause::Panic("boom"), failures: 1 };
        assert_eq!(table.decide(panic, 1.0), FailureAction::DeadLetter);
        let kill = FailedAttempt::<()> { cause: Cause::Kill, failures: 1 };
        let once = FailureTable { kill: Rule::Once(FinalAction::Drop), ..table };
        assert_eq!(once.decide(kill, 1.0), FailureAction::Drop);
        let plain = FailureTable::default();
        assert_eq!(plain.decide(error(1), 1.0), FailureAction::Return);
    }
}
