//! Events as requests.

use bytes::Bytes;
use greenroom_config::words;
use reqwest::{
    Method, Request,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};

use super::connection::Connection;
use crate::event::{
    Event, ExtensionValue, TRACEPARENT, TRACESTATE,
    http::{BATCH, STRUCTURED, encode, write_binary},
};

const ATTEMPT: HeaderName = HeaderName::from_static("greenroom-attempt");
const FENCE: HeaderName = HeaderName::from_static("greenroom-fence");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACE: HeaderName = HeaderName::from_static(TRACEPARENT);
const STATE: HeaderName = HeaderName::from_static(TRACESTATE);

/// The most headers that an event is written into: far above what servers take, and far below the
/// 32,768 at which a map of headers panics. Some of that goes to the few that clients add, and to
/// names whose hashes collide.
const MOST_HEADERS: usize = 4_096;

words! {
    /// How an event is written into a request.
    pub enum Mode {
        /// Attributes as headers, data as body.
        Binary = "binary",
        /// The whole event as a JSON body.
        Structured = "structured",
    }
}

/// Which attempt a request is, and of which assignment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentAttempt {
    /// From 1.
    pub(crate) number: u32,
    pub(crate) fence: Option<u64>,
}

/// The request of one attempt at one event.
///
/// # Errors
/// What of the event cannot be sent, for an operator.
pub(crate) fn single(
    to: &Connection,
    mode: Mode,
    event: &Event,
    attempt: SentAttempt,
) -> Result<Request, String> {
    let mut request = Request::new(Method::POST, to.target.url.clone());
    match mode {
        Mode::Binary => binary(event, &mut request)?,
        Mode::Structured => structured(event, &mut request),
    }
    let key = value("the idempotency key", &idempotency_key(event))?;
    request.headers_mut().insert(IDEMPOTENCY_KEY, key);
    traced(event, &mut request);
    Ok(addressed(to, request, attempt))
}

/// The request of one attempt at several events, in the batch mode of the CloudEvents HTTP binding.
pub(crate) fn batch<'a>(
    to: &Connection,
    events: impl Iterator<Item = &'a Event>,
    attempt: SentAttempt,
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

/// The request of something that is no event.
pub(crate) fn plain(to: &Connection, content_type: &'static str, body: Bytes) -> Request {
    let mut request = Request::new(Method::POST, to.target.url.clone());
    *request.body_mut() = Some(body.into());
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    configured(to, request)
}

/// With the attempt, and what the configuration adds.
fn addressed(to: &Connection, mut request: Request, attempt: SentAttempt) -> Request {
    let headers = request.headers_mut();
    headers.insert(ATTEMPT, HeaderValue::from(attempt.number));
    if let Some(fence) = attempt.fence {
        headers.insert(FENCE, HeaderValue::from(fence));
    }
    configured(to, request)
}

/// With what the configuration adds, which wins.
fn configured(to: &Connection, mut request: Request) -> Request {
    let headers = request.headers_mut();
    for name in to.link.headers.keys() {
        headers.remove(name);
    }
    headers.extend(to.link.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
    request
}

/// With the trace of the event as W3C Trace Context has it, which libraries for tracing look for. A
/// `traceparent` that is none is left out.
fn traced(event: &Event, request: &mut Request) {
    let Some(context) = event.trace_context() else { return };
    let headers = request.headers_mut();
    if let Ok(parent) = HeaderValue::try_from(context.to_string()) {
        headers.insert(TRACE, parent);
    }
    if let Some(ExtensionValue::Text(state)) = event.extension(TRACESTATE)
        && let Ok(state) = HeaderValue::from_str(state)
    {
        headers.insert(STATE, state);
    }
}

/// Source and id, which together identify an event. Neither holds a space once encoded, so two
/// events cannot share a key.
fn idempotency_key(event: &Event) -> String {
    format!("{} {}", encode(event.source()), encode(event.id()))
}

fn binary(event: &Event, request: &mut Request) -> Result<(), String> {
    let message = write_binary(event);
    if message.headers.len() > MOST_HEADERS {
        let headers = message.headers.len();
        return Err(format!(
            "http: the event takes {headers} headers, and at most {MOST_HEADERS} are sent; use `mode: structured`"
        ));
    }
    let headers = request.headers_mut();
    headers.reserve(message.headers.len() + 3);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::TargetConfig;

    const FIRST: SentAttempt = SentAttempt { number: 1, fence: None };

    fn sent(mode: Mode, traceparent: &str, headers: &[(&str, &str)]) -> Request {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let target = TargetConfig {
            url: "http://localhost/".into(),
            headers: headers.collect(),
            ..TargetConfig::default()
        };
        let event = Event::builder("1", "/shop", "order.placed");
        let event = event.extension(TRACEPARENT, traceparent).extension(TRACESTATE, "a=1");
        single(&Connection::new(&target).unwrap(), mode, &event.build().unwrap(), FIRST).unwrap()
    }

    #[tokio::test]
    async fn u01_an_event_with_more_extensions_than_headers_can_be_is_refused() {
        let target = TargetConfig { url: "http://localhost/".into(), ..TargetConfig::default() };
        let connection = Connection::new(&target).unwrap();
        for (extensions, fits) in [(4_000, true), (5_000, false), (40_000, false)] {
            let event = Event::builder("1", "/shop", "order.placed");
            let event =
                (0..extensions).fold(event, |event, n| event.extension(&format!("x{n}"), n));
            let event = event.build().unwrap();
            let sent = single(&connection, Mode::Binary, &event, FIRST);
            assert_eq!(sent.is_ok(), fits, "{extensions}");
            assert!(fits || sent.unwrap_err().contains("use `mode: structured`"));
            assert!(single(&connection, Mode::Structured, &event, FIRST).is_ok());
        }
    }

    #[tokio::test]
    async fn o06_a_request_is_in_the_trace_of_its_event() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for mode in [Mode::Binary, Mode::Structured] {
            let request = sent(mode, parent, &[]);
            assert_eq!(request.headers()[TRACE], parent);
            assert_eq!(request.headers()[STATE], "a=1");
            let request = sent(mode, "malformed", &[]);
            assert!(!request.headers().contains_key(TRACE));
            assert!(!request.headers().contains_key(STATE));
        }
        let request = sent(Mode::Binary, parent, &[("traceparent", "mine")]);
        assert_eq!(request.headers()[TRACE], "mine", "what is configured wins");
    }
}
