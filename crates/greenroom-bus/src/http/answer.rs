//! The consequence of a response.

use std::{
    sync::atomic::Ordering,
    time::{Duration, SystemTime},
};

use bytes::BytesMut;
use reqwest::{
    Response,
    header::{HeaderName, HeaderValue, RETRY_AFTER},
};
use tokio::time::timeout;

use super::{
    connection::Connection,
    credentials::Identification::{Known, Missing, Unknown},
    retry_after,
    status::{StatusMap, Verdict},
};

/// The header in which a target names the outcome of the event: `retry`, `reject` or `park`.
pub const OUTCOME: HeaderName = HeaderName::from_static("greenroom-outcome");

/// How much of an error's body is quoted, in bytes.
const QUOTED: usize = 200;

/// How much of an error's body is read: to its end if it is short, so that the connection can be
/// reused.
const ERROR_BODY: usize = 64 * 1024;

/// How long to wait for the rest of an unneeded body. Longer than a round trip, so that the
/// connection is worth keeping; a slower target gets a new one for each event.
const REST: Duration = Duration::from_secs(1);

/// The target's verdict on the event: by the header, or by its status.
pub(crate) fn said(from: &Connection, map: &StatusMap, response: &Response) -> Verdict {
    let asks_to_wait = response.headers().contains_key(RETRY_AFTER);
    let by_status = map.verdict_on(response.status().as_u16(), asks_to_wait);
    let Some(word) = response.headers().get(OUTCOME) else { return by_status };
    match word.to_str().ok().and_then(|word| word.trim().parse().ok()) {
        Some(verdict @ (Verdict::Retry | Verdict::Reject | Verdict::Park)) => verdict,
        _ => {
            not_understood(from, word);
            by_status
        }
    }
}

/// Logged once for each target, because the same word would come with every answer.
fn not_understood(from: &Connection, word: &HeaderValue) {
    if !from.link.warned.swap(true, Ordering::Relaxed) {
        let target = &from.target.shown;
        tracing::warn!(
            target,
            header = %OUTCOME,
            ?word,
            "the header of a response is not understood, and its status decides; it may say retry, reject or park"
        );
    }
}

/// The wait that the target asked for.
pub(crate) fn wait(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    retry_after::parse(value, SystemTime::now())
}

/// An answer that settles nothing, in words for an operator.
pub(crate) async fn refusal(from: &Connection, response: &mut Response, took: Duration) -> String {
    // The status says enough where its body cannot be read.
    let body = read_some(response, ERROR_BODY, QUOTED).await;
    let (status, shown, took) = (response.status(), &from.target.shown, took.as_millis());
    let mut error = format!("http: {status} after {took} ms from {shown}");
    if !body.is_empty() {
        let shown = String::from_utf8_lossy(&body);
        error.push_str(&format!(": {}", shown.trim_end().escape_debug()));
    }
    error.push_str(match (status.as_u16(), from.link.identification) {
        (401, Known) => "; the credentials were refused: correct them in the configuration",
        (403, Known) => "; the credentials do not suffice: correct them, or what they may do there",
        (401 | 403, Unknown) => "; check `auth`, `headers` and `url` in the configuration",
        (401 | 403, Missing) => "; no credentials were sent: add `auth` to the configuration",
        _ => "",
    });
    error
}

/// Reads a body that is not needed, so that the connection can be reused: to its end if that is
/// near, otherwise up to `limit` bytes and no longer than [`REST`]. A connection whose body was not
/// read to its end is closed. Returns the first `quoted` bytes.
pub(crate) async fn read_some(response: &mut Response, limit: usize, quoted: usize) -> BytesMut {
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
