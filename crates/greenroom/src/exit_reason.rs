//! Why an actor or a pool has ended: a value to match on.
//!
//! | reason | normal | when |
//! |---|---|---|
//! | [`Normal`](ExitReason::Normal) | yes | it had no more to do |
//! | [`Shutdown`](ExitReason::Shutdown) | yes | it was stopped, and its work is done |
//! | [`Killed`](ExitReason::Killed) | no | it was ended in the midst of its work |
//! | [`Panicked`](ExitReason::Panicked) | no | its code panicked |
//! | [`Failed`](ExitReason::Failed) | no | its code ended it with an error |
//!
//! A normal exit concerns no other party; supervisors, links and operators are notified of an
//! abnormal one.

use std::{error::Error, fmt, sync::Arc};

use crate::panic_location::PanicLocation;

/// Why an actor or a pool has ended.
///
/// ```
/// use greenroom::ExitReason;
///
/// let reason = ExitReason::failed("the disk is full");
/// assert!(reason.is_abnormal());
/// assert_eq!(reason.to_string(), "failed: the disk is full");
/// assert!(matches!(reason, ExitReason::Failed { error } if error.to_string() == "the disk is full"));
/// ```
///
/// Two errors cannot be compared, and so neither can reasons.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ExitReason {
    /// It had no more to do.
    Normal,
    /// It was stopped, and its work is done.
    Shutdown,
    /// It was ended in the middle of its work.
    Killed,
    /// Its code panicked.
    Panicked {
        /// The panic's message, if it was text.
        message: String,
        /// Its place, if [`panic_location::install`](crate::panic_location::install) was called.
        location: Option<PanicLocation>,
    },
    /// Its code ended it with this error.
    Failed {
        /// The error, shared by all that are notified of it.
        error: Arc<dyn Error + Send + Sync>,
    },
}

impl ExitReason {
    /// [`Failed`](Self::Failed), with an error or a text.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed { error: error.into().into() }
    }

    /// True for `Normal` and `Shutdown`.
    pub fn is_normal(&self) -> bool {
        matches!(self, Self::Normal | Self::Shutdown)
    }

    /// True for everything else: it stops linked actors, and a supervisor counts it.
    pub fn is_abnormal(&self) -> bool {
        !self.is_normal()
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal => f.write_str("normal"),
            Self::Shutdown => f.write_str("shut down"),
            Self::Killed => f.write_str("killed"),
            Self::Panicked { message, location: None } => write!(f, "panicked: {message}"),
            Self::Panicked { message, location: Some(at) } => {
                write!(f, "panicked at {at}: {message}")
            }
            Self::Failed { error } => write!(f, "failed: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panicked(message: &str, location: Option<PanicLocation>) -> ExitReason {
        ExitReason::Panicked { message: message.to_owned(), location }
    }

    fn one_of_each() -> [ExitReason; 5] {
        let failed = ExitReason::failed(std::io::Error::other("no disk"));
        let panicked = panicked("on purpose", None);
        [ExitReason::Normal, ExitReason::Shutdown, ExitReason::Killed, panicked, failed]
    }

    #[test]
    fn a11_normal_and_shutdown_are_the_normal_exits() {
        assert_eq!(
            one_of_each().map(|reason| reason.is_normal()),
            [true, true, false, false, false]
        );
        assert!(one_of_each().iter().all(|reason| reason.is_normal() != reason.is_abnormal()));
    }

    #[test]
    fn a11_a_reason_says_what_and_where() {
        let texts = one_of_each().map(|reason| reason.to_string());
        let plain = ["normal", "shut down", "killed", "panicked: on purpose", "failed: no disk"];
        assert_eq!(texts, plain);
        let location = PanicLocation { file: "src/a.rs".into(), line: 3, column: 9 };
        let text = panicked("on purpose", Some(location)).to_string();
        assert_eq!(text, "panicked at src/a.rs:3:9: on purpose");
    }

    #[test]
    fn a11_everybody_who_hears_of_a_failure_has_the_same_error() {
        let reason = ExitReason::failed(std::io::Error::other("no disk"));
        let (ExitReason::Failed { error }, ExitReason::Failed { error: copy }) =
            (&reason, &reason.clone())
        else {
            panic!("it is a failure");
        };
        assert!(Arc::ptr_eq(error, copy));
        assert!(error.downcast_ref::<std::io::Error>().is_some(), "its type is still known");
    }
}
