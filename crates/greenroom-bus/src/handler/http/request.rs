//! An event as a request.

use reqwest::{
    Method, Request,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};

use super::{config::Mode, shared::Shared};
use crate::{
    event::{
        Event,
        http::{BATCH, STRUCTURED, encode, write_binary},
    },
    handler::{Attempt, Failure},
};

const ATTEMPT: HeaderName = HeaderName::from_static("greenroom-attempt");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The credentials of the URL and the headers from the configuration, which win; all marked as secret.
///
/// # Errors
/// A sentence for the operator; it does not repeat the value.
pub(super) fn configured(
    credentials: HeaderMap,
    headers: &[(String, String)],
) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::with_capacity(headers.len() + 1);
    for (name, value) in headers {
        let key = HeaderName::try_from(name)
            .map_err(|_| format!("http: `headers` has {name:?}, which is no header name"))?;
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            format!(
                "http: the value of the header {name:?} has a line break or a control character"
            )
        })?;
        value.set_sensitive(true);
        map.append(key, value);
    }
    for (key, mut value) in credentials.into_iter().filter_map(|(key, value)| Some((key?, value))) {
        value.set_sensitive(true);
        map.entry(key).or_insert(value);
    }
    Ok(map)
}

/// The request of one attempt.
pub(super) fn build(shared: &Shared, event: &Event, attempt: &Attempt) -> Result<Request, Failure> {
    let mut request = Request::new(Method::POST, shared.target.url.clone());
    match shared.config.mode {
        Mode::Binary => binary(event, &mut request)?,
        Mode::Structured => structured(event, &mut request),
    }
    let headers = request.headers_mut();
    headers.insert(ATTEMPT, HeaderValue::from(attempt.number));
    headers.insert(IDEMPOTENCY_KEY, value("the idempotency key", &idempotency_key(event))?);
    add_configured(shared, headers);
    Ok(request)
}

/// The request of one attempt at several events, in the batch mode of the CloudEvents HTTP binding.
pub(super) fn build_batch(shared: &Shared, events: &[(&Event, Attempt)]) -> Request {
    let mut request = Request::new(Method::POST, shared.target.url.clone());
    let mut body = vec![b'['];
    for (place, (event, _)) in events.iter().enumerate() {
        if place > 0 {
            body.push(b',');
        }
        event.write_json(&mut body);
    }
    body.push(b']');
    *request.body_mut() = Some(body.into());
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(BATCH));
    let attempt = events.iter().map(|(_, attempt)| attempt.number).max().unwrap_or(1);
    headers.insert(ATTEMPT, HeaderValue::from(attempt));
    add_configured(shared, headers);
    request
}

fn add_configured(shared: &Shared, headers: &mut HeaderMap) {
    for name in shared.headers.keys() {
        headers.remove(name);
    }
    headers.extend(shared.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
}

/// Source and id, which together identify an event. Neither holds a space once encoded, so two events cannot share a
/// key.
fn idempotency_key(event: &Event) -> String {
    format!("{} {}", encode(event.source()), encode(event.id()))
}

fn binary(event: &Event, request: &mut Request) -> Result<(), Failure> {
    let message = write_binary(event);
    let headers = request.headers_mut();
    headers.reserve(message.headers.len() + 2);
    for (name, text) in &message.headers {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Failure::reject(format!("http: {name:?} is no header name")))?;
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
fn value(name: &str, text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(text).map_err(|_| {
        Failure::reject(format!("http: {name} of the event cannot be a header value: {text:?}"))
    })
}
