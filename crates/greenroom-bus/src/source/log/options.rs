//! How a log is kept.

use std::time::Duration;

use super::{
    error::LogError,
    format::{ALIGNMENT, BLOCK_HEADER, SEGMENT_HEADER},
};

const MIB: u64 = 1024 * 1024;

/// Smaller segments would be headers and little else.
const LEAST_SEGMENT: u64 = 4 * 1024;

/// A block has its length in 32 bits.
const MOST_APPEND: u64 = 1024 * MIB;

/// How a [`SegmentLog`](super::SegmentLog) is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// Bytes of a segment, which are taken from the disk when it is begun. Retention removes whole
    /// segments. Default: 64 MiB.
    pub segment_bytes: u64,
    /// Bytes that all segments may take together, at least two segments. With all of it still
    /// needed, appends are answered [`Full`](super::AppendError::Full). Default: 10 GiB.
    pub max_bytes: u64,
    /// How long events are kept that every consumer is done with, unless their room is needed.
    /// Default: a day.
    pub keep_for: Duration,
    /// The most bytes that are appended at once, and never more than half of `max_bytes`: a larger
    /// append would not fit next to the segment that is written. Default: 64 MiB.
    pub max_append_bytes: u64,
    /// Events that may wait to be written. Default: 100,000.
    pub waiting_events: usize,
    /// Bytes that may wait to be written. A single append that has more waits alone. Default:
    /// 64 MiB.
    pub waiting_bytes: u64,
    /// How long the source and id of an event are remembered. Zero: nothing is, and no event counts
    /// as repeated. Default: ten minutes.
    pub remember_for: Duration,
    /// Of how many events they are remembered; each takes some 60 bytes of memory. Default:
    /// 1,000,000.
    pub remember_events: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 * MIB,
            max_bytes: 10 * 1024 * MIB,
            keep_for: Duration::from_secs(24 * 60 * 60),
            max_append_bytes: 64 * MIB,
            waiting_events: 100_000,
            waiting_bytes: 64 * MIB,
            remember_for: Duration::from_secs(10 * 60),
            remember_events: 1_000_000,
        }
    }
}

impl LogOptions {
    /// The most bytes of events that always find room once the consumers are done with the existing
    /// ones: a segment of half the log's size, which is also the most that the current one has.
    pub(super) fn append_limit(&self) -> u64 {
        let around = (SEGMENT_HEADER + BLOCK_HEADER + ALIGNMENT) as u64;
        self.max_append_bytes.min(self.max_bytes / 2 - around)
    }

    pub(super) fn check(&self) -> Result<(), LogError> {
        let wrong = |what: String| Err(LogError::Options(what));
        if self.segment_bytes < LEAST_SEGMENT {
            return wrong(format!("segment_bytes is at least {LEAST_SEGMENT}"));
        }
        if self.max_bytes / 2 < self.segment_bytes {
            return wrong("max_bytes is at least two times segment_bytes".to_owned());
        }
        if self.max_append_bytes > MOST_APPEND {
            return wrong(format!("max_append_bytes is at most {MOST_APPEND}"));
        }
        if self.waiting_events == 0 || self.waiting_bytes == 0 || self.max_append_bytes == 0 {
            return wrong(
                "waiting_events, waiting_bytes and max_append_bytes are above 0".to_owned(),
            );
        }
        Ok(())
    }
}
