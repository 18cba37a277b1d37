//! When to act on advice, so that a pool does not oscillate.

/// For how many periods in a row the figures must ask for the opposite of the last act.
const PATIENCE: u32 = 2;
/// How often that is doubled at most, by turns that follow one another: 32
/// periods, nearly three hours.
const MOST_DOUBLED: u32 = 4;

/// A change of the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Grow,
    Shrink,
}

/// The last act, and the requests of the figures since. Each period after an act is a whole one, so
/// one period is watched in full before the next act.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hysteresis {
    /// The last act.
    last: Option<Way>,
    /// What the figures ask for, and for how many periods in a row since the last act.
    asked: Option<Way>,
    periods: u32,
    /// Turns in a row: acts that were the opposite of the one before.
    turns: u32,
}

impl Hysteresis {
    /// The figures of a period ask for this. True if it is to be done.
    pub(super) fn follow(&mut self, way: Option<Way>) -> bool {
        self.periods = if way == self.asked { self.periods.saturating_add(1) } else { 1 };
        self.asked = way;
        let turns = self.last.is_some() && way != self.last;
        if way.is_none() || (turns && self.periods < PATIENCE << self.turns.min(MOST_DOUBLED)) {
            return false;
        }
        let turned = if turns { self.turns.saturating_add(1) } else { 0 };
        *self = Self { last: way, asked: None, periods: 0, turns: turned };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Hysteresis,
        Way::{self, Grow, Shrink},
    };

    /// In which of the periods something is done.
    fn done(asked: impl IntoIterator<Item = Option<Way>>) -> Vec<usize> {
        let mut hysteresis = Hysteresis::default();
        let followed = asked.into_iter().map(|way| hysteresis.follow(way));
        followed.enumerate().filter_map(|(period, done)| done.then_some(period)).collect()
    }

    #[test]
    fn h10_the_first_act_and_more_of_the_same_come_after_a_period_each() {
        assert_eq!(done([None, Some(Grow), Some(Grow), None, Some(Grow)]), [1, 2, 4]);
    }

    #[test]
    fn h10_the_opposite_is_done_after_two_whole_periods_in_a_row() {
        assert_eq!(done([Some(Grow), Some(Shrink), None, Some(Shrink), Some(Shrink)]), [0, 4]);
        assert_eq!(done([Some(Shrink), Some(Grow), Some(Grow), Some(Grow)]), [0, 2, 3]);
    }

    #[test]
    fn h10_figures_that_go_to_and_fro_never_have_the_opposite_done() {
        let to_and_fro = (0..100).map(|period| Some([Grow, Shrink][period % 2]));
        assert!(done(to_and_fro).into_iter().all(|period| period % 2 == 0));
    }

    #[test]
    fn h10_each_turn_takes_twice_as_long_as_the_one_before() {
        let mut hysteresis = Hysteresis::default();
        let mut way = Grow;
        let mut waited = Vec::new();
        for _ in 0..8 {
            waited.push((1..).find(|_: &u32| hysteresis.follow(Some(way))));
            way = if way == Grow { Shrink } else { Grow };
        }
        assert_eq!(waited, [1, 2, 4, 8, 16, 32, 32, 32].map(Some));
    }
}
