//! The target: a server that answers each request with nothing, in a process of its own, until its
//! standard input ends.

use std::{
    convert::Infallible,
    io::{Read, Write},
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::{Request, Response, StatusCode, body::Incoming, server::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use crate::{Failure, side::Answers};

/// One in so many is refused, where any is.
const REFUSED: u64 = 100;

static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// Prints its URL once it listens.
pub fn run(answers: &str) -> Result<ExitCode, Failure> {
    let answers = Answers::named(answers)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}/events", listener.local_addr()?);
        std::io::stdout().flush()?;
        tokio::select! {
            ended = listen(&listener, answers) => ended,
            _ = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0])) => Ok(()),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn listen(listener: &TcpListener, answers: Answers) -> Result<(), Failure> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve(stream, answers));
    }
}

async fn serve(stream: TcpStream, answers: Answers) {
    let service = hyper::service::service_fn(|request| answer(request, answers));
    // A client that goes away is no failure of the target.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    answers: Answers,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let whole = request.into_body().collect().await.is_ok();
    let number = REQUESTS.fetch_add(1, Ordering::Relaxed);
    let mut response = Response::new(Empty::new());
    let is_refused = answers == Answers::SomeRefused && number.is_multiple_of(REFUSED);
    *response.status_mut() = match whole && !is_refused {
        true => StatusCode::NO_CONTENT,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    if answers == Answers::Later {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(response)
}
