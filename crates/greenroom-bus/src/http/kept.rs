//! Kept connections, which a target may close at any time without a word.
//!
//! A request on its way over such a connection is lost, although the target answers every request
//! that it receives. The client reports only a lost connection, so this records the details that
//! identify the case:
//!
//! ```text
//! the client opens a connection ──▶ the number of it, by its address on this machine
//! an answer comes ──▶ whichever request the connection carries next, it is a kept one
//! a request is lost ──▶ the address it was sent from ──▶ opened before the request began: kept
//! ```
//!
//! An answer is noted in the poll that yields it, and another request can be sent over the
//! connection from that poll on. So a poll holds `polls` to read, and whoever judges a lost request
//! waits for those in progress: otherwise it might judge before the answer was noted.
//!
//! Price: a lock for each poll and answer, and an entry for each port that the client has used.

use std::{
    collections::HashMap,
    error::Error,
    future::poll_fn,
    io::{self, ErrorKind},
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use hyper_util::client::legacy::{
    self,
    connect::{Connected, Connection, HttpInfo},
};
use parking_lot::{Mutex, RwLock};
use reqwest::{Client, Request, Response};
use tower::{Layer, Service};

/// Which connections a client has opened: a layer around its connector.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenedConnections {
    numbers: Arc<Mutex<ConnectionNumbers>>,
    /// Held to read by each poll of a request.
    polls: Arc<RwLock<()>>,
}

/// The number of a connection that has carried an answer: older than all requests.
const OLDEST: u64 = 0;

#[derive(Debug, Default)]
struct ConnectionNumbers {
    /// How many there were so far.
    count: u64,
    /// The number of the last one that was opened from an address, from 1, or [`OLDEST`].
    numbers: HashMap<SocketAddr, u64>,
}

impl OpenedConnections {
    /// How many there were so far.
    pub(super) fn count(&self) -> u64 {
        self.numbers.lock().count
    }

    fn note(&self, connected: &Connected) {
        let Some(address) = local_address(connected) else { return };
        let mut opened = self.numbers.lock();
        opened.count += 1;
        let number = opened.count;
        opened.numbers.insert(address, number);
    }

    /// Sends a request, and notes its answer.
    pub(super) async fn execute(
        &self,
        client: &Client,
        request: Request,
    ) -> Result<Response, reqwest::Error> {
        let mut sent = pin!(client.execute(request));
        poll_fn(|cx| {
            let _noted = self.polls.read();
            let polled = sent.as_mut().poll(cx);
            if let Poll::Ready(Ok(response)) = &polled {
                self.answered(response);
            }
            polled
        })
        .await
    }

    /// From now on, requests over the connection of this answer use a kept one, including a request
    /// that had begun before the connection was opened, and has waited for it.
    fn answered(&self, response: &Response) {
        if let Some(info) = response.extensions().get::<HttpInfo>() {
            self.numbers.lock().numbers.insert(info.local_addr(), OLDEST);
        }
    }

    /// Whether a request was lost over a kept connection, or one of the first `before`, and before
    /// the head of an answer was there.
    pub(super) fn is_lost_kept(&self, error: &reqwest::Error, before: u64) -> bool {
        drop(self.polls.write());
        let causes = || std::iter::successors(error.source(), |&cause| cause.source());
        let sent_over = causes().find_map(|cause| {
            local_address(cause.downcast_ref::<legacy::Error>()?.connect_info()?)
        });
        let number =
            sent_over.and_then(|address| self.numbers.lock().numbers.get(&address).copied());
        !error.is_timeout() && number.is_some_and(|number| number <= before) && causes().any(is_end)
    }
}

fn local_address(connected: &Connected) -> Option<SocketAddr> {
    let mut extras = Default::default();
    connected.get_extras(&mut extras);
    extras.get().map(HttpInfo::local_addr)
}

/// Whether it is the end of a connection: neither an answer that is none, nor the end of a stream.
fn is_end(cause: &(dyn Error + 'static)) -> bool {
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        let ended = [
            ErrorKind::BrokenPipe,
            ErrorKind::ConnectionAborted,
            ErrorKind::ConnectionReset,
            ErrorKind::UnexpectedEof,
        ];
        return ended.contains(&error.kind());
    }
    cause.downcast_ref().is_some_and(hyper::Error::is_incomplete_message)
}

impl<S> Layer<S> for OpenedConnections {
    type Service = NotingConnector<S>;

    fn layer(&self, inner: S) -> Self::Service {
        NotingConnector { inner, opened: self.clone() }
    }
}

/// A connector that records the connections it opens.
#[derive(Debug, Clone)]
pub(super) struct NotingConnector<S> {
    inner: S,
    opened: OpenedConnections,
}

impl<S, R> Service<R> for NotingConnector<S>
where
    S: Service<R, Response: Connection, Future: Send + 'static>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, to: R) -> Self::Future {
        let (connecting, opened) = (self.inner.call(to), self.opened.clone());
        Box::pin(async move {
            let connection = connecting.await?;
            opened.note(&connection.connected());
            Ok(connection)
        })
    }
}
