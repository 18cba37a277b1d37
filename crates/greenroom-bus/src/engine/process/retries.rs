//! Why events are attempted again (O03).

use std::sync::atomic::{AtomicU64, Ordering};

use crate::handler::FailureKind;

spelled! {
    as_str:
    /// The error class of an attempt that is followed by another.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum RetryClass {
        /// Its handler failed, for a cause that may pass.
        Failed = "failed",
        /// It took too long.
        TimedOut = "timed_out",
        /// Its handler is in outage: the event is not to blame.
        Outage = "outage",
        /// It was given back unstarted.
        Released = "released",
        /// There was no room on the way back, or more came than was declared.
        LoopbackFull = "loopback_full",
        /// The other side wants nothing of its share for a while.
        Held = "held",
    }
}

impl RetryClass {
    /// The class of a failure: `waits` if an outage is to blame, `is_over` if no attempt is left.
    /// `None` if none follows.
    pub(crate) fn from_failure(kind: FailureKind, waits: bool, is_over: bool) -> Option<Self> {
        Some(match kind {
            _ if waits => Self::Outage,
            FailureKind::Released => Self::Released,
            FailureKind::Reject
            | FailureKind::Crash
            | FailureKind::Fatal
            | FailureKind::Park
            | FailureKind::PauseShare => {
                return None;
            }
            _ if is_over => return None,
            FailureKind::Timeout => Self::TimedOut,
            FailureKind::LoopbackFull => Self::LoopbackFull,
            FailureKind::HoldShare { .. } => Self::Held,
            FailureKind::Retry { .. } | FailureKind::Pause | FailureKind::Broken => Self::Failed,
        })
    }
}

/// How many there were of each class.
#[derive(Debug, Default)]
pub(crate) struct Retries([AtomicU64; RetryClass::ALL.len()]);

impl Retries {
    pub(crate) fn count(&self, class: RetryClass) {
        self.0[class as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Each class with its count.
    pub(crate) fn counts(&self) -> [(RetryClass, u64); RetryClass::ALL.len()] {
        RetryClass::ALL.map(|class| (class, self.0[class as usize].load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o03_a_failure_that_no_attempt_follows_is_no_retry() {
        let retry = FailureKind::Retry { after: None };
        for (kind, waits, is_over, class) in [
            (retry, false, false, Some(RetryClass::Failed)),
            (retry, false, true, None),
            (retry, true, true, Some(RetryClass::Outage)),
            (FailureKind::Timeout, false, false, Some(RetryClass::TimedOut)),
            (FailureKind::Reject, false, false, None),
            (FailureKind::Released, false, true, Some(RetryClass::Released)),
            (FailureKind::LoopbackFull, false, false, Some(RetryClass::LoopbackFull)),
        ] {
            assert_eq!(
                RetryClass::from_failure(kind, waits, is_over),
                class,
                "{kind:?} {waits} {is_over}"
            );
        }
    }

    #[test]
    fn o03_each_class_is_counted_at_its_own_place() {
        let retries = Retries::default();
        for (times, class) in RetryClass::ALL.into_iter().enumerate() {
            (0..times).for_each(|_| retries.count(class));
        }
        assert_eq!(retries.counts().map(|(_, count)| count), [0, 1, 2, 3, 4, 5]);
    }
}
