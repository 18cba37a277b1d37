//! The classes of a mailbox.

/// The line of a mailbox that a message waits in. Signals (exits of others, orders to leave) come
/// before both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Class {
    /// Handled before normal messages, even if a worker is in the middle of a batch. After 64
    /// urgent messages in a row a worker takes one normal message.
    Urgent,
    /// Handled in the order of arrival.
    #[default]
    Normal,
}

impl Class {
    #[inline]
    pub(crate) const fn of(urgent: bool) -> Self {
        if urgent { Self::Urgent } else { Self::Normal }
    }

    #[inline]
    pub(crate) const fn is_urgent(self) -> bool {
        matches!(self, Self::Urgent)
    }
}
