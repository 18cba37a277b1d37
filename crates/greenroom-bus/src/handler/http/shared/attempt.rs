//! An attempt: a request, and the consequence of its response.

use tokio::time::Instant;

use super::{Aim, Shared};
use crate::{
    event::Event,
    handler::{
        Attempt, Effect, Failure, FailureKind, HandlerResult, Outputs,
        http::response::{self, Began},
    },
    http::{On, Verdict, connection::NoAnswer, message},
};

impl Shared {
    pub(in super::super) async fn attempt(
        &self,
        event: &Event,
        attempt: &Attempt,
    ) -> HandlerResult {
        let sent = message::SentAttempt { number: attempt.number, fence: attempt.fence };
        let of_share = attempt.share.is_some();
        let target = self.connection(event);
        let target = target.map_err(|why| Failure::reject(why).with_effect(Effect::None))?;
        let request = message::single(&target, self.options.mode, event, sent);
        let mut request = request.map_err(Failure::reject)?;
        if let Some(signer) = &self.signer {
            let signed = signer.sign(&mut request, event, attempt.share.as_deref());
            // A secret may come soon.
            signed.map_err(|why| Failure::retry(why).with_effect(Effect::None))?;
        }
        let started = Instant::now();
        let response = target.send(request).await.map_err(|none| self.broken(none))?;
        response::settle(self, &target, response, Began { at: started, of_share }).await
    }

    /// One request for all of them; the consequence of its response is the same for each. Where
    /// each has a target or a signature of its own, a request for each.
    pub(in super::super) async fn attempt_all(
        &self,
        events: &[(&Event, Attempt)],
    ) -> Vec<HandlerResult> {
        let Aim::One(target) = &self.aim else { return self.attempt_each(events).await };
        if self.signer.is_some() {
            return self.attempt_each(events).await;
        }
        // They are of one share.
        let of_share = events.iter().any(|(_, attempt)| attempt.share.is_some());
        let number = events.iter().map(|(_, attempt)| attempt.number).max().unwrap_or(1);
        let fence = events.iter().filter_map(|(_, attempt)| attempt.fence).max();
        let attempt = message::SentAttempt { number, fence };
        let sent = events.iter().map(|(event, _)| *event);
        let request = message::batch(target, sent, attempt);
        let started = Instant::now();
        let (result, is_handled) = match target.send(request).await {
            Ok(response) => {
                let is_handled = response::is_handled(self, target, &response);
                let result =
                    response::settle(self, target, response, Began { at: started, of_share }).await;
                (if is_handled { result.map_err(not_again) } else { result }, is_handled)
            }
            Err(none) => (Err(self.broken(none)), false),
        };
        let is_rejected = result.as_ref().is_err_and(|failure| failure.kind.blames_the_event());
        // An error in the body of an answer is no reason to post anything twice.
        if is_rejected && !is_handled {
            // One of them is to blame, and it is unknown which.
            return self.attempt_each(events).await;
        }
        let result = result.and_then(|outputs| match outputs {
            Outputs::Events(_) => Err(Failure::reject(format!(
                "http: the response of {} to a batch carries events, of which nobody could say what they \
                 belong to; answer without events, or take `batch` out of the pool",
                target.target.shown
            ))),
            outputs => Ok(outputs),
        });
        events.iter().map(|_| result.clone()).collect()
    }

    /// A request for each, as long as none is to be tried again.
    async fn attempt_each(&self, events: &[(&Event, Attempt)]) -> Vec<HandlerResult> {
        let mut results = Vec::with_capacity(events.len());
        for (event, attempt) in events {
            let result = self.attempt(event, attempt).await;
            let stops = crate::handler::is_to_be_tried_again(&result);
            results.push(result);
            if stops {
                break;
            }
        }
        let released = || Err(Failure::new(FailureKind::Released, "an event before it failed"));
        results.resize_with(events.len(), released);
        results
    }

    /// No response, or half of one.
    pub(in super::super) fn broken(&self, none: NoAnswer) -> Failure {
        let (status, effect) =
            (&self.status, if none.reached { Effect::Unknown } else { Effect::None });
        let (verdict, retry) = match none.on {
            On::Timeout => (status.timeout(), FailureKind::Timeout),
            _ => (status.connection(), FailureKind::Retry { after: None }),
        };
        // No attempt mends a certificate.
        let verdict = match verdict {
            // Its name may resolve to another address later, but the event is not to decide that.
            _ if none.refused => Verdict::Reject,
            Verdict::Retry if none.untrusted => Verdict::Pause,
            verdict => verdict,
        };
        unanswered(verdict, retry, none.text).with_effect(effect)
    }
}

/// The error in the body of the answer to a batch that was handled. Even a body that broke off is
/// no reason to post the batch again: the events in it could not be used.
fn not_again(failure: Failure) -> Failure {
    if failure.kind.blames_the_event() {
        return failure;
    }
    let error = failure.error;
    Failure::reject(format!("{error}; it has handled the batch, which is not posted again"))
}

/// The consequence if there is no answer.
fn unanswered(verdict: Verdict, retry: FailureKind, text: String) -> Failure {
    let kind = match verdict {
        Verdict::Settle | Verdict::Retry | Verdict::Hold => retry,
        Verdict::Pause => FailureKind::Pause,
        Verdict::Reject | Verdict::PauseShare => FailureKind::Reject,
        Verdict::Park => FailureKind::Park,
    };
    Failure::new(kind, text)
}
