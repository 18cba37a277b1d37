//! A consumer that cannot be read.

use tokio::time::Instant;

/// Why a consumer that was there cannot be read.
pub(super) enum Lost {
    /// It is to be looked for at this time.
    LookAt(Instant),
    /// Its stream is another one: until the engine has answered.
    Revoking,
}
