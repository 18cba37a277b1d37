//! Answers to senders: a status, and why, as JSON.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::{
    Response, StatusCode,
    body::{Body, Frame, SizeHint},
    header::{self, HeaderName, HeaderValue},
};
use serde::Serialize;

use super::{
    guard::Refused,
    message::BadMessage,
    webhook::{ALLOWED_ORIGIN, ALLOWED_RATE},
};
use crate::{http::server::LARGEST_HEADERS, source::log::Appended};

/// How long a sender is asked to wait if the duration is unknown.
const A_MOMENT: Duration = Duration::from_secs(1);

/// How long it is asked to wait if a person has to act.
const A_WHILE: Duration = Duration::from_secs(30);

/// An answer.
pub(super) type HttpAnswer = Response<WholeBody>;

/// A body that is there as a whole.
pub(super) struct WholeBody(Option<Bytes>);

impl Body for WholeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|body| Ok(Frame::data(body))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |body| body.len() as u64))
    }
}

/// The result for a message that was taken.
#[derive(Serialize)]
struct TakenMessage {
    stored: u64,
    repeated: u64,
}

/// Why a message was refused.
#[derive(Serialize)]
struct Problem<'a> {
    error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
}

fn json(status: StatusCode, value: &impl Serialize) -> HttpAnswer {
    // Of texts and numbers: nothing of it cannot be written.
    let body = serde_json::to_vec(value).unwrap_or_default();
    let mut answer = bare(status);
    *answer.body_mut() = WholeBody(Some(body.into()));
    with_header(answer, header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
}

/// Without a body.
fn bare(status: StatusCode) -> HttpAnswer {
    let mut answer = Response::new(WholeBody(None));
    *answer.status_mut() = status;
    answer
}

fn with_header(mut answer: HttpAnswer, name: HeaderName, value: HeaderValue) -> HttpAnswer {
    answer.headers_mut().insert(name, value);
    answer
}

fn problem(status: StatusCode, error: &str) -> HttpAnswer {
    json(status, &Problem { error, index: None, field: None })
}

/// In whole seconds, at least one: 0 would have senders try again at once.
fn after(answer: HttpAnswer, wait: Duration) -> HttpAnswer {
    let seconds = wait.as_millis().div_ceil(1_000).clamp(1, 86_400) as u64;
    with_header(answer, header::RETRY_AFTER, seconds.into())
}

/// The connection ends with it.
pub(super) fn closing(answer: HttpAnswer) -> HttpAnswer {
    with_header(answer, header::CONNECTION, HeaderValue::from_static("close"))
}

pub(super) fn taken(appended: Appended) -> HttpAnswer {
    let Appended { stored, repeated } = appended;
    json(StatusCode::ACCEPTED, &TakenMessage { stored, repeated })
}

pub(super) fn well() -> HttpAnswer {
    json(StatusCode::OK, &serde_json::json!({ "status": "ok" }))
}

/// Reveals neither the error nor that there is an input here.
pub(super) fn refused(why: Refused) -> HttpAnswer {
    match why {
        Refused::Unknown { token: true } => {
            let asked = HeaderValue::from_static("Bearer");
            with_header(bare(StatusCode::UNAUTHORIZED), header::WWW_AUTHENTICATE, asked)
        }
        Refused::Unknown { token: false } => bare(StatusCode::UNAUTHORIZED),
        Refused::Page => {
            let text = "a page of a browser may post nothing here: set `auth`, and post with it";
            problem(StatusCode::FORBIDDEN, text)
        }
    }
}

pub(super) fn not_found(path: &str) -> HttpAnswer {
    problem(StatusCode::NOT_FOUND, &format!("nothing is here: post events to {path}"))
}

/// A sender of webhooks has asked, and may post.
pub(super) fn permitted(origin: HeaderValue, rate: HeaderValue) -> HttpAnswer {
    let answer = with_header(bare(StatusCode::OK), header::ALLOW, HeaderValue::from_static("POST"));
    with_header(with_header(answer, ALLOWED_ORIGIN, origin), ALLOWED_RATE, rate)
}

/// It has asked, and may not.
pub(super) fn not_permitted() -> HttpAnswer {
    problem(StatusCode::FORBIDDEN, "nothing is taken here from this origin")
}

pub(super) fn not_allowed(allowed: &'static str) -> HttpAnswer {
    let text = format!("only {allowed} is possible here");
    let answer = problem(StatusCode::METHOD_NOT_ALLOWED, &text);
    with_header(answer, header::ALLOW, HeaderValue::from_static(allowed))
}

pub(super) fn too_large(limit: usize) -> HttpAnswer {
    let text = format!("the body is larger than {limit} bytes; nothing of it was stored");
    problem(StatusCode::PAYLOAD_TOO_LARGE, &text)
}

/// The log's limit on one append depends on its maximum size.
pub(super) fn too_large_for_log(limit: u64) -> HttpAnswer {
    let text = format!(
        "the events take more than the {limit} bytes that fit into the log at once; nothing was stored"
    );
    problem(StatusCode::PAYLOAD_TOO_LARGE, &text)
}

pub(super) fn slow() -> HttpAnswer {
    closing(problem(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"))
}

pub(super) fn broken() -> HttpAnswer {
    closing(problem(StatusCode::BAD_REQUEST, "the body broke off; nothing of it was stored"))
}

pub(super) fn crowded() -> HttpAnswer {
    let text = "too many bodies come in at once; nothing of this one was stored";
    after(problem(StatusCode::TOO_MANY_REQUESTS, text), A_MOMENT)
}

pub(super) fn full(wait: Duration) -> HttpAnswer {
    let text = "there is no room for events at the moment; nothing was stored";
    after(problem(StatusCode::TOO_MANY_REQUESTS, text), wait)
}

/// Asked for its health, the same.
pub(super) fn unwell() -> HttpAnswer {
    let text = "there is no room for events at the moment";
    after(problem(StatusCode::SERVICE_UNAVAILABLE, text), A_MOMENT)
}

pub(super) fn large_headers() -> HttpAnswer {
    let text = format!("the headers are larger than {LARGEST_HEADERS} bytes");
    problem(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &text)
}

/// At once in no other process either: but it ends, and another may come.
pub(super) fn stopping() -> HttpAnswer {
    let text = "no events are taken any more: greenroom stops";
    closing(after(problem(StatusCode::SERVICE_UNAVAILABLE, text), A_MOMENT))
}

pub(super) fn failed() -> HttpAnswer {
    let text = "events cannot be stored any more; whoever runs this has to look at its log";
    after(problem(StatusCode::SERVICE_UNAVAILABLE, text), A_WHILE)
}

pub(super) fn bad(why: &BadMessage) -> HttpAnswer {
    let text = why.to_string();
    let status = why.status();
    let (index, field) = match why {
        BadMessage::Event { index, field, .. } => (*index, field.as_deref()),
        BadMessage::EventTooLarge { index, .. } => (*index, None),
        _ => (None, None),
    };
    let answer = json(status, &Problem { error: &text, index, field });
    if status != StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return answer;
    }
    let accepted = "application/cloudevents+json, application/cloudevents-batch+json";
    with_header(answer, header::ACCEPT, HeaderValue::from_static(accepted))
}
