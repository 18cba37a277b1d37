//! What a subscriber gets.

/// The input of a subscriber: an event, or how many it has missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event<E> {
    /// The published value.
    Item(E),
    /// This many events were published between the one before and the one after
    /// this, and did not fit in.
    Lagged(u64),
}

impl<E> Event<E> {
    /// The published value; none for the news of missed ones.
    pub fn into_item(self) -> Option<E> {
        match self {
            Self::Item(item) => Some(item),
            Self::Lagged(_) => None,
        }
    }
}
