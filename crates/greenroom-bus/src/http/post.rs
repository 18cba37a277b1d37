//! Events posted by hand: one request each, and its answer.

use std::{fmt, time::Duration};

use bytes::Bytes;
use reqwest::Request;

use super::{
    answer,
    config::TargetConfig,
    connection::Connection,
    message::{self, SentAttempt},
};
use crate::event::Event;

/// The kept part of an answer.
const KEPT: usize = 4 << 10;

/// The part that is read, so that the connection can be reused.
const READ: usize = 64 << 10;

/// Posts batches of events, or other bodies, to a target, over connections that it keeps.
pub struct Poster(Connection);

/// The answer of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// The status.
    pub status: u16,
    /// How long it asks to wait.
    pub retry_after: Option<Duration>,
    /// The beginning of the body, at most 4 KiB.
    pub body: Bytes,
}

/// There is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
#[non_exhaustive]
pub struct NotPosted {
    /// The error, in words.
    pub text: String,
    /// The certificate of one side is not trusted by the other: trying again does not help.
    pub untrusted: bool,
}

impl Poster {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// A sentence for the caller, if the URL, a header or TLS cannot be used. It repeats no secret.
    pub fn new(target: &TargetConfig) -> Result<Self, String> {
        Connection::new(target).map(Self)
    }

    /// Posts these events as one batch. `attempt`, from 1, is sent to the target.
    ///
    /// # Errors
    /// There is no answer; the target may have had the events all the same.
    ///
    /// # Cancel safety
    /// The target may have had the events.
    pub async fn post(&self, events: &[Event], attempt: u32) -> Result<Posted, NotPosted> {
        let attempt = SentAttempt { number: attempt, fence: None };
        self.send(message::batch(&self.0, events.iter(), attempt)).await
    }

    /// Posts a body of this content type as it is.
    ///
    /// # Errors
    /// There is no answer; the target may have had it all the same.
    ///
    /// # Cancel safety
    /// The target may have had it.
    pub async fn post_body(
        &self,
        content_type: &'static str,
        body: Bytes,
    ) -> Result<Posted, NotPosted> {
        self.send(message::plain(&self.0, content_type, body)).await
    }

    async fn send(&self, request: Request) -> Result<Posted, NotPosted> {
        let answered = self.0.send(request).await;
        let mut response =
            answered.map_err(|none| NotPosted { text: none.text, untrusted: none.untrusted })?;
        let retry_after = answer::wait(&response);
        let body = answer::read_some(&mut response, READ, KEPT).await.freeze();
        Ok(Posted { status: response.status().as_u16(), retry_after, body })
    }
}

/// Leaves out the parts that may be secret.
impl fmt::Debug for Poster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Poster").field(&self.0.target.shown).finish()
    }
}
