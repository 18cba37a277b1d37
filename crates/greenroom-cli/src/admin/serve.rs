//! Accepts connections and answers their requests, within limits on number, time and size.
//!
//! ```text
//! accept ──▶ place ──▶ headers ──▶ body ──▶ routes ──▶ answer
//!              │        10 s,       10 s,                └─ closed when nothing of it is taken for 30 s
//!              │        64 KiB      64 KiB
//!              │        └─ also the time between two requests
//!              └─ the connection that has waited longest goes for a new one
//! ```

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, HttpBody, to_bytes},
    http::{Method, Request, StatusCode},
    response::{IntoResponse, Response},
};
use greenroom_bus::http::server::{
    Connections, LARGEST_HEADERS, Moving, Place, has_too_large_headers,
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    time::{sleep, timeout},
};
use tower_service::Service;

use super::{answer::Refusal, audit::Peer};

/// How long a client may take to send the headers of a request, counted from the connection or the
/// last answer: an idle connection is closed after the same time.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);

/// How long it may take to send the body of a request.
pub(super) const BODY_WITHIN: Duration = Duration::from_secs(10);

/// How long it may leave an answer unread.
const STANDS_STILL: Duration = Duration::from_secs(30);

/// The largest body, in bytes. Only the edit of a dead letter needs one, but some clients send one.
const LARGEST_BODY: usize = 64 << 10;

/// The pause after a connection could not be accepted: the cause (no free descriptor) lasts.
const AFTER_AN_ERROR: Duration = Duration::from_millis(100);

/// Answers until it is dropped.
pub(super) async fn serve(listener: TcpListener, router: Router, most: usize) -> Infallible {
    let connections = Connections::up_to(most);
    let mut told = false;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                told = false;
                if let Some(place) = connections.enter() {
                    tokio::spawn(converse(stream, peer, place, router.clone()));
                }
                // Accepted connections get their turn before the next one displaces them.
                tokio::task::yield_now().await;
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                if !told {
                    tracing::warn!(%error, "the admin listener cannot accept a connection");
                }
                told = true;
                connections.close_longest_waiting();
                sleep(AFTER_AN_ERROR).await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Answers the requests of one connection until it ends, or must end.
async fn converse<S>(stream: S, peer: SocketAddr, place: Place, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let place = Arc::new(place);
    let (stream, last_move) = Moving::new(stream);
    let answering = place.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        let (router, place) = (router.clone(), answering.clone());
        async move { Ok::<_, Infallible>(answer(router, &place, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        // Above the limit, so that the answer says why: hyper's own has no words.
        .max_buf_size(2 * LARGEST_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // A client that broke off, or was too slow, gets no further answer.
        _ = connection => {}
        () = place.taken_over() => {}
        () = last_move.stands_still(STANDS_STILL, || place.is_answering()) => {}
    }
}

async fn answer(mut router: Router, place: &Place, request: Request<Incoming>) -> Response {
    let (head, body) = request.into_parts();
    if has_too_large_headers(&head) {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let what = format!("the headers are larger than {LARGEST_HEADERS} bytes");
        return Refusal::new(status, what, head.uri.path(), "send fewer headers").into_response();
    }
    // The handler of the request reads it, once the guard has admitted it.
    if takes_body(&head.method, head.uri.path()) {
        let _answering = place.answering();
        let Ok(answer) = router.call(Request::from_parts(head, Body::new(body))).await;
        return answer;
    }
    if let Err(refusal) = swallow(Body::new(body), head.uri.path()).await {
        return refusal.into_response();
    }
    let _answering = place.answering();
    let Ok(answer) = router.call(Request::from_parts(head, Body::empty())).await;
    answer
}

/// The one request that comes with a body: the edit of a dead letter.
fn takes_body(method: &Method, path: &str) -> bool {
    let number =
        path.strip_prefix("/api/dead-letters/").and_then(|rest| rest.strip_suffix("/edit"));
    *method == Method::POST && number.is_some_and(|number| !number.contains('/'))
}

/// Reads a body to its end: nothing else here needs it, and the next request comes after it.
async fn swallow(body: Body, path: &str) -> Result<(), Refusal> {
    let next = "leave the body out: the request is in the path and after its `?`";
    let refused = |status, what| Err(Refusal::new(status, what, path, next));
    let too_large = format!("the body is larger than {LARGEST_BODY} bytes, or was cut off");
    if body.size_hint().lower() > LARGEST_BODY as u64 {
        return refused(StatusCode::PAYLOAD_TOO_LARGE, too_large);
    }
    match timeout(BODY_WITHIN, to_bytes(body, LARGEST_BODY)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) => refused(StatusCode::PAYLOAD_TOO_LARGE, too_large),
        Err(_) => {
            let what = format!("the body did not arrive within {} s", BODY_WITHIN.as_secs());
            refused(StatusCode::REQUEST_TIMEOUT, what)
        }
    }
}

#[cfg(test)]
mod tests;
