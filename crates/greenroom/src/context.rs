//! The information that a handler has about the worker that runs it.

use std::{
    fmt,
    marker::PhantomData,
    mem,
    ops::{Deref, DerefMut},
    sync::{Arc, Weak},
    time::Duration,
};

use crate::{
    AnyAddress, ExitReason,
    any_address::Erased,
    inspect::{TooManyKeys, Value},
    life::{self, Tie},
    pool::shares::Share,
};

pub(crate) mod address;

/// The surroundings of a handler. Lent to each call of a handler.
///
/// A handler that waits for another pool's reply keeps its worker: see [Calls in a
/// circle](crate::pool#calls-in-a-circle).
#[derive(Debug)]
pub struct Context<A> {
    /// All of its state, whatever the actor type: an actor inside another one is
    /// lent the same state.
    place: Place,
    /// The actor type.
    actor: PhantomData<fn(A)>,
}

/// The state behind a context.
#[derive(Clone)]
struct Place {
    /// The name of the pool.
    pool: Arc<str>,
    /// The worker's index in it.
    slot: usize,
    /// Lives that this worker has had before.
    restarts: u32,
    /// The pool, without its types.
    home: Weak<dyn Erased>,
    /// The actor's request to end, for this reason. In a box, because it is rare and a task
    /// holds several places.
    exit: Option<Box<ExitReason>>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, slot, restarts, .. } = self;
        write!(f, "{pool}-{slot}, restarted {restarts} times")
    }
}

impl<A> Context<A> {
    pub(crate) fn new(pool: Arc<str>, slot: usize, restarts: u32, home: Weak<dyn Erased>) -> Self {
        Self::at(Place { pool, slot, restarts, home, exit: None })
    }

    fn at(place: Place) -> Self {
        Self { place, actor: PhantomData }
    }

    /// The actor's request to end, if there is one.
    #[inline]
    pub(crate) fn take_exit(&mut self) -> Option<ExitReason> {
        match self.place.exit {
            None => None,
            Some(_) => self.place.exit.take().map(|reason| *reason),
        }
    }

    /// True when the actor has asked to end.
    #[inline]
    pub(crate) fn is_ending(&self) -> bool {
        self.place.exit.is_some()
    }

    pub(crate) fn restarted(&mut self) {
        self.place.restarts += 1;
    }

    /// A context for an actor inside this one, to [`lend`](Self::lend) this one's place to. Made
    /// once per life: it clones the contents of the place.
    pub(crate) fn inner<B>(&self) -> Context<B> {
        Context::at(self.place.clone())
    }

    /// Lends the place to the context of an actor inside this one, until the loan is dropped. Both
    /// are complete at any time, so a loan that is never dropped (it is in a future, which may be
    /// leaked) only leaves an outdated context behind.
    pub(crate) fn lend<'a, B>(&'a mut self, inner: &'a mut Context<B>) -> Loan<'a, A, B> {
        mem::swap(&mut self.place, &mut inner.place);
        Loan { outer: self, inner }
    }

    /// The name of the pool.
    pub fn pool(&self) -> &str {
        &self.place.pool
    }

    /// The worker's slot: its index in the pool, which outlives restarts.
    pub fn slot(&self) -> usize {
        self.place.slot
    }

