//! The time of a log: milliseconds since 1970 that never go back and never jump while it is open.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Begins at the wall clock, or at the end of the log if that is later; continues with the
/// monotonic clock. So setting the wall clock, either way, makes no event older than it is.
pub(super) struct LogClock {
    begin: u64,
    elapsed: Box<dyn Fn() -> Duration + Send + Sync>,
}

impl LogClock {
    /// Of a log whose last time was this.
    pub(super) fn after(last: u64) -> Self {
        let since = Instant::now();
        Self::with_elapsed(wall().max(last), move || since.elapsed())
    }

    pub(super) fn with_elapsed(
        begin: u64,
        elapsed: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self { begin, elapsed: Box::new(elapsed) }
    }

    pub(super) fn now(&self) -> u64 {
        self.begin + millis((self.elapsed)())
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn wall() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
}
