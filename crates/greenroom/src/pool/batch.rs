//! Batches: several messages of one key handled at once (K12).
//!
//! A database takes a hundred rows in little more time than one. A pool made with [`Pool::batched`]
//! gives its actor a number of the messages that wait behind the first message of a key, and waits
//! a little for more if asked to. Senders and callers are not affected: each message is accepted,
//! answered, retried and counted by itself.
//!
//! ```text
//! key 7:  a b c │ d          a ✓ reply
//!         └─────┴─ handle([a, b, c]) ──▶ [Ok, Err, Ok]   b ✗ by the failure table: retried, with its key waiting; a dead letter
//!                                                        c ✓ reply
//! ```
//!
//! # Failures
//! | | then |
//! |---|---|
//! | some results are errors | their messages alone follow the failure table, in their order |
//! | the handler returns an error | each message has failed with it |
//! | the handler panics, or takes too long | it is unknown which message is at fault: each is attempted again, alone |
//! | there are fewer results than messages | the others are dead letters; none at all is a panic |
//!
//! A limit of the pool ([`rate`](PoolBuilder::rate), [`concurrency`](PoolBuilder::concurrency))
//! counts a batch as one.
//!
//! # Price
//! The price is a copy of each message while it is in hand, and three allocations per batch. Use
//! batches if a handler costs more than that.

pub(crate) mod batches;
pub(crate) mod bytes;
pub(crate) mod hand;

use std::ops::Deref;

use crate::{
    Actor, Answer, Context, Delivery, PoolBuilder,
    context::Loan,
    pool::{Pool, worker::Factory},
};

pub use crate::delivery::BatchItem;
pub use batches::Batches;

/// Messages that are handled together: of one key, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch<M>(pub Vec<M>);

impl<M> Deref for Batch<M> {
    type Target = [M];

    fn deref(&self) -> &[M] {
        &self.0
    }
}

impl<M> IntoIterator for Batch<M> {
    type Item = M;
    type IntoIter = std::vec::IntoIter<M>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// An actor of single messages that handles them in batches. Made by [`Pool::batched`].
pub struct Batched<A: Actor> {
    actor: A,
    /// The context that the actor borrows.
    inner: Option<Context<A>>,
}

impl<A: Actor> Batched<A> {
    fn inside<'a>(&'a mut self, cx: &'a mut Context<Self>) -> (&'a mut A, Loan<'a, Self, A>) {
        let inner = self.inner.get_or_insert_with(|| cx.inner());
        (&mut self.actor, cx.lend(inner))
    }
}

impl_debug!([A: Actor] Batched<A>, |_|);

impl<A: Actor> Pool<A> {
    /// Like [`new`](Self::new), for an actor that handles several messages of a key at once. Its
    /// reply is a result for each, in order; senders and callers of the pool deal with single
    /// messages.
    ///
    /// ```
    /// use greenroom::{batch::{Batch, Batches}, prelude::*};
    /// # use std::time::Duration;
    ///
    /// struct Writer;
    ///
    /// impl Actor for Writer {
    ///     type Message = Batch<(u32, &'static str)>;
    ///     type Reply = Vec<Result<usize, &'static str>>;
    ///     type Error = &'static str;
    ///
    ///     async fn handle(&mut self, rows: Self::Message, _cx: &mut Context<Self>) -> Result<Self::Reply, Self::Error> {
    ///         Ok(rows.iter().map(|(_, text)| if text.is_empty() { Err("nothing to write") } else { Ok(text.len()) }).collect())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::batched(|_slot| Writer, Batches::of(100).within(Duration::from_millis(2)))
    ///     .workers(4)
    ///     .ordered_by(|row: &(u32, &'static str)| row.0)
    ///     .spawn()
    ///     .await?;
    /// let (hello, nothing) = tokio::join!(pool.call((7, "hello")), pool.call((7, "")));
    /// assert!(matches!(hello, Ok(5)));
    /// assert!(nothing.is_err());
    /// # Ok(()) }
    /// ```
    pub fn batched<M, R>(
        factory: impl Fn(usize) -> A + Send + Sync + 'static,
        batches: Batches,
    ) -> PoolBuilder<Batched<A>>
    where
        M: Clone + Send + 'static,
        R: Send + 'static,
        A: Actor<Message = Batch<M>, Reply = Vec<Result<R, <A as Actor>::Error>>>,
        A::Error: Clone,
    {
        let build = move |slot| Ok(Batched { actor: factory(slot), inner: None });
        PoolBuilder::new(Factory::new(std::sync::Arc::new(build))).in_batches(batches, M::clone)
    }
}

/// The actor's hooks, with the context lent to it.
impl<A, M, R> Actor for Batched<A>
where
    M: Send + 'static,
    R: Send + 'static,
    A: Actor<Message = Batch<M>, Reply = Vec<Result<R, <A as Actor>::Error>>>,
    A::Error: Clone,
{
    type Message = M;
    type Reply = R;
    type Error = A::Error;

    /// One message, as a batch of its own. The pool calls [`receive`](Self::receive).
    async fn handle(&mut self, message: M, cx: &mut Context<Self>) -> Result<R, A::Error> {
        self.receive_all(vec![message], cx).await?.into_iter().next().unwrap_or_else(too_few)
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<M, R, A::Error>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<R>, A::Error> {
        let others = delivery.more.iter_mut();
        let others: Vec<M> = others.filter_map(|held| held.delivery.message.take()).collect();
        let messages = std::iter::once(delivery.take()).chain(others).collect();
        let handled = self.receive_all(messages, cx).await;
        let more = delivery.more.iter_mut();
        match handled {
            Ok(results) => {
                let mut results = results.into_iter();
                let first = results.next();
                more.for_each(|held: &mut BatchItem<M, R, A::Error>| held.result = results.next());
                first.unwrap_or_else(too_few).map(Answer::Reply)
            }
            Err(error) => {
                more.for_each(|held| held.result = Some(Err(error.clone())));
                Err(error)
            }
        }
    }

    hooks_of_inner!();
}

impl<A: Actor> Batched<A> {
    async fn receive_all<M>(
        &mut self,
        messages: Vec<M>,
        cx: &mut Context<Self>,
    ) -> Result<A::Reply, A::Error>
    where
        A: Actor<Message = Batch<M>>,
    {
        let (actor, mut cx) = self.inside(cx);
        actor.handle(Batch(messages), &mut cx).await
    }
}

/// A handler that returns no result at all has broken its contract: that is a bug, like a panic.
fn too_few<R, E>() -> Result<R, E> {
    panic!("the handler of a batch returned no result for its first message")
}
