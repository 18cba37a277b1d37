//! Forwarding: a delivery is handed to another address whole.
//!
//! ```text
//! caller ──call──▶ first ──forward──▶ second ──reply──┐
//!    ▲                                                │
//!    └────────────────────────────────────────────────┘
//! ```
//!
//! Sender, reply port, class, deadline, trace and the count of attempts go along. The first handler
//! has finished with the delivery, and the second one's reply goes straight to the caller. The
//! first ledger counts it as handled, the second as accepted.

use greenroom_queue::urgency::Urgency;
use tokio::time::Instant;

use super::{Delivery, Marks, Waiter};
use crate::{
    Address, NotAccepted,
    pool::{Outgoing, Refusals},
};

/// Why a delivery was not forwarded. It is still complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardError {
    /// The other address did not accept it.
    #[error("not forwarded: {0}")]
    NotAccepted(NotAccepted),
    /// Its message has been taken out.
    #[error("not forwarded: the message has been taken out of the delivery")]
    Empty,
}

impl<M, R, E> Delivery<M, R, E> {
    /// Passes the delivery to another address, waiting for room there. The handler then returns
    /// [`Answer::Deferred`](crate::Answer::Deferred); an error or a panic after this changes
    /// nothing for the message.
    ///
    /// # Errors
    /// Why it was not accepted there; it is then still here, complete, unless the other pool
    /// drops it.
    ///
    /// # Cancel safety
    /// A dropped future has either forwarded the delivery or left it as it was.
    pub async fn forward(&mut self, to: &Address<M, R, E>) -> Result<(), ForwardError> {
        if self.message.is_none() {
            return Err(ForwardError::Empty);
        }
        let mut lent = LentDelivery::new(self);
        if let Err(refused) =
            to.vtable.try_push(&mut lent.payload, to.place(), Urgency::CanStepAside)
        {
            let pushed = to.wait_and_push(&mut lent.payload, refused).await;
            pushed.map_err(|why| {
                to.vtable.count_rejected();
                ForwardError::NotAccepted(why)
            })?;
        }
        lent.forwarded();
        Ok(())
    }

    /// Like `forward`, but waits for room even if the other pool does not let its senders wait.
    pub(crate) async fn hand_on(&mut self, to: &Address<M, R, E>) -> Result<(), NotAccepted> {
        let mut lent = LentDelivery::new(self);
        to.vtable.push_waiting(&mut lent.payload, to.place()).await?;
        lent.forwarded();
        Ok(())
    }
}

/// The contents of a delivery, on their way to another address. If the message is not accepted
/// there, they go back.
struct LentDelivery<'a, M, R, E> {
    delivery: &'a mut Delivery<M, R, E>,
    payload: Outgoing<M, R, E>,
    /// When it was accepted here, if known: the other address accepts it again.
    accepted: Option<Instant>,
    /// Workers here that do not take it: the other address has different ones.
    refusals: Option<Box<Refusals>>,
}

impl<'a, M, R, E> LentDelivery<'a, M, R, E> {
    fn new(delivery: &'a mut Delivery<M, R, E>) -> Self {
        // A caller that waits for the reply then waits for the other pool's.
        delivery.open_port();
        let (message, mut extra) = (delivery.message.take(), delivery.extra.take());
        let (accepted, refusals) = extra.as_mut().map_or((None, None), |extra| {
            extra.waiter = Waiter::Other;
            (extra.accepted.take(), extra.refusals.take())
        });
        let payload = Outgoing { message, extra, class: delivery.class };
        Self { delivery, payload, accepted, refusals }
    }

    fn forwarded(self) {
        self.delivery.marks.add(Marks::FORWARDED);
    }
}

impl<M, R, E> Drop for LentDelivery<'_, M, R, E> {
    fn drop(&mut self) {
        self.delivery.message = self.payload.message.take();
        self.delivery.extra = self.payload.extra.take();
        if let Some(extra) = &mut self.delivery.extra {
            extra.accepted = self.accepted;
            extra.refusals = self.refusals.take();
            // It belongs to the other pool's bytes, if it waited there.
            extra.claim = None;
        }
    }
}
