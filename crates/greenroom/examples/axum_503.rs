//! A saturated pool behind axum: excess requests get a 503 at once. A handler does that in one
//! line; a service gets it from tower's own load-shed layer.
//!
//! `cargo run -p greenroom --example axum_503`

use std::{
    collections::BTreeMap, convert::Infallible, net::SocketAddr, process::ExitCode, time::Duration,
};

use axum::{
    Router,
    error_handling::HandleErrorLayer,
    extract::{Path, Request},
    http::StatusCode,
    response::IntoResponse,
    routing::get,
};
use greenroom::{AddressOf, Overflow, prelude::*};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tower::{BoxError, ServiceBuilder, load_shed::error::Overloaded};

/// Draws pages, slowly.
struct Renderer;

impl Actor for Renderer {
    type Message = String;
    type Reply = String;
    type Error = Infallible;

    async fn handle(
        &mut self,
        path: String,
        _cx: &mut Context<Self>,
    ) -> Result<String, Self::Error> {
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok(format!("the page {path}\n"))
    }
}

/// The number of requests at once; the pool has room for 2 in hand and 4 in line.
const REQUESTS: usize = 50;

/// A handler that calls the pool itself.
async fn draw(pages: AddressOf<Renderer>, path: String) -> Result<String, (StatusCode, String)> {
    pages.call(path).await.map_err(|error| match error.is_overload() {
        true => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        false => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    })
}

/// The response to the client of the service, for each way in which a call ends without a reply.
async fn explain(error: BoxError) -> (StatusCode, &'static str) {
    match error.is::<Overloaded>() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "too many requests at once\n"),
        false => (StatusCode::INTERNAL_SERVER_ERROR, "the page could not be drawn\n"),
    }
}

fn app(pool: &Pool<Renderer>) -> Router {
    let pages = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(explain))
        .load_shed()
        .map_request(|request: Request| request.uri().path().to_owned())
        .map_response(String::into_response)
        .service(pool.service());
    let address = pool.address();
    Router::new()
        .route("/drawn/{page}", get(move |Path(page)| draw(address, page)))
        .route_service("/{*page}", pages)
}

/// Requests a page, every second one from the handler, and returns the response's status.
async fn ask(server: SocketAddr, page: usize) -> std::io::Result<u16> {
    let mut connection = TcpStream::connect(server).await?;
    let folder = if page.is_multiple_of(2) { "drawn" } else { "served" };
    let request =
        format!("GET /{folder}/{page} HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    connection.read_to_string(&mut response).await?;
    let status = response.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| std::io::Error::other("the response has no status"))
}

/// The number of responses with each status.
async fn ask_all(server: SocketAddr) -> Result<BTreeMap<u16, usize>, BoxError> {
    let mut asked: JoinSet<_> = (0..REQUESTS).map(|page| ask(server, page)).collect();
    let mut statuses = BTreeMap::new();
    while let Some(status) = asked.join_next().await {
        *statuses.entry(status??).or_default() += 1;
    }
    Ok(statuses)
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "an example shows what it sees")]
async fn main() -> Result<ExitCode, BoxError> {
    let pool = Pool::new(|_slot| Renderer).workers(2).capacity(4).overflow(Overflow::Reject);
    let pool = pool.spawn().await?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let server = listener.local_addr()?;
    let serving = tokio::spawn(axum::serve(listener, app(&pool)).into_future());

    let statuses = ask_all(server).await?;
    serving.abort();
    for (status, times) in &statuses {
        println!("{status}: {times} of {REQUESTS}");
    }
    let report = pool.stop(Stop::within(Duration::from_secs(5))).await;
    println!("the pool handled {} and nothing is left over", report.stats.handled);

    let seen = |status| statuses.contains_key(&status);
    let as_promised = seen(200) && seen(503) && report.left_over.is_empty();
    Ok(if as_promised { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
