//! A span per message.

use tracing::Instrument;

use super::{Layer, Next};
use crate::{Actor, Answer, Delivery};

/// Runs the handler in a span `message` of [`tracing`], at the level `INFO`, with the fields
/// `pool`, `worker` (its slot), `attempt` and `call`. If no subscriber wants that level, a
/// message costs one check.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traced;

impl<A: Actor> Layer<A> for Traced {
    async fn receive(
        &mut self,
        delivery: &mut Delivery<A::Message, A::Reply, A::Error>,
        mut next: Next<'_, A>,
    ) -> Result<Answer<A::Reply>, A::Error> {
        let cx = next.context();
        let span = tracing::info_span!(
            "message",
            pool = cx.pool(),
            worker = cx.slot(),
            attempt = delivery.attempt(),
            call = delivery.is_call(),
        );
        next.run(delivery).instrument(span).await
    }
}
