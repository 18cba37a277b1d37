//! The answer of a stand-in, as the client would give it.

use reqwest::{Response, StatusCode};

use super::status::On;
use crate::{
    event::{Event, http::BATCH},
    stand_in::StandInAnswer,
};

/// A stand-in gives no answer: the row of the status map, the text, and whether it had the event.
pub(super) struct Unanswered(pub(super) On, pub(super) &'static str, pub(super) bool);

/// # Errors
/// The stand-in is to give no answer.
pub(super) fn response(answer: StandInAnswer) -> Result<Response, Unanswered> {
    let (status, headers, body) = match answer {
        StandInAnswer::Success => (204, Vec::new(), Default::default()),
        StandInAnswer::Events(events) => {
            let mut body = Vec::new();
            Event::write_batch(&events, &mut body);
            (200, vec![("content-type".to_owned(), BATCH.to_owned())], body.into())
        }
        StandInAnswer::Response { status, headers, body } => (status, headers, body),
        StandInAnswer::Failure(why) => (500, Vec::new(), why.into()),
        StandInAnswer::Reject(why) => (400, Vec::new(), why.into()),
        StandInAnswer::Timeout => return Err(Unanswered(On::Timeout, "no answer from", true)),
        StandInAnswer::Connection => {
            return Err(Unanswered(On::Connection, "cannot connect to", false));
        }
        StandInAnswer::Crash => {
            return Err(Unanswered(On::Connection, "lost the connection to", true));
        }
    };
    let mut response = hyper::Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    let response = response.body(body).unwrap_or_else(|error| {
        let mut response = hyper::Response::new(format!("a stand-in: {error}").into());
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response
    });
    Ok(response.into())
}
