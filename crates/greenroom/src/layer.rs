//! Layers: code around every message, whatever the actor does with it.
//!
//! A span in the traces, a count, a check that answers before the handler is asked: if each actor
//! contains them, one of them lacks them. A [`Layer`] is written once and put around an actor
//! ([`around`]), or around all workers of a pool
//! ([`PoolBuilder::layer`](crate::PoolBuilder::layer)). (Other frameworks call it middleware.)
//!
//! ```text
//! delivery ──▶ the outer layer ──▶ the inner layer ──▶ the actor's `receive`
//! answer   ◀──                 ◀──                 ◀──
//! ```
//!
//! An actor in its layers is an actor with the same message, reply and error, so the pool need not
//! know about layers: a panic unwinds through them, an error reaches the failure policy after they
//! have seen it, and a message that the handler left in its delivery is still there.
//!
//! # Price
//! Layers are composed when the program is compiled: no allocation and no dynamic call for a
//! message. Each makes the future of the worker larger by its own state.

use std::future::Future;

mod layered;

pub use self::layered::{Layered, around};
use crate::{Actor, Answer, Context, Delivery};

/// Code around each message of an actor `A`.
///
/// A layer has its own state, one per worker, which is new after each restart.
///
/// ```
/// use greenroom::{Layer, prelude::*, layer::{self, Next}};
///
/// /// Answers what it has answered before.
/// #[derive(Default)]
/// struct Cached(std::collections::HashMap<u64, u64>);
///
/// impl<A: Actor<Message = u64, Reply = u64>> Layer<A> for Cached {
///     async fn receive(
///         &mut self,
///         delivery: &mut Delivery<u64, u64, A::Error>,
///         mut next: Next<'_, A>,
///     ) -> Result<Answer<u64>, A::Error> {
///         let Some(&asked) = delivery.message() else { return next.run(delivery).await };
///         if let Some(&known) = self.0.get(&asked) {
///             return Ok(Answer::Reply(known)); // the actor is not asked
///         }
///         let answer = next.run(delivery).await?;
///         if let Answer::Reply(reply) = answer {
///             self.0.insert(asked, reply);
///         }
///         Ok(answer)
///     }
/// }
/// # struct Squares(u64); impl Actor for Squares { type Message = u64; type Reply = u64; type Error = ();
/// # async fn handle(&mut self, n: u64, _: &mut Context<Self>) -> Result<u64, ()> { self.0 += 1; Ok(n * n + self.0) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(layer::around(|_slot| Squares(0), |_slot| Cached::default())).workers(1).spawn().await?;
/// assert_eq!(pool.call(3).await, pool.call(3).await);
/// # Ok(()) }
/// ```
pub trait Layer<A: Actor>: Send + 'static {
    /// Handles one delivery, usually by passing it to the inside. As with [`Actor::receive`], a
    /// message that is left in the delivery after an error or a panic is available for a retry or
    /// for the dead letters. Around an actor that [keeps its messages](Actor::KEEPS_MESSAGE), a
    /// layer must also leave them in place.
    ///
    /// # Errors
    /// Those of [`Actor::handle`]: an error on which the failure policy of the pool decides.
    fn receive(
        &mut self,
        delivery: &mut Delivery<A::Message, A::Reply, A::Error>,
        next: Next<'_, A>,
    ) -> impl Future<Output = Result<Answer<A::Reply>, A::Error>> + Send;
}

/// The inside of a layer: the next layer, or the actor itself.
#[derive(Debug)]
pub struct Next<'a, A> {
    /// The actor, perhaps in layers of its own.
    actor: &'a mut A,
    /// Its context, on loan from the layer's.
    cx: &'a mut Context<A>,
}

impl<A: Actor> Next<'_, A> {
    /// Passes the delivery to the inside. May be called again if the message is still in it
    /// ([`Delivery::message`]); an actor that finds it gone panics.
    ///
    /// # Errors
    /// The actor's, or that of a layer inside.
    ///
    /// # Cancel safety
    /// Dropping the future drops the handler at its await. The message is lost if the
    /// handler had taken it.
    pub async fn run(
        &mut self,
        delivery: &mut Delivery<A::Message, A::Reply, A::Error>,
    ) -> Result<Answer<A::Reply>, A::Error> {
        self.actor.receive(delivery, self.cx).await
    }

    /// The context of the actor.
    pub fn context(&self) -> &Context<A> {
        self.cx
    }
}
