//! Connections: taken, answered, and closed within bounds on number and time.

use std::{convert::Infallible, io, pin::pin, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{
    requests::answer,
    shared::{CurrentSettings, Shared},
};
use crate::http::server::{LARGEST_HEADERS, Moving, Place};

/// How long a client may leave an answer unread.
const STANDS_STILL: Duration = Duration::from_secs(30);

/// A late body is answered at most this long after its time is over.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// How long answers may take once the intake is closed.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// The pause after a connection could not be taken: the cause (no descriptor is free) lasts.
const AFTER_AN_ERROR: Duration = Duration::from_millis(100);

/// Takes connections until the intake is closed, and ends when the last of them has.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut closing = shared.closing.subscribe();
    let (mut open, mut told) = (JoinSet::new(), false);
    loop {
        let accepted = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => break,
            Some(_) = open.join_next(), if !open.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                told = false;
                // Answers are small: nothing is gained by waiting for more of them.
                let _ = stream.set_nodelay(true);
                if let Some(place) = shared.connections.enter() {
                    open.spawn(connection(stream, place, shared.clone()));
                }
                // Those that were taken get their turn before the next one pushes them out.
                tokio::task::yield_now().await;
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                if !told {
                    tracing::warn!(input = shared.name, %error, "a connection cannot be taken");
                }
                told = true;
                shared.connections.close_longest_waiting();
                sleep(AFTER_AN_ERROR).await;
            }
        }
    }
    drop(listener);
    let _ = timeout(LAST_ANSWERS, async { while open.join_next().await.is_some() {} }).await;
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// One connection, plain or with TLS.
pub(super) async fn connection<S>(stream: S, place: Place, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let current = shared.current();
    let Some(tls) = current.tls.clone() else {
        return converse(stream, place, shared, &current).await;
    };
    let mut closing = shared.closing.subscribe();
    let handshake = TlsAcceptor::from(tls).accept(stream);
    let shaken = tokio::select! {
        shaken = timeout(current.settings.header_timeout, handshake) => shaken,
        () = place.taken_over() => return,
        _ = closing.wait_for(|closing| *closing) => return,
    };
    match shaken {
        Ok(Ok(stream)) => converse(stream, place, shared, &current).await,
        Ok(Err(error)) => tracing::debug!(input = shared.name, %error, "no TLS"),
        Err(_) => tracing::debug!(input = shared.name, "no TLS in time"),
    }
}

/// Answers the requests of one connection until it ends, or has to.
async fn converse<S>(stream: S, place: Place, shared: Arc<Shared>, current: &CurrentSettings)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let place = Arc::new(place);
    let (stream, last_move) = Moving::new(stream);
    let (answering, answers) = (place.clone(), shared.clone());
    let service = service_fn(move |request| {
        let (place, shared) = (answering.clone(), answers.clone());
        async move {
            let answer = answer(&shared, &place, request).await;
            shared.answers.count(answer.status());
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(current.settings.header_timeout)
        .max_buf_size(LARGEST_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let mut closing = shared.closing.subscribe();
    // A client may take as long for headers and body as their limits allow, if that is more. A late
    // body gets an answer, which cutting the connection at the same time would prevent.
    let patience = || {
        let settings = &shared.current().settings;
        let body = settings.body_timeout.saturating_add(ANSWERS_WITHIN);
        STANDS_STILL.max(settings.header_timeout).max(body)
    };
    let ended = async {
        tokio::select! {
            // A client that broke it off, or was too slow, gets no further answer.
            _ = connection.as_mut() => return,
            _ = closing.wait_for(|closing| *closing) => {}
        }
        connection.as_mut().graceful_shutdown();
        // An error is the client's, which has closed the connection.
        let _ = connection.await;
    };
    tokio::select! {
        () = ended => {}
        () = place.taken_over() => {}
        () = last_move.stands_still_within(patience, || place.is_answering()) => {}
    }
}
