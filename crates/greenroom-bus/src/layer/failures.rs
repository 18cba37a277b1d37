//! The consequence of a layer's error.

use std::error::Error;

use tower::{load_shed::error::Overloaded, timeout::error::Elapsed};

use super::BoxError;
use crate::handler::{Failure, FailureKind};

/// An error may wrap another one: the outermost that names a consequence decides.
pub(super) fn failure(error: BoxError) -> Failure {
    let error = match error.downcast::<Failure>() {
        Ok(failure) => return *failure,
        Err(error) => error,
    };
    let mut words = error.to_string();
    let mut next: Option<&(dyn Error + 'static)> = Some(&*error);
    while let Some(error) = next {
        if let Some(failure) = error.downcast_ref::<Failure>() {
            return failure.clone();
        }
        if error.is::<Elapsed>() {
            return Failure::new(
                FailureKind::Timeout,
                "the attempt took longer than its layer allows",
            );
        }
        if error.is::<Overloaded>() {
            return Failure::new(FailureKind::Released, "a layer has no room for the attempt");
        }
        next = error.source();
        if let Some(source) = next {
            words = format!("{words}: {source}");
        }
    }
    Failure::retry(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outside")]
    struct Outside(#[source] BoxError);

    #[test]
    fn r07_the_error_of_a_layer_says_what_follows_also_from_within_another() {
        let kind = |error: BoxError| failure(Box::new(Outside(error))).kind;
        assert_eq!(kind(Box::new(Failure::reject("no"))), FailureKind::Reject);
        assert_eq!(kind(Box::new(Elapsed::new())), FailureKind::Timeout);
        assert_eq!(kind(Box::new(Overloaded::new())), FailureKind::Released);
        let other = failure(Box::new(Outside("inside".into())));
        assert_eq!(other.kind, FailureKind::Retry { after: None });
        assert_eq!(other.error, "outside: inside");
    }
}
