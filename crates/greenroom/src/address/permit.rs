//! Room for one message.

use greenroom_queue::permits::Closed;

use crate::{
    NotAccepted, SendError,
    address::{
        Address,
        calling::Calling,
        parcels::{mark_own_call, refusal_of},
    },
    delivery::Extra,
    pool::{handoff::reentrancy::is_at_work, outgoing::Outgoing},
    reply,
};

/// Room for one message, together with the right to send it. Dropped unused, the room goes to the
/// next waiting sender.
///
/// It counts as an address: a pool whose last address has been dropped lives until its
/// permits are gone.
#[must_use = "a permit that is dropped gives its room to the next sender"]
pub struct Permit<M, R, E> {
    /// A handle of the sender that reserved, so that messages sent through it queue in order with
    /// the sender's others.
    address: Address<M, R, E>,
    /// Whether the pool has taken over the permit.
    used: bool,
}

impl<M, R, E> Address<M, R, E> {
    /// Waits for room for one message and keeps it until the permit is used or dropped. Neither the
    /// permit nor the future borrows the address, so that they fit into a field or a task.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Echo; impl Actor for Echo { type Message = u32; type Reply = u32; type Error = ();
    /// # async fn handle(&mut self, m: u32, _: &mut Context<Self>) -> Result<u32, ()> { Ok(m) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Echo).spawn().await?;
    /// let permit = pool.reserve().await?;
    /// let answer = tokio::spawn(permit.call(7));
    /// assert_eq!(answer.await?, Ok(7));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the pool has stopped or has no workers left.
    ///
    /// # Cancel safety
    /// A dropped future has reserved nothing.
    pub fn reserve(
        &self,
    ) -> impl Future<Output = Result<Permit<M, R, E>, NotAccepted>> + Send + use<M, R, E> {
        let address = self.same_sender();
        async move {
            match address.vtable.permit().await {
                Ok(()) => Ok(Permit { address, used: false }),
                Err(Closed) => Err(address.vtable.why_closed()),
            }
        }
    }

    /// Room for one message, if there is some now.
    ///
    /// # Errors
    /// Why there is none.
    pub fn try_reserve(&self) -> Result<Permit<M, R, E>, NotAccepted> {
        match self.vtable.try_permit() {
            Ok(()) => Ok(Permit { address: self.same_sender(), used: false }),
            Err(refused) => Err(self.why(refused)),
        }
    }

    /// Another handle of the same sender. A clone would be another sender, with another line for
    /// its messages.
    pub(super) fn same_sender(&self) -> Self {
        self.vtable.handle_made();
        Self::at(self.vtable.clone(), self.place())
    }
}

impl<M, R, E> Permit<M, R, E> {
    /// Queues a message in the reserved room.
    ///
    /// # Errors
    /// The message, if the pool was stopped after the permit was taken, or if its key may have no
    /// more messages ([`max_per_key`](crate::PoolBuilder::max_per_key)): the room was taken before
    /// the key was known.
    ///
    /// # Panics
    /// If the key function of the pool panics; nothing has been accepted then.
    pub fn send(mut self, message: M) -> Result<(), SendError<M>> {
        let mut payload = Outgoing::new(message, None);
        let pushed = self.push(&mut payload);
        pushed.map_err(|why| self.address.refuse(payload, why))
    }

    /// Queues a message in the reserved room, at once; the future waits for the reply.
    ///
    /// If a worker of the pool makes the call, and a policy whose choice is binding chooses that
    /// very worker, the call is refused with
    /// [`CallError::WouldDeadlock`](crate::CallError::WouldDeadlock) at once.
    ///
    /// # Panics
    /// If the key function of the pool panics; nothing has been accepted then.
    pub fn call(mut self, message: M) -> Calling<R, E, M> {
        let (port, reply) = reply::channel();
        let mut payload = Outgoing::new(message, Some(Extra::new(Some(port))));
        let own = is_at_work().then(|| self.address.vtable.clone().own_call(&payload)).flatten();
        if own.is_some() {
            mark_own_call(&mut payload);
        }
        match self.push(&mut payload) {
            Ok(()) => Calling::waiting(reply, own),
            Err(why) => {
                self.address.vtable.count_rejected();
                Calling::refused(refusal_of(&mut payload, why))
            }
        }
    }

    /// The pool uses the permit or gives it back, even if the key function panics.
    fn push(&mut self, payload: &mut Outgoing<M, R, E>) -> Result<(), NotAccepted> {
        self.used = true;
        self.address.vtable.push_permitted(payload, self.address.place())
    }
}

impl<M, R, E> Drop for Permit<M, R, E> {
    fn drop(&mut self) {
        if !self.used {
            self.address.vtable.give_permit();
        }
    }
}

impl_debug!([M, R, E] Permit<M, R, E>, |this| address: this.address);

#[cfg(test)]
mod tests {
    use crate::{Actor, Context, Pool};

    struct Idle;

    impl Actor for Idle {
        type Message = ();
        type Reply = ();
        type Error = ();

        async fn handle(&mut self, (): (), _cx: &mut Context<Self>) -> Result<(), ()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn p29_a_permit_is_of_the_same_sender() {
        let pool =
            Pool::new(|_| Idle).workers(2).spawn().await.unwrap_or_else(|error| panic!("{error}"));
        let address = pool.address();
        let permits = [address.try_reserve(), address.reserve().await];
        let senders = permits.map(|permit| permit.map(|permit| permit.address.place()));
        assert_eq!(senders, [Ok(address.place()), Ok(address.place())]);
        let begun = pool.address();
        let others = [begun.clone(), begun.downgrade().upgrade().unwrap_or_else(|| begun.clone())];
        assert!(others[0].place() != begun.place(), "a clone is another sender");
        assert_eq!(others[1].place(), begun.place(), "also where nothing had been sent");
    }
}
