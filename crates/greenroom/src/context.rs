//! What a handler may know of where it runs.

use std::{
    marker::PhantomData,
    mem,
    ops::{Deref, DerefMut},
    sync::Arc,
};

/// Where a handler runs. Lent to each call of a handler.
#[derive(Debug)]
pub struct Context<A> {
    /// All that it knows, whoever's context it is: an actor inside another is lent it whole.
    place: Place,
    /// Whose it is.
    actor: PhantomData<fn(A)>,
}

/// What a context knows.
#[derive(Debug, Clone)]
struct Place {
    /// The name of the pool.
    pool: Arc<str>,
    /// The worker's index in it.
    slot: usize,
    /// Lives that this worker has had before.
    restarts: u32,
}

impl<A> Context<A> {
    pub(crate) fn new(pool: Arc<str>, slot: usize) -> Self {
        Self::at(Place { pool, slot, restarts: 0 })
    }

    fn at(place: Place) -> Self {
        Self { place, actor: PhantomData }
    }

    pub(crate) fn restarted(&mut self) {
        self.place.restarts += 1;
    }

    /// A context for an actor inside this one, to [`lend`](Self::lend) this one's place to. Made once in a life: it
    /// clones what the place holds.
    pub(crate) fn inner<B>(&self) -> Context<B> {
        Context::at(self.place.clone())
    }

    /// Lends the place to the context of an actor inside this one, until the loan is dropped. Both are whole at any time, so a
    /// loan that is never dropped (it lies in a future, which may be leaked) leaves a context behind that is merely old.
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

    /// How often the actor in this slot has been restarted.
    pub fn restarts(&self) -> u32 {
        self.place.restarts
    }
}

/// The place of a context, lent to the context of an actor inside. It goes back when this is dropped: after the handler,
/// with a handler that is dropped, or in a panic.
pub(crate) struct Loan<'a, A, B> {
    /// Whose place is lent.
    outer: &'a mut Context<A>,
    /// Who has it meanwhile.
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
    use super::*;

    #[test]
    fn what_an_inner_context_is_told_the_outer_one_knows_after_the_loan() {
        let mut outer = Context::<u8>::new("pool".into(), 7);
        let mut inner = outer.inner::<u16>();
        let mut loan = outer.lend(&mut inner);
        loan.restarted();
        assert_eq!((loan.pool(), loan.slot(), loan.restarts()), ("pool", 7, 1));
        drop(loan);
        assert_eq!((outer.restarts(), inner.restarts()), (1, 0));
    }

    #[test]
    fn a_loan_ends_with_a_panic() {
        let mut outer = Context::<u8>::new("pool".into(), 7);
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
