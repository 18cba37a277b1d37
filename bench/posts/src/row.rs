//! What one side came to.

use std::{fmt, time::Duration};

/// What one side came to.
pub struct Row {
    pub name: &'static str,
    pub senders: usize,
    pub batch: usize,
    pub is_retained: bool,
    /// A second.
    pub events: f64,
    pub p99: Duration,
    /// The longest append, or post.
    pub longest: Duration,
    /// Between two answers, whoever got them.
    pub pause: Duration,
    /// A second.
    pub syncs: f64,
    /// Segments that were removed.
    pub removed: u64,
    /// Processor time of an event in microseconds: of the senders, the server, the log's thread.
    pub processor: [f64; 3],
}

impl Row {
    pub const HEADINGS: &str = "events  side            senders   events/s      p99   longest     pause  syncs/s  a sync  \
                                removed  cpu of an event: senders, server, log";

    /// Events of a sync.
    pub fn group(&self) -> f64 {
        self.events / self.syncs
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p99, longest, pause] =
            [self.p99, self.longest, self.pause].map(|time| time.as_secs_f64() * 1e3);
        let [senders, server, log] = self.processor;
        let side = format!("{}{}", self.name, if self.is_retained { ", retained" } else { "" });
        write!(
            f,
            "{:6}  {side:14}  {:7}  {:9.0}  {p99:4.1} ms  {longest:5.1} ms  {pause:5.1} ms  {:7.0}  {:6.0}  \
             {:7}  {senders:5.1} + {server:5.1} + {log:5.1} µs",
            self.batch,
            self.senders,
            self.events,
            self.syncs,
            self.group(),
            self.removed
        )
    }
}
