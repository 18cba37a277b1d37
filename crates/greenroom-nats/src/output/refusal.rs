//! The meaning of an answer that is not an acknowledgement.

use std::error::Error as _;

use async_nats::jetstream::{
    self, ErrorCode,
    context::{PublishError, PublishErrorKind},
};

/// The meaning of a publish error for its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It will never be stored.
    Rejected,
    /// An operator has to correct an error.
    Pauses,
    /// The subject has no listener.
    NoStream,
    /// It may pass, and nothing was stored.
    Again,
    /// It may pass, and it is not known whether the event was stored.
    Unknown,
}

impl Refusal {
    pub(super) fn from_error(error: &PublishError) -> Self {
        match error.kind() {
            PublishErrorKind::StreamNotFound => Self::NoStream,
            PublishErrorKind::MaxPayloadExceeded => Self::Rejected,
            PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe => Self::Unknown,
            PublishErrorKind::MaxAckPending => Self::Again,
            _ => match error.source().and_then(|error| error.downcast_ref::<jetstream::Error>()) {
                Some(error) => Self::of_code(error.error_code()),
                // No answer that can be read.
                None => Self::Unknown,
            },
        }
    }

    fn of_code(code: ErrorCode) -> Self {
        match code {
            ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM
            | ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM => Self::Rejected,
            ErrorCode::STREAM_SEALED
            | ErrorCode::STREAM_NOT_MATCH
            | ErrorCode::JETSTREAM_NOT_ENABLED
            | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT
            | ErrorCode::NO_ACCOUNT => Self::Pauses,
            // A stream that is full, a cluster without a leader, a server that has too much to do.
            _ => Self::Again,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d13_what_no_attempt_mends_is_rejected_or_pauses() {
        let of = |kind| Refusal::from_error(&PublishError::new(kind));
        assert_eq!(of(PublishErrorKind::MaxPayloadExceeded), Refusal::Rejected);
        assert_eq!(of(PublishErrorKind::TimedOut), Refusal::Unknown);
        assert_eq!(of(PublishErrorKind::StreamNotFound), Refusal::NoStream);
        let full = ErrorCode::STREAM_STORE_FAILED;
        assert_eq!(Refusal::of_code(full), Refusal::Again, "a stream that is full may be emptied");
        assert_eq!(Refusal::of_code(ErrorCode::STREAM_SEALED), Refusal::Pauses);
        let large = ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM;
        assert_eq!(Refusal::of_code(large), Refusal::Rejected);
    }
}
