//! The events between two decisions.

use std::time::Duration;

/// The fewest messages from which a latency is concluded; the spread of the mean
/// of fewer is too wide.
pub(super) const LEAST_SAMPLES: u64 = 10;

/// The outcome of a message, as evidence of the load of the service behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It was handled, and its time counts.
    Done,
    /// It was refused for overload (429, 503, a full queue). Its time says nothing: refusals are
    /// fast.
    Rejected,
    /// It took too long.
    TimedOut,
    /// It says nothing: it was itself invalid, or was dropped.
    Ignored,
}

/// A window while it is filled.
#[derive(Debug, Clone)]
pub(super) struct Window {
    /// `None` before the first message has ended.
    began: Option<Duration>,
    /// The total time of messages that were done.
    seconds: f64,
    done: u64,
    failed: u64,
    /// The most that were in flight at a time.
    peak: usize,
    /// The sum of the messages in flight at each end.
    in_flight: u64,
}

/// The result of a full window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Summary {
    /// The mean over messages that were done, in seconds; `None` if too few were.
    pub(super) latency: Option<f64>,
    /// The share of messages that were rejected or timed out.
    pub(super) failed: f64,
    /// The most that were in flight at a time.
    pub(super) peak: f64,
    /// The average number in flight, seen from the messages that ended.
    pub(super) in_flight: f64,
}

impl Window {
    /// A window with this many in flight from the start.
    pub(super) fn new(began: Option<Duration>, in_flight: usize) -> Self {
        Self { began, seconds: 0.0, done: 0, failed: 0, peak: in_flight, in_flight: 0 }
    }

    pub(super) fn start(&mut self, in_flight: usize) {
        self.peak = self.peak.max(in_flight);
    }

    /// Counts the end of a message; `in_flight` messages were in flight with it.
    pub(super) fn end(
        &mut self,
        now: Duration,
        latency: Duration,
        outcome: Outcome,
        in_flight: usize,
    ) {
        match outcome {
            Outcome::Done => {
                self.done += 1;
                self.seconds += latency.as_secs_f64();
            }
            Outcome::Rejected | Outcome::TimedOut => self.failed += 1,
            Outcome::Ignored => return,
        }
        self.began.get_or_insert(now);
        self.in_flight += in_flight as u64;
    }

    /// The result of the window, once it has lasted its time and enough messages have ended in it.
    pub(super) fn close(&self, now: Duration, length: Duration, least: u64) -> Option<Summary> {
        let ended = self.done + self.failed;
        let lasted = self.began.is_some_and(|began| now.saturating_sub(began) >= length);
        (lasted && ended >= least).then(|| Summary {
            latency: (self.done >= LEAST_SAMPLES).then(|| self.seconds / self.done as f64),
            failed: self.failed as f64 / ended as f64,
            peak: self.peak as f64,
            in_flight: self.in_flight as f64 / ended as f64,
        })
    }
}

impl Summary {
    /// True if the limit was used up at some time. Otherwise demand was the bound, or the keys
    /// were, and the window does not show that more would work (for congestion windows: RFC 7661).
    pub(super) fn reached(&self, limit: f64) -> bool {
        self.peak >= limit.floor()
    }

    /// True if so few were in flight that the limit cannot be the cause of the latency.
    pub(super) fn is_well_under(&self, limit: f64) -> bool {
        self.peak < limit / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn p24_a_window_closes_when_it_has_lasted_and_holds_enough() {
        let mut window = Window::new(None, 0);
        let close = |window: &Window, at| window.close(at * MILLI, 5 * MILLI, 10);
        (0..9).for_each(|_| window.end(MILLI, MILLI, Outcome::Done, 4));
        assert_eq!(close(&window, 10), None, "nine are too few");
        window.end(2 * MILLI, 11 * MILLI, Outcome::Done, 4);
        assert_eq!(close(&window, 5), None, "four milliseconds are too short");
        window.start(7);
        let latency = Some(0.002);
        let expected = Summary { latency, failed: 0.0, peak: 7.0, in_flight: 4.0 };
        assert_eq!(close(&window, 6), Some(expected));
    }

    #[test]
    fn p24_the_time_of_failures_does_not_count_and_ignored_messages_do_not_at_all() {
        let mut window = Window::new(None, 2);
        (0..10).for_each(|_| window.end(MILLI, 500 * MILLI, Outcome::Done, 2));
        (0..9).for_each(|_| window.end(MILLI, MILLI, Outcome::Rejected, 2));
        (0..50).for_each(|_| window.end(MILLI, MILLI, Outcome::Ignored, 2));
        assert_eq!(window.close(9 * MILLI, MILLI, 20), None);
        window.end(MILLI, 99 * MILLI, Outcome::TimedOut, 2);
        let latency = Some(0.5);
        let expected = Summary { latency, failed: 0.5, peak: 2.0, in_flight: 2.0 };
        assert_eq!(window.close(9 * MILLI, MILLI, 20), Some(expected));
    }

    #[test]
    fn p24_few_samples_say_whether_they_failed_but_not_how_long_it_takes() {
        let mut window = Window::new(None, 1);
        (0..2).for_each(|_| window.end(MILLI, MILLI, Outcome::Done, 1));
        let expected = Summary { latency: None, failed: 0.0, peak: 1.0, in_flight: 1.0 };
        assert_eq!(window.close(9 * MILLI, MILLI, 2), Some(expected));
    }
}
