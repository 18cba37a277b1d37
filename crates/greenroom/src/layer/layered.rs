//! An actor in a layer.

use super::{Layer, Next};
use crate::{Actor, Answer, Context, Delivery, context::Loan};

/// An actor with a layer around it: an actor with the same messages, replies and errors. The layer
/// sees each delivery; hooks belong only to the actor.
#[derive(Debug)]
pub struct Layered<A, L> {
    /// The actor inside.
    actor: A,
    /// The layer around it.
    layer: L,
    /// The actor's context. Made when the first context is lent to this layer, so that a message
    /// costs only the loan.
    inner: Option<Context<A>>,
}

/// The parts needed to enter: the actor, its layer, and the context lent to the actor.
type LayeredParts<'a, A, L> = (&'a mut A, &'a mut L, Loan<'a, Layered<A, L>, A>);

impl<A: Actor, L: Layer<A>> Layered<A, L> {
    /// Puts a layer around an actor.
    pub fn new(actor: A, layer: L) -> Self {
        Self { actor, layer, inner: None }
    }

    /// The actor inside.
    pub fn actor(&self) -> &A {
        &self.actor
    }

    /// The layer.
    pub fn layer(&self) -> &L {
        &self.layer
    }

    fn inside<'a>(&'a mut self, cx: &'a mut Context<Self>) -> LayeredParts<'a, A, L> {
        let inner = self.inner.get_or_insert_with(|| cx.inner());
        (&mut self.actor, &mut self.layer, cx.lend(inner))
    }
}

/// Each hook goes to the actor, with the context lent to it: one line each.
impl<A: Actor, L: Layer<A>> Actor for Layered<A, L> {
    type Message = A::Message;
    type Reply = A::Reply;
    type Error = A::Error;

    const KEEPS_MESSAGE: bool = A::KEEPS_MESSAGE;

    /// Skips the layer: this is for a direct call of the actor with a message and no delivery. The
    /// pool calls [`receive`](Self::receive).
    async fn handle(
        &mut self,
        message: A::Message,
        cx: &mut Context<Self>,
    ) -> Result<A::Reply, A::Error> {
        let (actor, _, mut cx) = self.inside(cx);
        actor.handle(message, &mut cx).await
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<A::Message, A::Reply, A::Error>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<A::Reply>, A::Error> {
        let (actor, layer, mut cx) = self.inside(cx);
        layer.receive(delivery, Next { actor, cx: &mut cx }).await
    }

    hooks_of_inner!();
}

/// Puts a layer around each actor that a factory builds. Called again on its result, it adds the
/// next layer outside. Both functions are called with the worker's slot, once per start.
///
/// A layer that is cheap to clone is shared by `move |_slot| layer.clone()`.
pub fn around<A: Actor, L: Layer<A>>(
    factory: impl Fn(usize) -> A,
    layer: impl Fn(usize) -> L,
) -> impl Fn(usize) -> Layered<A, L> {
    move |slot| Layered::new(factory(slot), layer(slot))
}
