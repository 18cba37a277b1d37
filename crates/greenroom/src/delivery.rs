//! A message and its metadata, lent to the actor that handles it.

use std::{sync::Arc, time::Duration};

use greenroom_queue::stamp::Stamp;
use tokio::time::Instant;

use crate::{
    AnyAddress, CancellationToken, Class, ReplyPort,
    pool::{Claim, Failed, PoolHandoffSlot, Refusals, SlotState},
};

mod forward;

pub use self::forward::ForwardError;

/// A message on loan: the runtime owns it until its outcome is settled.
///
/// Fields that each message needs come first: as few cache lines as possible.
#[derive(Debug)]
#[repr(C)]
pub struct Delivery<M, R, E> {
    pub(crate) message: Option<M>,
    /// Allocated only for calls, for messages that have failed before, and for
    /// messages with metadata.
    pub(crate) extra: Option<Box<Extra<R, E>>>,
    /// When it was queued, by the clock of its pool.
    pub(crate) stamp: Stamp,
    pub(crate) class: Class,
    /// Notes for the moment when the handler returns.
    pub(crate) marks: Marks,
    /// The start of that clock. One delivery serves a worker for all its messages, so this is
    /// written once.
    pub(crate) start: Instant,
    /// The slot for calls that skip the queue, in a pool whose callers may do its work.
    pub(crate) handoff_slot: Option<Arc<PoolHandoffSlot<M, R, E>>>,
    /// The slot of its worker. It knows the start time, which may be the only known time (see
    /// [`came_at`](Self::came_at)).
    pub(crate) slot_state: Option<Arc<SlotState>>,
    /// The other messages of its batch, in a pool of batches.
    pub(crate) more: Vec<BatchItem<M, R, E>>,
}

/// Notes for the moment when its handler returns. In one byte, because they are
/// checked for each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Marks(u8);

impl Marks {
    /// No marks.
    pub(crate) const NONE: Self = Self(0);
    /// It was passed to another address as a whole.
    pub(crate) const FORWARDED: Self = Self(1);
    /// The process or connection that did the work for the handler has died.
    pub(crate) const CRASHED: Self = Self(2);
    /// It was not for this worker: another one must get it.
    pub(crate) const PUT_BACK: Self = Self(4);
    /// Its caller waits at the handoff slot, and there is no port yet.
    pub(crate) const BY_HANDOFF: Self = Self(8);

    #[inline]
    pub(crate) fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    /// True if there is no mark.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn add(&mut self, mark: Self) {
        self.0 |= mark.0;
    }

    /// True if the mark was set.
    pub(crate) fn remove(&mut self, mark: Self) -> bool {
        let before = self.has(mark);
        self.0 &= !mark.0;
        before
    }
}

/// A message that is handled together with the first of its batch ([`Delivery::batch_items`]), with
/// its own result.
#[derive(Debug)]
pub struct BatchItem<M, R, E> {
    pub(crate) delivery: Delivery<M, R, E>,
    /// A copy for a retry.
    pub(crate) spare: Option<M>,
    /// The handler's result for it.
    pub(crate) result: Option<Result<R, E>>,
}

impl<M, R, E> BatchItem<M, R, E> {
    /// The message on loan.
    pub fn delivery(&mut self) -> &mut Delivery<M, R, E> {
        &mut self.delivery
    }

    /// Sets its result. It is settled with that once the handler has returned, independent of the
    /// others.
    pub fn settle(&mut self, result: Result<R, E>) {
        self.result = Some(result);
    }
}

/// The parts that a plain send does not need.
#[derive(Debug)]
pub(crate) struct Extra<R, E> {
    /// Present while the call is unanswered.
    pub(crate) port: Option<ReplyPort<R, E>>,
    /// Attempts that have failed so far and count.
    pub(crate) failures: u32,
    /// Attempts so far, counted or not.
    pub(crate) attempts: u32,
    /// Workers that died with this message in hand.
    pub(crate) kills: u32,
    pub(crate) next: NextAttempt,
    pub(crate) waiter: Waiter,
    /// Its bytes, until it is started, in a pool that bounds them.
    pub(crate) claim: Option<Claim>,
    /// The failure of the last attempt.
    pub(crate) failed: Option<Arc<Failed<E>>>,
    /// When it was accepted, if its stamp now means something later: the time when an attempt was
    /// due, for instance.
    pub(crate) accepted: Option<Instant>,
    /// Adopted workers that do not take it.
    pub(crate) refusals: Option<Box<Refusals>>,
    /// Metadata from the sender, if there is any: most calls have none.
    pub(crate) about: Option<Box<SenderInfo>>,
}

