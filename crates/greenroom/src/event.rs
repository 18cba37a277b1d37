//! The events of a subscriber.

pub(crate) mod buffer;

use std::sync::Arc;

/// The input of a subscriber: an event, or how many it has missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event<E> {
    /// The published value.
    Item(E),
    /// This many events were published between the previous one and the next one, and the
    /// subscriber has missed them: they were overwritten before it read them, or its mailbox has
    /// refused them.
    Lagged(u64),
}

impl<E> Event<E> {
    /// The published value; none for a report of missed ones.
    pub fn into_item(self) -> Option<E> {
        match self {
            Self::Item(item) => Some(item),
            Self::Lagged(_) => None,
        }
    }
}

impl<E: Clone> Event<Arc<E>> {
    /// A copy, unless this is the last reference to it.
    pub(crate) fn into_owned(self) -> Event<E> {
        match self {
            Self::Item(item) => Event::Item(Arc::unwrap_or_clone(item)),
            Self::Lagged(missed) => Event::Lagged(missed),
        }
    }
}
