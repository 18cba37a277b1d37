//! What is sent: numbers, from which their key and their class follow.

use crate::{Actor, Class, pool::outgoing::Outgoing};

/// Messages are numbers. Those below ten have no key; all others in the same ten have the same,
/// from [`MANY`] on all in the same hundred. From [`URGENT`] on they are urgent, and begin again
/// with the first key.
pub(crate) struct Numbers;

impl Actor for Numbers {
    type Message = u32;
    type Reply = ();
    type Error = ();
}

/// What tells the key of a number.
pub(crate) trait Keyed:
    From<u32> + std::hash::Hash + Eq + Copy + Send + Sync + 'static
{
    fn number(self) -> u32;
}

/// A key of a type that the product knows nothing of: it is compared under no lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(u32);

impl From<u32> for Key {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl Keyed for Key {
    fn number(self) -> u32 {
        self.0
    }
}

/// A plain key: it is compared where it lies.
impl Keyed for u32 {
    fn number(self) -> u32 {
        self
    }
}

pub(super) const NO_KEY: u32 = 0;

/// The first number of a key with many messages.
const MANY: u32 = 500;

/// The first urgent number.
pub(super) const URGENT: u32 = 900;

pub(super) fn key_of(number: u32) -> u32 {
    match number % URGENT {
        many @ MANY.. => many / 100,
        few => few / 10,
    }
}

pub(super) fn payload(number: u32) -> Outgoing<u32, (), ()> {
    let class = if number < URGENT { Class::Normal } else { Class::Urgent };
    Outgoing { message: Some(number), extra: None, class }
}
