//! Events as requests.

use reqwest::{
    Method, Request,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};

use super::connection::Connection;
use crate::event::{
    Event,
    http::{BATCH, STRUCTURED, encode, write_binary},
};

const ATTEMPT: HeaderName = HeaderName::from_static("greenroom-attempt");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How an event is written into a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Attributes as headers, data as body.
    #[default]
    Binary,
    /// The whole event as a JSON body.
    Structured,
}

/// The request of one attempt at one event.
///
/// # Errors
/// What of the event cannot be sent, for an operator.
pub(crate) fn single(
    to: &Connection,
    mode: Mode,
    event: &Event,
    attempt: u32,
) -> Result<Request, String> {
    let mut request = Request::new(Method::POST, to.target.url.clone());
    match mode {
        Mode::Binary => binary(event, &mut request)?,
        Mode::Structured => structured(event, &mut request),
    }
    let key = value("the idempotency key", &idempotency_key(event))?;
    request.headers_mut().insert(IDEMPOTENCY_KEY, key);
    Ok(addressed(to, request, attempt))
}

/// The request of one attempt at several events, in the batch mode of the CloudEvents HTTP binding.
pub(crate) fn batch<'a>(
    to: &Connection,
    events: impl Iterator<Item = &'a Event>,
    attempt: u32,
) -> Request {
    let mut request = Request::new(Method::POST, to.target.url.clone());
    let mut body = vec![b'['];
    for (place, event) in events.enumerate() {
        if place > 0 {
            body.push(b',');
        }
        event.write_json(&mut body);
    }
    body.push(b']');
    *request.body_mut() = Some(body.into());
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(BATCH));
    addressed(to, request, attempt)
}

/// With the attempt, and what the configuration adds, which wins.
fn addressed(to: &Connection, mut request: Request, attempt: u32) -> Request {
    let headers = request.headers_mut();
    headers.insert(ATTEMPT, HeaderValue::from(attempt));
    for name in to.headers.keys() {
        headers.remove(name);
    }
    headers.extend(to.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
    request
}

/// Source and id, which together identify an event. Neither holds a space once encoded, so two
/// events cannot share a key.
fn idempotency_key(event: &Event) -> String {
    format!("{} {}", encode(event.source()), encode(event.id()))
}

fn binary(event: &Event, request: &mut Request) -> Result<(), String> {
    let message = write_binary(event);
    let headers = request.headers_mut();
    headers.reserve(message.headers.len() + 2);
    for (name, text) in &message.headers {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("http: {name:?} is no header name"))?;
        headers.insert(key, value(name, text)?);
    }
    *request.body_mut() = Some(message.body.into());
    Ok(())
}

fn structured(event: &Event, request: &mut Request) {
    let mut body = Vec::new();
    event.write_json(&mut body);
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(STRUCTURED));
    *request.body_mut() = Some(body.into());
}

/// Only a content type can fail: everything else is encoded.
fn value(name: &str, text: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(text)
        .map_err(|_| format!("http: {name} of the event cannot be a header value: {text:?}"))
}
