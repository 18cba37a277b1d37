//! Figures in words.

use std::time::Duration;

/// A time in words, as short as it can be.
pub(super) fn time(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds @ 1..600 => format!("{seconds} s"),
        seconds @ 600..36_000 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}
