//! What a pool keeps of its advisor.

use crate::control::advisor::Advice;

/// What the advisor of a pool has said, and which one it is.
#[derive(Debug, Default)]
pub(crate) struct Advising {
    /// The last advice of the advisor that the pool has now.
    advice: Option<Box<Advice>>,
    /// How often the pool was given another advisor, or none. A task of an earlier one ends at its
    /// next look, and says nothing.
    turn: u64,
}

impl Advising {
    /// The last advice.
    pub(crate) fn advice(&self) -> Option<Advice> {
        self.advice.as_deref().copied()
    }

    /// Ends the turn of all earlier advisors. Returns the number of the new turn.
    pub(super) fn next_turn(&mut self) -> u64 {
        (self.turn, self.advice) = (self.turn + 1, None);
        self.turn
    }

    pub(super) fn is_turn(&self, turn: u64) -> bool {
        self.turn == turn
    }

    /// Keeps the advice. Returns the advice before it.
    pub(super) fn take_down(&mut self, advice: &Advice) -> Option<Box<Advice>> {
        self.advice.replace(Box::new(*advice))
    }
}
