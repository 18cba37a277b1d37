//! What follows from a response.

use std::{
    sync::atomic::Ordering,
    time::{Duration, SystemTime},
};

use bytes::{Bytes, BytesMut};
use reqwest::{
    Response,
    header::{HeaderName, HeaderValue, RETRY_AFTER},
};

use tokio::time::{Instant, timeout};

use super::{retry_after, shared::Shared, status::Verdict};
use crate::{
    event::http,
    handler::{Effect, Failure, FailureKind, HandlerResult, Outputs},
};

/// The header by which a target says what becomes of the event: `retry`, `reject` or `park`.
pub const OUTCOME: HeaderName = HeaderName::from_static("greenroom-outcome");

/// How much of an error's body is quoted, in bytes.
const QUOTED: usize = 200;

/// How much of an error's body is read: to its end where it is short, so that the connection can be used again.
const ERROR_BODY: usize = 64 * 1024;

/// How long the rest of a body is waited for that nobody needs. Longer than a round trip, so that a
/// connection is worth it; a target that takes longer gets a new one for each event.
const REST: Duration = Duration::from_secs(1);

/// Turns the response to an event into the result of the attempt.
pub(super) async fn settle(
    shared: &Shared,
    mut response: Response,
    started: Instant,
) -> HandlerResult {
    let took = started.elapsed();
    let kind = match said(shared, &response) {
        Verdict::Settle => return settled(shared, response).await,
        Verdict::Retry => FailureKind::Retry { after: wait(&response) },
        Verdict::Pause => FailureKind::Pause,
        Verdict::Reject => FailureKind::Reject,
        Verdict::Park => FailureKind::Park,
    };
    Err(refused(shared, &mut response, took, kind).await)
}

/// What the target says of the event: in so many words, or by its status.
fn said(shared: &Shared, response: &Response) -> Verdict {
    let by_status = shared.config.status.verdict(response.status().as_u16());
    let Some(word) = response.headers().get(OUTCOME) else { return by_status };
    match word.to_str().ok().and_then(|word| word.trim().parse().ok()) {
        Some(verdict @ (Verdict::Retry | Verdict::Reject | Verdict::Park)) => verdict,
        _ => {
            not_understood(shared, word);
            by_status
        }
    }
}

/// Said once for each handler: what one answer holds, all of them do.
fn not_understood(shared: &Shared, word: &HeaderValue) {
    if !shared.warned.swap(true, Ordering::Relaxed) {
        let target = &shared.target.shown;
        tracing::warn!(
            target,
            header = %OUTCOME,
            ?word,
            "the header of a response is not understood, and its status decides; it may say retry, reject or park"
        );
    }
}

async fn settled(shared: &Shared, mut response: Response) -> HandlerResult {
    if !http::announces_events(&headers(&response)) {
        // It is handled: whatever becomes of the body, nobody needs it.
        read_some(&mut response, shared.config.max_response, 0).await;
        return Ok(if shared.config.pass { Outputs::Same } else { Outputs::None });
    }
    let Some(body) = read_whole(shared, &mut response).await? else {
        return Err(Failure::reject(format!(
            "http: {} has handled the event, and its response, which carries events, is longer than {} bytes; \
             raise `http.max_response` if that is meant",
            shared.target.shown, shared.config.max_response
        )));
    };
    let events = http::read(&headers(&response), &body).map_err(|error| {
        Failure::reject(format!(
            "http: the response of {} is no CloudEvent: {error}",
            shared.target.shown
        ))
    })?;
    Ok(match events.is_empty() {
        false => Outputs::Events(events),
        true if shared.config.pass => Outputs::Same,
        true => Outputs::None,
    })
}

fn headers(response: &Response) -> Vec<(&str, &[u8])> {
    response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
}

async fn refused(
    shared: &Shared,
    response: &mut Response,
    took: Duration,
    kind: FailureKind,
) -> Failure {
    // The status says enough where its body cannot be read.
    let body = read_some(response, ERROR_BODY, QUOTED).await;
    let (status, shown, took) = (response.status(), &shared.target.shown, took.as_millis());
    let mut error = format!("http: {status} after {took} ms from {shown}");
    if !body.is_empty() {
        let shown = String::from_utf8_lossy(&body);
        error.push_str(&format!(": {}", shown.trim_end().escape_debug()));
    }
    let status = status.as_u16();
    if matches!(status, 401 | 403) {
        error.push_str("; check the credentials in the configuration");
    }
    let failure = Failure::new(kind, error);
    // A gateway answers where the target has not, and does not know what that has done.
    if matches!(status, 502 | 504) { failure.with_effect(Effect::Unknown) } else { failure }
}

/// The wait that the target asked for.
fn wait(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    retry_after::parse(value, SystemTime::now())
}

/// Reads the body; none if it is longer than what may be read.
async fn read_whole(shared: &Shared, response: &mut Response) -> Result<Option<Bytes>, Failure> {
    let limit = shared.config.max_response;
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Ok(None);
    }
    let mut body = BytesMut::new();
    while let Some(more) = response.chunk().await.map_err(|error| shared.broken(error))? {
        body.extend_from_slice(&more);
        if body.len() > limit {
            return Ok(None);
        }
    }
    Ok(Some(body.freeze()))
}

/// Reads a body that nobody needs, so that the connection can be used again: to its end where that
/// is near, otherwise up to `limit` bytes and no longer than [`REST`]. The connection of one that
/// was not read to its end is closed. Returns the first `quoted` bytes.
async fn read_some(response: &mut Response, limit: usize, quoted: usize) -> BytesMut {
    let (mut kept, mut read) = (BytesMut::new(), 0);
    let reading = async {
        while read <= limit
            && let Ok(Some(more)) = response.chunk().await
        {
            read += more.len();
            kept.extend_from_slice(&more[..more.len().min(quoted - kept.len())]);
        }
    };
    // Late or broken off, it is not needed.
    let _ = timeout(REST, reading).await;
    kept
}
