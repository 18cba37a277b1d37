//! `http`: each event is posted to a URL, in the CloudEvents HTTP binding.
//!
//! ```text
//! POST /prices HTTP/1.1                     HTTP/1.1 200 OK
//! ce-specversion: 1.0                       ce-specversion: 1.0
//! ce-id: 17                            ──▶  ce-id: 17-priced
//! ce-source: /shop                          …
//! ce-type: order.placed                ◀──
//! greenroom-attempt: 1                      {"price":12}
//! greenroom-fence: 1764278460000
//! idempotency-key: /shop 17
//! content-type: application/json
//!
//! {"n":1}
//! ```
//!
//! The events in the response go to the outputs: one in binary mode (`ce-*` headers) or structured
//! mode (`application/cloudevents+json`), or several as a batch
//! (`application/cloudevents-batch+json`). Any other successful response, and any without a body
//! (204 and 205 have none), settles the event and passes on nothing, or the event itself if `pass`
//! is set. Its body is not needed: it is read for a second at most, so that the connection can be
//! reused, and may break off. The consequences of other statuses, of a timeout and of a lost
//! connection are in [`STATUS_MAP`], which a [`StatusMap`] overrides row by row. A response header
//! [`OUTCOME`] with `retry`, `reject` or `park` takes precedence over the status, even over
//! success. If an event is to be retried, `Retry-After` says when.
//!
//! In a pool with `batch`, waiting events of one line are posted together, in batch mode
//! (`application/cloudevents-batch+json`), with the highest of their attempts and without an
//! idempotency key: each event has its source and id. The status applies to all of them, unless it
//! rejects or parks: then each is posted by itself. A response with events is refused, because it
//! does not say which of them they belong to; nothing is posted again for it, even if it breaks
//! off.
//!
//! A kept connection that the target has closed is no attempt: the request goes out once more, over
//! a new one (`http/kept.rs`).
//!
//! After a timeout the target may still be at work on the event while the next attempt arrives, and
//! after a connection that is lost it may have handled it. The idempotency key, which is the same
//! in all attempts at an event, lets the target notice; the report counts such attempts as
//! `repeated at most`.

mod kind;
mod options;
mod response;
mod shared;

use std::sync::Arc;

use parking_lot::RwLock;

pub use self::{
    kind::HANDLER,
    options::{HttpOptions, PostTo},
};
pub use crate::http::{
    NoRow, NoTarget, NoVerdict, OUTCOME, On, Row, STATUS_MAP, StatusMap, StatusMapError, Verdict,
    check_url, message::Mode,
};

use self::shared::Shared;
use super::{Attempt, Handler, HandlerFactory, HandlerResult, Handling};
use crate::{BoxFuture, event::Event, stand_in::StandIn};

/// Builds [`Http`] handlers, which share one client and its connections.
#[derive(Debug, Clone)]
pub struct HttpFactory {
    current: Current,
}

/// Shared by attempts that begin now. Replaced as a whole.
type Current = Arc<RwLock<Arc<Shared>>>;

impl HttpFactory {
    /// A factory of handlers that post to `options.url`. Files of `tls` are read here. Connects to
    /// nothing yet.
    ///
    /// # Errors
    /// A sentence for the operator if the URL, a header or a row of `status` cannot be used, a
    /// limit is 0, or TLS cannot be set up.
    pub fn new(options: &HttpOptions) -> Result<Self, String> {
        let shared = Shared::new(options, options.target()?, None)?;
        Ok(Self { current: Arc::new(RwLock::new(shared)) })
    }

    /// Like [`new`](Self::new), with a stand-in in place of the target. Certificates are not read.
    ///
    /// # Errors
    /// As there.
    pub fn standing_in(options: &HttpOptions, stand_in: StandIn) -> Result<Self, String> {
        let options = HttpOptions { tls: None, ..options.clone() };
        let shared = Shared::new(&options, options.target()?, Some(stand_in))?;
        Ok(Self { current: Arc::new(RwLock::new(shared)) })
    }

    /// Posts with other options from the next attempt on. Returns false if they and their files are
    /// the same as before.
    ///
    /// # Errors
    /// Like [`new`](Self::new). Nothing has changed then.
    pub fn reconfigure(&self, options: &HttpOptions) -> Result<bool, String> {
        let (current, target) = (self.current.read().clone(), options.target()?);
        if current.options == *options && current.target == target {
            return Ok(false);
        }
        let shared = Shared::new(options, target, None)?;
        *self.current.write() = shared;
        Ok(true)
    }
}

impl HandlerFactory for HttpFactory {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(Http { current: self.current.clone() }))
    }

    fn sends_fence(&self) -> bool {
        true
    }
}

/// Posts each event and applies the response.
#[derive(Debug)]
pub struct Http {
    current: Current,
}

impl Handler for Http {
    fn handle<'a>(&'a mut self, event: &'a Event, attempt: &'a Attempt) -> Handling<'a> {
        let shared = self.current.read().clone();
        Handling::Later(Box::pin(async move { shared.attempt(event, attempt).await }))
    }

    fn handle_all<'a>(
        &'a mut self,
        events: &'a [(&'a Event, Attempt)],
    ) -> BoxFuture<'a, Vec<HandlerResult>> {
        let shared = self.current.read().clone();
        Box::pin(async move { shared.attempt_all(events).await })
    }
}

#[cfg(test)]
mod tests;