    /// The worker's name, `<pool>-<slot>`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.place.pool, self.place.slot)
    }

    /// This worker without its types; for an actor that stands alone, the actor. To send messages,
    /// use [`address`](Self::address).
    pub fn me(&self) -> AnyAddress {
        match self.place.home.upgrade() {
            Some(home) => home.any_worker(self.place.slot),
            None => AnyAddress::gone(self.place.home.clone()),
        }
    }

    /// Holds this [share](crate::shares) from now on for this long: none of its messages is
    /// started. After that one attempt goes first as a probe, and the others follow once it has
    /// ended. For a handler that was told to wait, as by a 429 with `Retry-After`: it then fails,
    /// and its message waits for its retry. Returns false in a pool without shares.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # use std::time::Duration;
    /// struct Poster;
    ///
    /// impl Actor for Poster {
    ///     type Message = u32;
    ///     type Reply = ();
    ///     type Error = String;
    ///
    ///     async fn handle(&mut self, tenant: u32, cx: &mut Context<Self>) -> Result<(), String> {
    ///         if tenant == 7 {
    ///             assert!(cx.hold_share(tenant, Duration::from_secs(30)));
    ///             return Err("too many requests".to_owned());
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Poster).shared_by(|tenant: &u32| *tenant).spawn().await?;
    /// let began = tokio::time::Instant::now();
    /// assert!(pool.call(7).await.is_err());
    /// assert!(pool.call(7).await.is_err()); // waits
    /// assert_eq!(began.elapsed().as_secs(), 30);
    /// assert!(pool.call(8).await.is_ok());
    /// # Ok(()) }
    /// ```
    pub fn hold_share(&self, share: impl Into<Share>, during: Duration) -> bool {
        let home = self.place.home.upgrade();
        home.is_some_and(|home| home.hold_share(&share.into(), during))
    }

    /// Ends this worker after the message in hand: it has no more to do. That is a normal end
    /// ([`ExitReason::Normal`]), and the pool's [`RestartPolicy`](crate::RestartPolicy)
    /// decides about its slot:
    ///
    /// * `Transient` (the default) and `Temporary`: **the slot is disabled**. The pool has one
    ///   worker less until [`PoolAdmin::enable`](crate::PoolAdmin::enable) starts another there.
    /// * `Permanent`: the worker is started again, and its budget has one restart less.
    ///
    /// The other workers take over messages that wait for a disabled slot. Once the last slot is
    /// disabled the pool refuses messages, and queued ones become dead letters. A pool of
    /// [one](crate::Pool::one) ends with its actor. Under a supervisor, the supervisor decides
    /// about the worker's end, and queued messages are kept. To make a pool smaller for good, use
    /// [`PoolAdmin::remove_worker`](crate::PoolAdmin::remove_worker), which gives the slot up.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// struct Once;
    ///
    /// impl Actor for Once {
    ///     type Message = ();
    ///     type Reply = usize;
    ///     type Error = std::convert::Infallible;
    ///
    ///     async fn handle(&mut self, _: (), cx: &mut Context<Self>) -> Result<usize, Self::Error> {
    ///         cx.stop();
    ///         Ok(cx.slot())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Once).workers(2).spawn().await?;
    /// let slot = pool.call(()).await?;
    /// # while pool.stats().live == 2 { tokio::task::yield_now().await; }
    /// assert_eq!((pool.stats().configured, pool.stats().live), (2, 1)); // the slot is disabled
    /// let change = pool.admin().enable(slot)?;
    /// assert!(change.done(std::time::Duration::from_secs(5)).await.is_complete());
    /// assert_eq!(pool.stats().live, 2);
    /// # Ok(()) }
    /// ```
    pub fn stop(&mut self) {
        self.exit(ExitReason::Normal);
    }

    /// Ends this worker after the message in hand, for this reason. A normal reason is the same as
    /// [`stop`](Self::stop); any other is an abnormal end, after which a
    /// [`Transient`](crate::RestartPolicy::Transient) worker is restarted within its budget.
    pub fn exit(&mut self, reason: ExitReason) {
        self.place.exit = Some(Box::new(reason));
    }

    /// Links this worker with another actor: when one of the two ends abnormally, the other is
    /// notified ([`Actor::exited`](crate::Actor::exited)), at once if that has happened already.
    pub fn link(&self, other: &AnyAddress) {
        life::tie(&self.me(), other, Tie::Link);
    }

    /// Takes a link away. A signal that is on its way still arrives.
    pub fn unlink(&self, other: &AnyAddress) {
        life::untie(&self.me(), other, Tie::Link);
    }

    /// Monitors another actor: this worker is notified of its end
    /// ([`Actor::down`](crate::Actor::down)) once; at once if it has ended already.
    pub fn monitor(&self, other: &AnyAddress) {
        life::tie(&self.me(), other, Tie::Monitor);
    }

    /// Removes a monitor. A notice that is on its way still arrives.
    pub fn demonitor(&self, other: &AnyAddress) {
        life::untie(&self.me(), other, Tie::Monitor);
    }

    /// Publishes a figure or a word about this worker, which
    /// [`PoolAdmin::inspect`](crate::PoolAdmin::inspect) shows even while the worker is busy. The
    /// last value counts; it survives a restart.
    ///
    /// # Errors
    /// When 64 other keys have been published before.
    pub fn publish(&self, key: &str, value: impl Into<Value>) -> Result<(), TooManyKeys> {
        match self.place.home.upgrade() {
            Some(home) => home.publish(self.place.slot, key, value.into()),
            None => Ok(()),
        }
    }

    /// How often the actor in this slot has been restarted.
    pub fn restarts(&self) -> u32 {
        self.place.restarts
    }
}

/// The place of a context, lent to the context of an actor inside. It goes back when this is
/// dropped: after the handler, with a handler that is dropped, or in a panic.
pub(crate) struct Loan<'a, A, B> {
    /// The lender of the place.
    outer: &'a mut Context<A>,
    /// The borrower, for the time of the loan.
    inner: &'a mut Context<B>,
}

impl<A, B> Deref for Loan<'_, A, B> {
    type Target = Context<B>;

    fn deref(&self) -> &Context<B> {
        self.inner
    }
}

impl<A, B> DerefMut for Loan<'_, A, B> {
    fn deref_mut(&mut self) -> &mut Context<B> {
        self.inner
    }
}

impl<A, B> Drop for Loan<'_, A, B> {
    fn drop(&mut self) {
        mem::swap(&mut self.outer.place, &mut self.inner.place);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::{Actor, pool::Core};

    enum Nobody {}

    impl Actor for Nobody {
        type Message = ();
        type Reply = ();
        type Error = ();

        async fn handle(&mut self, (): (), _cx: &mut Context<Self>) -> Result<(), ()> {
            match *self {}
        }
    }

    fn somewhere() -> Context<u8> {
        let nowhere: Weak<Core<Nobody, Infallible>> = Weak::new();
        Context::new("pool".into(), 7, 0, nowhere)
    }

    #[test]
    fn what_an_inner_context_is_told_the_outer_one_knows_after_the_loan() {
        let mut outer = somewhere();
        let mut inner = outer.inner::<u16>();
        let mut loan = outer.lend(&mut inner);
        loan.restarted();
        assert_eq!((loan.pool(), loan.slot(), loan.restarts()), ("pool", 7, 1));
        drop(loan);
        assert_eq!((outer.restarts(), inner.restarts()), (1, 0));
    }

    #[test]
    fn a_loan_ends_with_a_panic() {
        let mut outer = somewhere();
        let mut inner = outer.inner::<u16>();
        let panics = std::panic::AssertUnwindSafe(|| {
            let mut loan = outer.lend(&mut inner);
            loan.restarted();
            panic!("on purpose");
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(outer.restarts(), 1);
    }
}
