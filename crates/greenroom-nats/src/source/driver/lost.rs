//! A consumer that cannot be read.

use tokio::time::Instant;

/// Why a consumer that was there cannot be read.
pub(super) enum Lost {
    /// It is to be looked for at this time.
    LookAt(Instant),
    /// Its stream is another one, or another process has read it: until the engine has given up its
    /// messages.
    Revoking,
    /// Another process reads it, or may do so.
    Waiting,
}
