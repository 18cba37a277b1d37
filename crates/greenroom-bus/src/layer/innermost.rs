//! The service inside all layers: it hands the event to the handler of the
//! worker that makes the attempt.

use std::task::{Context, Poll};

use tower::Service;

use super::{BoxError, request::Request, way::Way};
use crate::{
    BoxFuture,
    handler::{Handling, Outputs},
};

/// Always ready: a worker makes one attempt at a time.
pub(super) struct Innermost;

impl Service<Request> for Innermost {
    type Response = Outputs;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Outputs, BoxError>>;

    fn poll_ready(&mut self, _task: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let Request { event, attempt, way, passage } = request;
        Box::pin(async move {
            let result = match way {
                Way::Alone(handler, own) => {
                    let mut handler = handler.lock().await;
                    passage.hand_over();
                    let result = {
                        let handling = match own {
                            None => handler.handle(&event, &attempt),
                            Some(own) => handler.handle_and_settle(&event, &attempt, own),
                        };
                        match handling {
                            Handling::Done(result) => result,
                            Handling::Later(result) => result.await,
                        }
                    };
                    passage.answered(handler.gave_result(0));
                    result
                }
                Way::Together(meeting, place) => {
                    meeting.arrive(place, event, attempt, passage).await
                }
            };
            result.map_err(Into::into)
        })
    }
}
