//! A message on its way into a queue.

use crate::{Actor, Class, delivery::Extra};

/// A message that is to be queued. It stays with its sender, who lends it out, until it is accepted: so it is moved once,
/// into its place in the queue, and is still there where it was refused.
pub(crate) struct Parcel<M, R, E> {
    /// Present until the message is accepted.
    pub(crate) message: Option<M>,
    pub(crate) extra: Option<Box<Extra<R, E>>>,
    pub(crate) class: Class,
}

pub(crate) type ParcelOf<A> =
    Parcel<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

impl<M, R, E> Parcel<M, R, E> {
    #[inline]
    pub(crate) fn new(message: M, extra: Option<Box<Extra<R, E>>>) -> Self {
        Self { message: Some(message), extra, class: Class::Normal }
    }

    /// Everything that is in it.
    pub(crate) fn lend(&mut self) -> Self {
        Self { message: self.message.take(), extra: self.extra.take(), class: self.class }
    }
}
