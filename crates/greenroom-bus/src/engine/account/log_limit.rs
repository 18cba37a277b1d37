//! Log lines about single events, at most one a second, or a few: a flood of bad events must not
//! become a flood of lines.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct LogLimit(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    /// Lines since then.
    written: u32,
    left_out: u64,
}

impl LogLimit {
    /// Whether to write a line now, and how many were held back since the last one.
    pub(crate) fn line(&self, now: Instant) -> Option<u64> {
        self.one_of(1, now)
    }

    /// Like `line`, for messages that may come up to `most` times a second.
    pub(crate) fn one_of(&self, most: u32, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        if state.last.is_none_or(|last| now.duration_since(last) >= EVERY) {
            (state.last, state.written) = (Some(now), 0);
        } else if state.written >= most {
            state.left_out += 1;
            return None;
        }
        state.written += 1;
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

    #[test]
    fn a_few_lines_a_second_say_how_many_were_left_out() {
        let (limit, start) = (LogLimit::default(), Instant::now());
        let at = |ms| limit.one_of(2, start + Duration::from_millis(ms));
        assert_eq!([at(0), at(1), at(2), at(999)], [Some(0), Some(0), None, None]);
        assert_eq!([at(1_000), at(1_001), at(1_002)], [Some(2), Some(0), None]);
    }
}
