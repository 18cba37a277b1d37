//! The pace of a worker: when it continues, lets others have a turn, or searches.

mod habit;
mod patience;
pub mod turn;

pub use patience::Patience;

use super::wake::Wake;
use habit::Habit;
use turn::Turn;

/// The pace of a worker: when it continues, lets others have a turn, or searches. It knows no
/// queue: the driver reports the events to it.
pub struct Pacing {
    /// The number of messages handled in a row since the worker last found nothing.
    in_a_row: u32,
    /// The last message was a call.
    by_call: bool,
    /// The last handler waited.
    has_waited: bool,
    turn: Turn,
    patience: Patience,
    habit: Habit,
}

impl Pacing {
    /// The pace of a worker that has handled nothing yet.
    pub fn new(patience: Patience) -> Self {
        Self {
            in_a_row: 0,
            by_call: false,
            has_waited: false,
            turn: Turn::default(),
            patience,
            habit: Habit::default(),
        }
    }

    /// True when other tasks should have a turn.
    #[inline]
    pub fn turn_is_over(&mut self, wake: &Wake) -> bool {
        self.turn.is_over(wake)
    }

    /// The worker's turn begins: other tasks have had theirs.
    #[inline]
    pub fn begin_turn(&mut self) {
        self.turn.begin(0);
    }

    /// The worker has looked for a message.
    #[inline]
    pub fn looked(&mut self) {
        self.turn.count(1);
    }

    /// A message is in hand.
    #[inline]
    pub fn found(&mut self, by_call: bool) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.by_call = by_call;
    }

    /// The message in hand and those behind it in the same run have been attempted, `attempts` in
    /// total. None of their handlers waited, except perhaps the last. Returns the new habit if it
    /// has changed: whether handlers usually wait.
    #[inline]
    pub fn attempted(&mut self, attempts: u32, has_waited: bool, usual: bool) -> Option<bool> {
        self.in_a_row = self.in_a_row.saturating_add(attempts - 1);
        self.turn.count(attempts - 1);
        self.ended(has_waited, usual)
    }

    /// Like `attempted`, for a run in which this many handlers before the last one all waited.
    #[inline]
    pub fn attempted_after(&mut self, waits: u32, has_waited: bool, usual: bool) -> Option<bool> {
        self.in_a_row = self.in_a_row.saturating_add(waits);
        self.turn.begin(2);
        self.habit.confirm(waits);
        self.ended(has_waited, usual)
    }

    #[inline]
    fn ended(&mut self, has_waited: bool, usual: bool) -> Option<bool> {
        self.has_waited = has_waited;
        if has_waited {
            // While it waited, others had their turn.
            self.turn.begin(1);
        }
        self.habit.changes(has_waited, usual)
    }

    /// True if the last handler waited.
    #[inline]
    pub fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// True if the worker should step aside once before it looks elsewhere.
    pub fn searches(&mut self) -> bool {
        self.patience.searches_after(self.in_a_row, self.by_call)
    }

    /// The worker has stepped aside and looked elsewhere.
    pub fn has_searched(&mut self, found: bool) {
        self.patience.found(found);
    }

    /// The worker looks elsewhere.
    pub fn begin_row(&mut self) {
        self.in_a_row = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(messages: u32) -> Pacing {
        let mut pacing = Pacing::new(Patience::new(false));
        (0..messages).for_each(|_| {
            pacing.looked();
            pacing.found(false);
        });
        pacing
    }

    #[test]
    fn messages_of_a_run_count_as_if_each_had_been_looked_for() {
        let wake = Wake::new(2, 2);
        let mut pacing = after(1);
        assert!(pacing.attempted(64, false, false).is_none() && !pacing.turn_is_over(&wake));
        pacing.looked();
        assert!(pacing.turn_is_over(&wake));
        pacing.begin_turn();
        assert!(!pacing.turn_is_over(&wake));
    }

    #[test]
    fn who_has_waited_begins_another_turn() {
        let wake = Wake::new(2, 2);
        let mut pacing = after(100);
        assert!(pacing.turn_is_over(&wake));
        assert!(pacing.attempted(1, true, false).is_none(), "one handler is no habit");
        assert!(!pacing.turn_is_over(&wake) && pacing.has_waited());
    }

    #[test]
    fn one_of_a_run_that_has_waited_begins_another_turn_for_those_behind_it() {
        let wake = Wake::new(2, 2);
        let mut pacing = after(100);
        assert!(pacing.turn_is_over(&wake));
        assert!((0..100).all(|_| pacing.attempted_after(1, false, true).is_none()), "every other");
        assert!(!pacing.turn_is_over(&wake) && !pacing.has_waited());
        assert_eq!(after(1).attempted_after(15, true, false), Some(true));
    }

    #[test]
    fn who_looks_elsewhere_begins_another_row() {
        let mut pacing = after(3);
        assert!(pacing.searches());
        pacing.begin_row();
        assert!(!pacing.searches());
    }
}
