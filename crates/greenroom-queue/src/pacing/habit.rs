//! Whether handlers usually wait for something.

/// How many more of a worker's handlers waited than did not, within bounds. It changes the pool's
/// habit only at either bound, so mixed handlers do not change the habit with each message.
#[derive(Debug, Default)]
pub(super) struct Habit(i8);

/// The habit is certain at this many more handlers that waited, or that did not.
const CERTAIN: i8 = 16;

impl Habit {
    /// Counts handlers, fewer than certainty takes, that waited as they usually do.
    #[inline]
    pub(super) fn confirm(&mut self, handlers: u32) {
        self.0 = self.0.saturating_add(handlers as i8).min(CERTAIN);
    }

    /// A handler has returned, and has waited or not. Returns the new habit if it contradicts the
    /// pool's present one.
    #[inline]
    pub(super) fn changes(&mut self, has_waited: bool, usual: bool) -> Option<bool> {
        let step = if has_waited { 1 } else { -1 };
        self.0 = (self.0 + step).clamp(-CERTAIN, CERTAIN);
        let is_certain = self.0.abs() == CERTAIN && has_waited == (self.0 > 0);
        (is_certain && has_waited != usual).then_some(has_waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_changes_the_mind_of_the_pool_once_it_is_certain() {
        let (mut habit, mut usual) = (Habit::default(), false);
        let mut after = |has_waited, times| {
            for _ in 0..times {
                usual = habit.changes(has_waited, usual).unwrap_or(usual);
            }
            usual
        };
        assert!(!after(true, 15));
        assert!(after(true, 100));
        assert!(after(false, 31));
        assert!(after(true, 31));
        assert!(!after(false, 32));
    }

    #[test]
    fn handlers_that_wait_every_other_time_change_nothing_however_they_are_told() {
        for usual in [false, true] {
            let mut habit = Habit::default();
            assert!((0..1_000).all(|_| {
                habit.confirm(1);
                habit.changes(false, usual).is_none()
            }));
        }
        let mut habit = Habit::default();
        (0..100).for_each(|_| habit.confirm(15));
        assert_eq!(habit.changes(true, false), Some(true));
    }

    #[test]
    fn one_in_ten_that_waits_is_not_usual_whoever_said_so() {
        let mut habit = Habit::default();
        assert!((0..1_000).all(|n| habit.changes(n % 10 == 0, false).is_none()));
        assert_eq!((0..100).find_map(|n| habit.changes(n % 10 == 0, true)), Some(false));
    }
}