/// The terms of the next attempt.
#[derive(Debug, Default)]
pub(crate) struct NextAttempt {
    /// The message waits for it, and counts as waiting.
    pub(crate) parked: bool,
    /// It is not batched with others: a batch that contained it has failed as a whole before.
    pub(crate) alone: bool,
    /// It is not attempted by itself: it waits for an operator.
    pub(crate) for_good: bool,
}

/// The waiting caller, as far as a policy needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiter {
    /// No caller, or one outside of the pool.
    Other,
    /// A worker of the pool that the message is sent to.
    Worker,
    /// Like `Worker`, and the policy has chosen that very worker: the call is refused.
    Chosen,
}

/// The metadata that a sender has given.
#[derive(Debug, Clone, Default)]
pub(crate) struct SenderInfo {
    pub(crate) sender: Option<AnyAddress>,
    /// It is not handled after this moment.
    pub(crate) deadline: Option<Instant>,
    pub(crate) trace: Option<Arc<str>>,
    pub(crate) token: Option<CancellationToken>,
}

impl SenderInfo {
    pub(crate) fn is_empty(&self) -> bool {
        self.sender.is_none()
            && self.deadline.is_none()
            && self.trace.is_none()
            && self.token.is_none()
    }
}

impl<R, E> Extra<R, E> {
    pub(crate) fn new(port: Option<ReplyPort<R, E>>) -> Box<Self> {
        Box::new(Self::plain(port))
    }

    /// A function instead of a closure: each closure would have the function that it is passed to
    /// compiled again.
    pub(crate) fn without_port() -> Box<Self> {
        Self::new(None)
    }

    fn plain(port: Option<ReplyPort<R, E>>) -> Self {
        Self {
            port,
            failures: 0,
            attempts: 0,
            kills: 0,
            next: NextAttempt::default(),
            waiter: Waiter::Other,
            claim: None,
            failed: None,
            accepted: None,
            refusals: None,
            about: None,
        }
    }

    pub(crate) fn with(port: Option<ReplyPort<R, E>>, about: SenderInfo) -> Box<Self> {
        let about = (!about.is_empty()).then(|| Box::new(about));
        Box::new(Self { about, ..Self::plain(port) })
    }

    pub(crate) fn sender(&self) -> Option<&AnyAddress> {
        self.about.as_ref()?.sender.as_ref()
    }

    /// False for a call that needs no check before it is handled, except whether its caller still
    /// waits.
    #[inline]
    pub(crate) fn wants_a_look(&self) -> bool {
        let is_more = self.next.parked | self.claim.is_some() | self.about.is_some();
        is_more || self.port.as_ref().is_some_and(ReplyPort::is_abandoned)
    }

    pub(crate) fn has_expired(&self) -> bool {
        let deadline = self.about.as_ref().and_then(|about| about.deadline);
        deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl<M, R, E> Delivery<M, R, E> {
    /// For a pool whose clock began at `start`.
    pub(crate) fn empty(start: Instant) -> Self {
        Self {
            message: None,
            extra: None,
            class: Class::Normal,
            stamp: Stamp::default(),
            start,
            marks: Marks::default(),
            handoff_slot: None,
            slot_state: None,
            more: Vec::new(),
        }
    }

    /// Takes the message out.
    ///
    /// # Panics
    /// If it has been taken before.
    #[track_caller]
    #[expect(
        clippy::expect_used,
        reason = "a documented panic: taking twice is a bug of the handler"
    )]
    pub fn take(&mut self) -> M {
        self.message.take().expect("the message of this delivery was taken before")
    }

    /// The messages that are handled together with this one, after it and in order, in a pool with
    /// [`batches`](crate::PoolBuilder::batches); none in other pools. Each needs its own result
    /// ([`BatchItem::settle`]). An item without a result, whose message is still there, is retried
    /// alone.
    pub fn batch_items(&mut self) -> &mut [BatchItem<M, R, E>] {
        &mut self.more
    }

    /// This message and those that are handled together with it, in order, except those already
    /// taken.
    pub fn messages_mut(&mut self) -> impl Iterator<Item = &mut M> {
        let others = self.more.iter_mut().filter_map(|other| other.delivery.message.as_mut());
        self.message.iter_mut().chain(others)
    }

    /// The message, unless it has been taken.
    pub fn message(&self) -> Option<&M> {
        self.message.as_ref()
    }

    /// The message, to change in place. A retry sees the change.
    pub fn message_mut(&mut self) -> Option<&mut M> {
        self.message.as_mut()
    }

