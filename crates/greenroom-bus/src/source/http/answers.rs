//! How many requests were answered with which status.

use std::sync::atomic::{AtomicU64, Ordering};

use hyper::StatusCode;

/// Every status that a request is answered with.
const STATUSES: [StatusCode; 13] = [
    StatusCode::OK,
    StatusCode::ACCEPTED,
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    StatusCode::SERVICE_UNAVAILABLE,
];

/// Counted as they are made; nothing hangs on the order of these accesses to others.
#[derive(Default)]
pub(super) struct Answers([AtomicU64; STATUSES.len()]);

impl Answers {
    pub(super) fn count(&self, status: StatusCode) {
        let at = STATUSES.iter().position(|known| *known == status);
        debug_assert!(at.is_some(), "{status} is missing in the list");
        if let Some(at) = at {
            self.0[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The nonzero counts, by status.
    pub(super) fn counts(&self) -> Vec<(u16, u64)> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        let all = STATUSES.iter().map(StatusCode::as_u16).zip(counts);
        all.filter(|(_, count)| *count > 0).collect()
    }
}
