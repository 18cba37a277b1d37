//! The service inside all layers: it hands the event to the handler of the worker that makes the attempt.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tower::Service;

use super::{BoxError, Request, layered::HandlerOfWorker, meeting::Meeting};
use crate::{
    BoxFuture,
    handler::{Handling, Outputs, Settlement},
};

/// How an attempt gets to its handler.
pub(super) enum Way {
    /// To this handler, with what it settles the event through where it does that itself.
    Alone(HandlerOfWorker, Option<Own>),
    /// With others, of which this is the place.
    Together(Arc<Meeting>, usize),
}

/// What a handler settles its event through itself, on its way there.
pub(super) struct Own {
    pub(super) settlement: Settlement,
    /// It has come to the handler, whose it is to say how the event ends.
    pub(super) handed_over: Arc<AtomicBool>,
}

impl Own {
    fn hand_over(self) -> Settlement {
        self.handed_over.store(true, Ordering::Release);
        self.settlement
    }
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alone(..) => "Alone",
            Self::Together(..) => "Together",
        })
    }
}

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
        let Request { event, attempt, way } = request;
        Box::pin(async move {
            let result = match way {
                Way::Alone(handler, own) => {
                    let mut handler = handler.lock().await;
                    let handling = match own.map(Own::hand_over) {
                        None => handler.handle(&event, &attempt),
                        Some(own) => handler.handle_and_settle(&event, &attempt, own),
                    };
                    match handling {
                        Handling::Done(result) => result,
                        Handling::Later(result) => result.await,
                    }
                }
                Way::Together(meeting, place) => meeting.arrive(place, event, attempt).await,
            };
            result.map_err(Into::into)
        })
    }
}
