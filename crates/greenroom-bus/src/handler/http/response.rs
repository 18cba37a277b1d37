//! The consequence of a response.

use bytes::{Bytes, BytesMut};
use reqwest::{Response, StatusCode};
use tokio::time::Instant;

use super::shared::Shared;
use crate::{
    event::http,
    handler::{Effect, Failure, FailureKind, HandlerResult, Outputs},
    http::{Verdict, answer, connection::Connection},
};

/// An attempt under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Began {
    pub(super) at: Instant,
    /// Its event has a share.
    pub(super) of_share: bool,
}

/// Whether the target has handled the request, regardless of the body.
pub(super) fn is_handled(shared: &Shared, from: &Connection, response: &Response) -> bool {
    answer::said(from, &shared.status, response) == Verdict::Settle
}

/// Turns the response to an event into the result of the attempt.
pub(super) async fn settle(
    shared: &Shared,
    from: &Connection,
    mut response: Response,
    began: Began,
) -> HandlerResult {
    let took = began.at.elapsed();
    let kind = match answer::said(from, &shared.status, &response) {
        Verdict::Settle => return settled(shared, from, response).await,
        Verdict::Hold if began.of_share => {
            FailureKind::HoldShare { after: answer::wait(&response) }
        }
        Verdict::Retry | Verdict::Hold => FailureKind::Retry { after: answer::wait(&response) },
        Verdict::Pause => FailureKind::Pause,
        Verdict::PauseShare if began.of_share => FailureKind::PauseShare,
        Verdict::Reject | Verdict::PauseShare => FailureKind::Reject,
        Verdict::Park => FailureKind::Park,
    };
    let failure = Failure::new(kind, answer::refusal(from, &mut response, took).await);
    // A gateway answers if the target has not, and does not know its effect.
    let is_gateway = matches!(response.status().as_u16(), 502 | 504);
    Err(if is_gateway { failure.with_effect(Effect::Unknown) } else { failure })
}

async fn settled(shared: &Shared, from: &Connection, mut response: Response) -> HandlerResult {
    let without_events = if shared.options.pass { Outputs::Same } else { Outputs::None };
    if is_bodiless(&response) || !http::announces_events(&headers(&response)) {
        // It is handled, so the body is not needed.
        answer::read_some(&mut response, shared.max_response(), 0).await;
        return Ok(without_events);
    }
    let Some(body) = read_whole(shared, from, &mut response).await? else {
        return Err(Failure::reject(format!(
            "http: {} has handled the event, and its response, which carries events, is longer than {} bytes; \
             raise `http.max_response` if that is meant",
            from.target.shown,
            shared.max_response()
        )));
    };
    if body.is_empty() {
        return Ok(without_events);
    }
    let events = http::read(&headers(&response), &body).map_err(|error| {
        Failure::reject(format!(
            "http: the response of {} is no CloudEvent: {error}",
            from.target.shown
        ))
    })?;
    Ok(if events.is_empty() { without_events } else { Outputs::Events(events) })
}

/// Whether nothing that follows the head is content (RFC 9110, 15.3.5 and 15.3.6): headers that
/// announce events are those of a framework, which it puts on everything.
fn is_bodiless(response: &Response) -> bool {
    matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT)
}

fn headers(response: &Response) -> Vec<(&str, &[u8])> {
    response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
}

/// Reads the body; `None` if it exceeds the limit.
async fn read_whole(
    shared: &Shared,
    from: &Connection,
    response: &mut Response,
) -> Result<Option<Bytes>, Failure> {
    let limit = shared.max_response();
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Ok(None);
    }
    let mut body = BytesMut::new();
    while let Some(more) =
        response.chunk().await.map_err(|error| shared.broken(from.no_answer(error)))?
    {
        body.extend_from_slice(&more);
        if body.len() > limit {
            return Ok(None);
        }
    }
    Ok(Some(body.freeze()))
}
