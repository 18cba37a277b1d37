//! Log lines about single events, at most one a second: a flood of bad events must not become a flood of lines.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct LogLimit(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    left_out: u64,
}

impl LogLimit {
    /// Whether to write a line now, and how many were held back since the last one.
    pub(crate) fn line(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        if state.last.is_some_and(|last| now.duration_since(last) < EVERY) {
            state.left_out += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_says_how_many_were_left_out() {
        let (limit, start) = (LogLimit::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(limit.line(at(0)), Some(0));
        assert_eq!(limit.line(at(10)), None);
        assert_eq!(limit.line(at(999)), None);
        assert_eq!(limit.line(at(1_000)), Some(2));
        assert_eq!(limit.line(at(2_500)), Some(0));
    }
}
