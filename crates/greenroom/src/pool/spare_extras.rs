//! Boxes for what a call carries besides its message, used again: where many calls are in flight, to allocate and to free one for each,
//! mostly on different threads, takes a tenth of all that a call takes.
//!
//! A worker keeps the boxes of the calls that it has answered, and leaves them in the shard at the end of a run, where senders find
//! them under the lock that they take anyway. They stay there, as the blocks of the queue do.

use crate::{ReplyPort, delivery::Extra};

/// As many as there are messages in a run: what comes out of one can go into the next.
pub(crate) const SPARES_OF_A_SHARD: usize = 64;

/// As `SPARES_OF_A_SHARD`, where a shard is all that an actor has, of which there may be very many.
pub(crate) const SPARES_OF_ONE: usize = 4;

/// Boxes of which each is as good as new. Few of them.
pub(crate) struct SpareExtras<R, E>(
    #[expect(clippy::vec_box, reason = "the boxes are what is kept")] Vec<Box<Extra<R, E>>>,
);

impl<R, E> SpareExtras<R, E> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// A box for a plain call.
    #[inline]
    pub(crate) fn wrap(&mut self, port: ReplyPort<R, E>) -> Box<Extra<R, E>> {
        match self.0.pop() {
            Some(mut extra) => {
                extra.port = Some(port);
                extra
            }
            None => Extra::new(Some(port)),
        }
    }

    /// Keeps a box whose call is answered, if nothing else was known of that.
    #[inline]
    pub(crate) fn keep(&mut self, extra: Box<Extra<R, E>>) {
        if self.0.len() < SPARES_OF_A_SHARD && extra.is_blank() {
            self.0.push(extra);
        }
    }

    /// Takes what another has, as far as there is room for `most`.
    pub(crate) fn take_over(&mut self, other: &mut Self, most: usize) {
        let room = most.saturating_sub(self.0.len());
        self.0.extend(other.0.drain(..room.min(other.0.len())));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply;

    type Spares = SpareExtras<u64, ()>;

    fn of_answered_call() -> Box<Extra<u64, ()>> {
        Extra::new(None)
    }

    #[test]
    fn a_box_is_used_again_and_answers_its_new_call() {
        let mut spares = Spares::new();
        let extra = of_answered_call();
        let place = std::ptr::from_ref(&*extra);
        spares.keep(extra);
        let (port, mut reply) = reply::channel();
        let extra = spares.wrap(port);
        assert!(std::ptr::eq(&*extra, place) && spares.is_empty());
        assert_eq!(extra.port.unwrap().reply(7), Ok(()));
        assert_eq!(reply.try_recv(), Ok(Ok(7)));
    }

    #[test]
    fn a_box_in_which_something_is_left_is_not_kept() {
        let leaves: [fn(&mut Extra<u64, ()>); 5] = [
            |extra| extra.port = Some(reply::channel().0),
            |extra| extra.attempts = 1,
            |extra| extra.for_good = true,
            |extra| extra.about = Some(Box::default()),
            |extra| extra.accepted = Some(tokio::time::Instant::now()),
        ];
        let mut spares = Spares::new();
        for leave in leaves {
            let mut extra = of_answered_call();
            leave(&mut extra);
            spares.keep(extra);
        }
        assert!(spares.is_empty());
    }

    #[test]
    fn few_boxes_are_kept() {
        let (mut spares, mut others) = (Spares::new(), Spares::new());
        (0..100).for_each(|_| spares.keep(of_answered_call()));
        assert_eq!(spares.0.len(), SPARES_OF_A_SHARD);
        (0..10).for_each(|_| others.keep(of_answered_call()));
        spares.take_over(&mut others, SPARES_OF_A_SHARD);
        assert_eq!((spares.0.len(), others.0.len()), (SPARES_OF_A_SHARD, 10));
        spares.0.truncate(SPARES_OF_A_SHARD - 4);
        spares.take_over(&mut others, SPARES_OF_A_SHARD);
        assert_eq!((spares.0.len(), others.0.len()), (SPARES_OF_A_SHARD, 6));
        spares.take_over(&mut others, SPARES_OF_ONE);
        assert_eq!(others.0.len(), 6, "where there are more than it may have, none is taken");
    }
}
