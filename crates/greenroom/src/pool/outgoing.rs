//! A message on its way into a queue.

use greenroom_queue::{
    offer::{Offer, Unpacked},
    permits::Refused,
};

use super::pool_payload::PoolPayload;
use crate::{Actor, Class, delivery::Extra};

/// A message that is to be queued. Its sender keeps it, and lends it out, until it is accepted.
pub(crate) struct Outgoing<M, R, E> {
    /// Present until the message is accepted.
    pub(crate) message: Option<M>,
    pub(crate) extra: Option<Box<Extra<R, E>>>,
    pub(crate) class: Class,
}

pub(crate) type OutgoingOf<A> =
    Outgoing<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

impl<M, R, E> Outgoing<M, R, E> {
    #[inline]
    pub(crate) fn new(message: M, extra: Option<Box<Extra<R, E>>>) -> Self {
        Self { message: Some(message), extra, class: Class::Normal }
    }

    /// Lends the whole message.
    pub(crate) fn lend(&mut self) -> Self {
        Self { message: self.message.take(), extra: self.extra.take(), class: self.class }
    }
}

/// Does more with a payload than queueing it.
pub(crate) type Borrower<'a, M, R, E> =
    dyn FnMut(&mut Outgoing<M, R, E>) -> Result<(), Refused> + 'a;

/// The value that a sender lends: the whole message with its extra parts or, for a plain send, only
/// the message, which costs nothing for unused parts.
pub(crate) trait LendOutgoing<M, R, E>: Offer<PoolPayload<M, R, E>> {
    /// Lends it as a payload, if more has to be done with it than queueing.
    fn lent(&mut self, to: &mut Borrower<'_, M, R, E>) -> Result<(), Refused>;
}

impl<M, R, E> Offer<PoolPayload<M, R, E>> for Outgoing<M, R, E> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn message(&self) -> Option<&M> {
        self.message.as_ref()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn unpack(&mut self) -> Option<Unpacked<PoolPayload<M, R, E>>> {
        Some((self.message.take()?, self.extra.take()))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_urgent(&self) -> bool {
        self.class.is_urgent()
    }
}

impl<M, R, E> LendOutgoing<M, R, E> for Outgoing<M, R, E> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn lent(&mut self, to: &mut Borrower<'_, M, R, E>) -> Result<(), Refused> {
        to(self)
    }
}

impl<M, R, E> LendOutgoing<M, R, E> for Option<M> {
    #[cold]
    fn lent(&mut self, to: &mut Borrower<'_, M, R, E>) -> Result<(), Refused> {
        let mut payload = Outgoing { message: self.take(), extra: None, class: Class::Normal };
        let done = to(&mut payload);
        *self = payload.message;
        done
    }
}
