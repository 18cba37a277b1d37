//! What follows from a response.

use std::{
    sync::atomic::Ordering,
    time::{Duration, SystemTime},
};

use bytes::{Bytes, BytesMut};
use reqwest::{
    Response,
    header::{HeaderValue, RETRY_AFTER},
};

use tokio::time::Instant;

use super::{OUTCOME, Shared, Verdict, retry_after};
use crate::{
    event::http,
    handler::{Failure, FailureKind, HandlerResult, Outputs},
};

/// How much of an error's body is quoted, in bytes.
const QUOTED: usize = 200;

/// How much of an error's body is read: to its end where it is short, so that the connection can be used again.
const ERROR_BODY: usize = 64 * 1024;

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
    let (body, is_whole) = read(shared, &mut response, shared.config.max_response).await?;
    if !is_whole {
        return Err(Failure::reject(format!(
            "http: the response of {} is longer than {} bytes; raise `max_response` if that is meant",
            shared.target.shown, shared.config.max_response
        )));
    }
    let headers: Vec<_> =
        response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let events = http::read(&headers, &body).map_err(|error| {
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

async fn refused(
    shared: &Shared,
    response: &mut Response,
    took: Duration,
    kind: FailureKind,
) -> Failure {
    // The status says enough where its body cannot be read.
    let (body, _) = read(shared, response, ERROR_BODY).await.unwrap_or_default();
    let (status, shown, took) = (response.status(), &shared.target.shown, took.as_millis());
    let mut error = format!("http: {status} after {took} ms from {shown}");
    if !body.is_empty() {
        let shown = String::from_utf8_lossy(&body[..body.len().min(QUOTED)]);
        error.push_str(&format!(": {}", shown.trim_end().escape_debug()));
    }
    if matches!(response.status().as_u16(), 401 | 403) {
        error.push_str("; check the credentials in the configuration");
    }
    Failure::new(kind, error)
}

/// The wait that the target asked for.
fn wait(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    retry_after::parse(value, SystemTime::now())
}

/// Reads the body up to `limit` bytes, and says whether that was all of it.
async fn read(
    shared: &Shared,
    response: &mut Response,
    limit: usize,
) -> Result<(Bytes, bool), Failure> {
    let Some(first) = chunk(shared, response).await? else { return Ok((Bytes::new(), true)) };
    let mut body = BytesMut::from(first);
    while body.len() <= limit {
        match chunk(shared, response).await? {
            Some(more) => body.extend_from_slice(&more),
            None => return Ok((body.freeze(), true)),
        }
    }
    body.truncate(limit);
    Ok((body.freeze(), false))
}

async fn chunk(shared: &Shared, response: &mut Response) -> Result<Option<Bytes>, Failure> {
    response.chunk().await.map_err(|error| shared.broken(error))
}
