//! Slow and greedy clients, in virtual time.

use axum::routing::{get, post};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    time::Instant,
};

use super::*;

/// More than any buffer on the way holds.
const LARGE: usize = 1 << 20;

fn router() -> Router {
    Router::new()
        .route("/", get(async || "well"))
        .route("/large", get(async || "x".repeat(LARGE)))
        .route("/told", post(async || "told"))
}

fn connect(all: &Arc<Connections>) -> DuplexStream {
    let (client, server) = duplex(1024);
    let peer = ([127, 0, 0, 1], 1).into();
    tokio::spawn(converse(server, peer, all.enter().unwrap(), router()));
    client
}

/// What comes until the connection is closed, and after how many seconds.
async fn ends(mut client: DuplexStream) -> (String, u64) {
    let (started, mut answer) = (Instant::now(), String::new());
    client.read_to_string(&mut answer).await.unwrap();
    (answer, started.elapsed().as_secs())
}

async fn send(sent: &str) -> (String, u64) {
    let mut client = connect(&Connections::up_to(1));
    client.write_all(sent.as_bytes()).await.unwrap();
    ends(client).await
}

#[tokio::test(start_paused = true)]
async fn half_requests_are_closed_after_the_time_for_headers() {
    for half in ["", "GET / HTTP/1.1\r\nHost: localh"] {
        let (answer, after) = send(half).await;
        assert_eq!((answer.as_str(), after), ("", 10), "{half:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_header_byte_every_second_wins_no_time() {
    let mut client = connect(&Connections::up_to(1));
    let started = Instant::now();
    while client.write_all(b"G").await.is_ok() {
        sleep(Duration::from_secs(1)).await;
    }
    assert!(started.elapsed() <= Duration::from_secs(12), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_is_closed_when_nothing_more_is_asked() {
    let (answer, after) = send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("well"), "{answer}");
    assert_eq!(after, 10);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_waited_for_so_long_only() {
    let (answer, after) = send("POST /told HTTP/1.1\r\nContent-Length: 5\r\n\r\nab").await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("within 10 s"), "{answer}");
    assert!((10..=20).contains(&after), "{after}");
}

#[tokio::test(start_paused = true)]
async fn headers_and_bodies_have_a_largest_size() {
    let headers = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(LARGE));
    let body = format!("POST /told HTTP/1.1\r\nContent-Length: {LARGE}\r\n\r\n");
    for (sent, status) in [(headers, "431"), (body, "413")] {
        let mut client = connect(&Connections::up_to(1));
        // It may be closed before all was sent.
        let _ = client.write_all(sent.as_bytes()).await;
        let (answer, _) = ends(client).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    let (answer, _) = send("POST /told HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}").await;
    assert!(answer.starts_with("HTTP/1.0 200"), "a small body does no harm: {answer}");
}

#[tokio::test(start_paused = true)]
async fn headers_are_bounded_as_the_documentation_says() {
    for (bytes, status) in [(64_000, "200"), (66_000, "431"), (120_000, "431")] {
        let (answer, _) =
            send(&format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(bytes))).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{bytes}: {answer}");
        let told = answer.contains("the headers are larger than 65536 bytes");
        assert_eq!(told, status == "431", "{bytes}: {answer}");
    }
    for (lines, status) in [(100, "200"), (101, "431")] {
        let (answer, _) =
            send(&format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(lines))).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{lines}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_takes_is_given_up() {
    let all = Connections::up_to(1);
    let mut client = connect(&all);
    client.write_all(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    sleep(Duration::from_secs(31)).await;
    let (answer, _) = ends(client).await;
    assert!(answer.len() < LARGE, "{}", answer.len());
}

#[tokio::test(start_paused = true)]
async fn an_operator_gets_through_while_half_requests_hold_every_place() {
    let all = Connections::up_to(3);
    let mut half = Vec::new();
    for _ in 0..50 {
        let mut client = connect(&all);
        client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        half.push(client);
        tokio::task::yield_now().await;
    }
    let mut operator = connect(&all);
    operator.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    let (answer, after) = ends(operator).await;
    assert!(answer.starts_with("HTTP/1.0 200") && after == 0, "{answer} after {after} s");
}
