//! Those who send: to a shard, behind a key, to one worker.

use std::{
    marker::PhantomData,
    pin::pin,
    sync::{Arc, atomic::AtomicU32},
    task::Poll,
};

use greenroom_queue::{
    permits::{Closed, Refused},
    urgency::Urgency,
};

use super::{
    PoolOf,
    message::{Keyed, Numbers, payload},
};
use crate::pool::core::mail::push_to;
use crate::pool::core::{
    push::{push_in_line, take_and_push},
    room::push_in_its_turn,
};
use crate::{
    ReplyPort,
    checker::{JoinHandle, block_on, spawn, yield_now},
    delivery::Extra,
    life::Signal,
    pool::{membership::mailbox::Mailbox, outgoing::Outgoing},
};

impl<K: Keyed> PoolOf<K> {
    /// Takes a permit and queues a message in this shard, or says why not. Steps aside where it is
    /// to.
    fn push(&self, shard: usize, payload: &mut Outgoing<u32, (), ()>) -> Result<(), Refused> {
        loop {
            let key = self.core.key(payload);
            match take_and_push(&self.core, payload, key, shard as u32, Urgency::CanStepAside) {
                Err(Refused::NotNow) => yield_now(),
                pushed => return pushed,
            }
        }
    }

    /// Sends a message to this shard, and waits for room where there is none.
    pub(crate) fn send(&self, shard: usize, number: u32) -> Result<(), Closed> {
        let mut payload = payload(number);
        match self.push(shard, &mut payload) {
            Ok(()) => Ok(()),
            Err(Refused::Full) => {
                block_on(self.core.await_permit())?;
                let key = self.core.key(&payload);
                push_in_line(&self.core, shard, &mut payload, key, false).map_err(|_| Closed)
            }
            Err(_) => Err(Closed),
        }
    }

    /// Sends a message, and waits for room in the pool and behind its key: the steps of the
    /// product's `push_waiting`.
    pub(crate) fn send_in_turn(&self, number: u32) -> Result<(), Refused> {
        let mut payload = payload(number);
        let sent = match self.push(0, &mut payload) {
            Err(Refused::Full | Refused::KeyFull) => {
                block_on(push_in_its_turn(&self.core, &mut payload, 0))
            }
            sent => sent,
        };
        self.check_bounds();
        sent
    }

    /// As `send_in_turn`, but goes away if it has to wait more often than this. True if the message
    /// was queued.
    pub(crate) fn send_with_patience(&self, number: u32, waits: usize) -> bool {
        let mut payload = payload(number);
        let mut polls = 0;
        block_on(async {
            let mut send = pin!(push_in_its_turn(&self.core, &mut payload, 0));
            std::future::poll_fn(|task| {
                polls += 1;
                match send.as_mut().poll(task) {
                    Poll::Ready(sent) => Poll::Ready(sent.is_ok()),
                    Poll::Pending if polls > waits => Poll::Ready(false),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await
        })
    }

    /// Sends a message where there is room now.
    pub(crate) fn try_send(&self, number: u32) -> Result<(), Refused> {
        let sent = self.push(0, &mut payload(number));
        self.check_bounds();
        sent
    }

    /// As `try_send`, for somebody who waits for the reply. It is counted where that says that the
    /// key is parked.
    pub(crate) fn try_call(&self, number: u32, told: &Arc<AtomicU32>) -> Result<(), Refused> {
        let mut payload = payload(number);
        payload.extra = Some(Extra::new(Some(ReplyPort::new(told))));
        self.push(0, &mut payload)
    }

    pub(crate) fn sender(
        self: &Arc<Self>,
        shard: usize,
        numbers: &'static [u32],
    ) -> JoinHandle<()> {
        let pool = self.clone();
        spawn(move || {
            numbers.iter().for_each(|number| pool.send(shard, *number).expect("it is open"));
        })
    }

    pub(crate) fn sender_in_turn(self: &Arc<Self>, numbers: &'static [u32]) -> JoinHandle<()> {
        let pool = self.clone();
        spawn(move || {
            numbers.iter().for_each(|number| assert_eq!(pool.send_in_turn(*number), Ok(())));
        })
    }

    /// Sends a message to one worker, and waits for room there: the steps of the product's
    /// `WorkerSender`.
    pub(crate) fn mail(&self, worker: usize, number: u32) -> Result<(), Closed> {
        self.mail_to(&self.core.mailbox(worker), number)
    }

    pub(crate) fn mail_to(&self, mailbox: &Mailbox<Numbers, K>, number: u32) -> Result<(), Closed> {
        block_on(mailbox.reserve())?;
        block_on(self.core.await_permit())?;
        let pushed = push_to(&self.core, mailbox, &mut payload(number));
        pushed.inspect_err(|Closed| self.core.queue.permits.give(1, &*self.core))
    }

    pub(crate) fn mailer(
        self: &Arc<Self>,
        worker: usize,
        numbers: &'static [u32],
    ) -> JoinHandle<()> {
        let pool = self.clone();
        spawn(move || {
            numbers.iter().for_each(|number| pool.mail(worker, *number).expect("it is open"));
        })
    }

    /// Sends a signal to one worker.
    pub(crate) fn signal(&self, worker: usize) {
        self.core.signal_worker(&self.core.mailbox(worker), Signal(PhantomData));
    }
}
