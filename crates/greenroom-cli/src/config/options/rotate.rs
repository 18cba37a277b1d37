//! When a file that is written is put aside.

use std::time::Duration;

use greenroom_config::{
    At, count, duration, options, size,
    units::{DAY_MS, GIB},
};

options! {
    /// The file is put aside and begun anew, between two lines. One that was put aside has its name
    /// with a number before the extension (`done.000001.ndjson`): the higher the newer, also over
    /// several runs.
    #[derive(Copy, Eq)]
    pub struct RotateConfig = "`rotate`", then RotateConfig::is_ever_due {
        /// It is put aside with the line that makes it as large as this. Without it, not by size.
        size: Option<u64> = size(1024..=1024 * GIB).optional();
        /// It is put aside at the end of each period: `1h` ends at each full hour, `1d` at midnight
        /// UTC. A file without a line is not put aside. Without it, not by time.
        every: Option<Duration> = duration(1_000..=366 * DAY_MS).optional();
        /// How many that were put aside are kept: the oldest are removed. Without it, all are.
        keep: Option<usize> = count(1..=1_000_000).optional();
    }
}

impl RotateConfig {
    fn is_ever_due(self, at: &mut At<'_>) -> Option<Self> {
        if self.size.is_some() || self.every.is_some() {
            return Some(self);
        }
        // One of them that is wrong has been reported.
        if !at.has("size") && !at.has("every") {
            let help = "write `size: 100MiB`, `every: 1d`, or both";
            at.error("", "nothing says when the file is put aside", help);
        }
        None
    }
}
