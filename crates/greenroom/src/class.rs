//! The classes of a mailbox.

/// Which line of a mailbox a message stands in. Signals (exits of others, orders to
/// leave) come before both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Class {
    /// Handled before normal messages, even if a worker is in the middle of a batch. After 64
    /// urgent messages in a row a worker takes one normal message.
    Urgent,
    /// Handled in the order of arrival.
    #[default]
    Normal,
}

/// Urgent messages that a worker takes in a row while normal ones wait (A03).
pub(crate) const URGENT_RUN: u32 = 64;
