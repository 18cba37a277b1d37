//! The highest of the values that a figure had lately.

use std::{collections::VecDeque, time::Duration};

/// The highest value within a window of time, in constant time on average for each value.
#[derive(Debug, Clone, Default)]
pub(super) struct Peaks {
    /// Times and values, falling from front to back, so that the front is the peak. A value that is
    /// not higher than a later one can never be the peak again and is not kept.
    falling: VecDeque<(Duration, f64)>,
}

impl Peaks {
    /// Adds a value and forgets those older than `window`.
    pub(super) fn add(&mut self, at: Duration, value: f64, window: Duration) {
        while self.falling.back().is_some_and(|(_, last)| *last <= value) {
            self.falling.pop_back();
        }
        self.falling.push_back((at, value));
        while self.falling.front().is_some_and(|(then, _)| at.saturating_sub(*then) > window) {
            self.falling.pop_front();
        }
    }

    /// The highest value within the window; 0 before the first one.
    pub(super) fn peak(&self) -> f64 {
        self.falling.front().map_or(0.0, |(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW: u64 = 10;

    #[test]
    fn h10_the_peak_before_the_first_value_is_nothing() {
        assert_eq!(Peaks::default().peak(), 0.0);
    }

    proptest! {
        #[test]
        fn p23_h10_the_peak_is_the_highest_value_of_the_window(
            values in prop::collection::vec((0..4_u64, 0..20_u32), 1..100),
        ) {
            let (mut peaks, mut at, mut seen) = (Peaks::default(), 0, Vec::new());
            for (after, value) in values {
                at += after;
                seen.push((at, f64::from(value)));
                peaks.add(Duration::from_secs(at), f64::from(value), Duration::from_secs(WINDOW));
                let lately = seen.iter().filter(|(then, _)| at - then <= WINDOW);
                let highest = lately.map(|(_, value)| *value).fold(0.0, f64::max);
                prop_assert_eq!(peaks.peak(), highest);
            }
        }
    }
}