    /// Takes out the reply port of a call, to answer it later from anywhere; the handler then
    /// returns [`Answer::Deferred`](crate::Answer::Deferred). `None` for a send.
    pub fn take_reply_port(&mut self) -> Option<ReplyPort<R, E>> {
        self.open_port();
        self.extra.as_mut().and_then(|extra| extra.port.take())
    }

    /// Gives a port to a caller that waits at the handoff slot, like other callers have: the reply
    /// does not come when the handler returns, or there is none.
    #[inline]
    pub(crate) fn open_port(&mut self) {
        if self.marks.has(Marks::BY_HANDOFF) {
            self.open_port_of_handoff();
        }
    }

    #[cold]
    fn open_port_of_handoff(&mut self) {
        self.marks.remove(Marks::BY_HANDOFF);
        if let Some(port) = self.handoff_slot.as_ref().and_then(|handoff_slot| handoff_slot.port())
        {
            self.extra.get_or_insert_with(Extra::without_port).port = Some(port);
        }
    }

    /// Declares, before the handler returns an error, that the process or connection that did the
    /// work for it has died. The failure policy then gets
    /// [`Cause::Crash`](crate::failure::Cause::Crash), and the message counts as one that kills.
    pub fn crashed(&mut self) {
        self.marks.add(Marks::CRASHED);
    }

    /// The sender, if the envelope names one.
    pub fn sender(&self) -> Option<&AnyAddress> {
        self.extra.as_ref()?.sender()
    }

    /// Shows when the result is no longer wanted, if the sender has attached a token. A
    /// [gathered](crate::gather) call, for instance, cancels the token of each worker that it no
    /// longer waits for.
    pub fn cancellation(&self) -> Option<&CancellationToken> {
        self.extra.as_ref()?.about.as_ref()?.token.as_ref()
    }

    /// The class that it was sent in.
    pub fn class(&self) -> Class {
        self.class
    }

    /// The time left until its deadline, if it has one; zero once that has passed.
    pub fn time_left(&self) -> Option<Duration> {
        let deadline = self.extra.as_ref()?.about.as_ref()?.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// The approximate time when the pool accepted it, by the runtime's clock. For a retry, it is
    /// the first acceptance; for a [forwarded](Self::forward) message, the acceptance by this pool.
    ///
    /// Reading a clock for each message would cost more than queueing it, so most are stamped by a
    /// clock whose time stays the same between readings of the real one: with several threads for a
    /// few milliseconds, with one thread for as long as a sender or a handler computes without a
    /// pause. So the stamp may be too early by that much, and with several threads is never too
    /// late. With one thread, if handlers return within 2 µs, a call that an idle worker gets at
    /// once has no stamp: it counts from the first query or from the first wait of its handler,
    /// which is too late by the time that others and the handler have computed until then.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # use std::time::Duration;
    /// struct Quotes;
    ///
    /// impl Actor for Quotes {
    ///     type Message = u64;
    ///     type Reply = u64;
    ///     type Error = &'static str;
    ///
    ///     async fn handle(&mut self, quote: u64, _cx: &mut Context<Self>) -> Result<u64, Self::Error> {
    ///         Ok(quote)
    ///     }
    ///
    ///     async fn receive(
    ///         &mut self,
    ///         delivery: &mut Delivery<u64, u64, Self::Error>,
    ///         cx: &mut Context<Self>,
    ///     ) -> Result<Answer<u64>, Self::Error> {
    ///         if delivery.queued_for() > Duration::from_secs(1) {
    ///             return Err("nobody wants an old quote");
    ///         }
    ///         self.handle(delivery.take(), cx).await.map(Answer::Reply)
    ///     }
    /// }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let quotes = Pool::new(|_slot| Quotes).spawn().await?;
    /// assert_eq!(quotes.call(7).await, Ok(7));
    /// # Ok(()) }
    /// ```
    pub fn queued_at(&self) -> Instant {
        let accepted = self.extra.as_ref().and_then(|extra| extra.accepted);
        accepted.unwrap_or_else(|| self.start + Duration::from_nanos(self.came_at().nanos()))
    }

    /// When it was queued, or this attempt was due. For a message that was not queued and has no
    /// clock reading: the first query since it started.
    pub(crate) fn came_at(&self) -> Stamp {
        let started =
            || self.slot_state.as_ref()?.busy_since(|| self.start.elapsed().as_nanos() as u64);
        match self.stamp {
            Stamp::UNDATED => started().unwrap_or(Stamp::NONE),
            stamp => Stamp::coarse(stamp.nanos()),
        }
    }

    /// The time since then: the wait, including earlier attempts and the waits between them, and
    /// the time of this attempt so far. As coarse as [`queued_at`](Self::queued_at).
    pub fn queued_for(&self) -> Duration {
        self.queued_at().elapsed()
    }

    /// The trace context that came with it, as text. Its meaning is up to the
    /// sender and the receiver.
    pub fn trace(&self) -> Option<&str> {
        self.extra.as_ref()?.about.as_ref()?.trace.as_deref()
    }

    /// True if a caller waits for the reply.
    pub fn is_call(&self) -> bool {
        let by_handoff = self.marks.has(Marks::BY_HANDOFF);
        by_handoff || self.extra.as_ref().is_some_and(|extra| extra.port.is_some())
    }

    /// The number of the attempt; 1 for the first. Attempts that do not count towards a limit are
    /// included.
    pub fn attempt(&self) -> u32 {
        self.extra.as_ref().map_or(1, |extra| extra.attempts + 1)
    }

    /// How many attempts have failed and count towards the limit.
    pub fn failures(&self) -> u32 {
        self.extra.as_ref().map_or(0, |extra| extra.failures)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        sync::{Arc, Mutex},
        time::Duration,
    };

    use super::Extra;
    use crate::{Actor, Address, Answer, Context, Delivery, Envelope, Pool, Stop};

    /// Notes which messages came with extra parts.
    #[derive(Clone, Default)]
    struct Scales(Arc<Mutex<Vec<(u32, bool)>>>);

    impl Actor for Scales {
        type Message = u32;
        type Reply = ();
        type Error = ();

        async fn handle(&mut self, _: u32, _: &mut Context<Self>) -> Result<(), ()> {
            unreachable!("receive does it")
        }

        async fn receive(
            &mut self,
            delivery: &mut Delivery<u32, (), ()>,
            _cx: &mut Context<Self>,
        ) -> Result<Answer<()>, ()> {
            let weighed = (delivery.take(), delivery.extra.is_some());
            self.0.lock().map_err(drop)?.push(weighed);
            Ok(Answer::Reply(()))
        }
    }

    async fn send_plainly(to: &Address<u32, (), ()>) {
        assert!(to.send(0).await.is_ok());
        assert!(to.try_send(1).is_ok());
        assert!(to.send_many(&mut VecDeque::from([2, 3])).await.is_ok());
        assert!(to.send_timeout(4, Duration::from_secs(1)).await.is_ok());
        assert!(to.send_with(5, Envelope::urgent()).await.is_ok());
        assert!(to.try_reserve().is_ok_and(|permit| permit.send(6).is_ok()));
        assert!(to.try_reserve().is_ok_and(|permit| permit.send(7).is_ok()));
    }

    /// The extra parts of messages that such a pool accepts.
    async fn weigh(keyed: bool) -> Vec<(u32, bool)> {
        let scales = Scales::default();
        let each = scales.clone();
        let pool = Pool::new(move |_| each.clone()).workers(1);
        let pool = match keyed {
            true => pool.ordered_by(|number: &u32| number % 2).spawn().await,
            false => pool.spawn().await,
        };
        let pool = pool.unwrap_or_else(|error| panic!("{error}"));
        send_plainly(&pool).await;
        for worker in pool.admin().workers() {
            assert!(worker.try_send(8).is_ok());
        }
        assert!(pool.send_with(100, Envelope::new().trace("more")).await.is_ok());
        assert_eq!(pool.call(101).await, Ok(()));
        pool.stop(Stop::within(Duration::from_secs(1))).await;
        let mut weighed = scales.0.lock().map(|all| all.clone()).unwrap_or_default();
        weighed.sort_unstable();
        weighed
    }

    /// A call allocates it on one core and frees it on another. With eight bytes more it would need
    /// the allocator's next size, and calls between distant cores took a fifth longer.
    #[test]
    fn what_a_call_needs_is_small() {
        assert!(size_of::<Extra<u64, u64>>() <= 88);
    }

    #[tokio::test]
    async fn a02_what_a_plain_send_does_not_use_is_one_empty_pointer() {
        assert_eq!(size_of::<Option<Box<Extra<u64, u64>>>>(), size_of::<usize>());
        for keyed in [false, true] {
            let plain = (0..=8).map(|number| (number, false));
            let expected: Vec<_> = plain.chain([(100, true), (101, true)]).collect();
            assert_eq!(weigh(keyed).await, expected, "keyed: {keyed}");
        }
    }
}
