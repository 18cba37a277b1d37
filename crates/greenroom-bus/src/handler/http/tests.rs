//! The handler against a real server that answers with what the test wrote.

mod event_url;
mod kept;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use greenroom_config::{Secret, table::assert_options};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use super::*;
use crate::handler::{Effect, Failure, FailureKind, Outputs, samples};

/// A server that gives the same response to every request.
struct Server {
    url: String,
    /// The requests as they came, head and body.
    requests: mpsc::UnboundedReceiver<String>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// `None` takes requests and never answers.
    async fn start(response: Option<String>) -> Self {
        Self::serving(response, false).await
    }

    /// Answers this, and closes the connection.
    async fn breaking(response: &str) -> Self {
        Self::serving(Some(response.to_owned()), true).await
    }

    async fn serving(response: Option<String>, closes: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://me:secret@{}/in?key=secret", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::unbounded_channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, SeqCst);
                tokio::spawn(serve(stream, response.clone(), closes, sender.clone()));
            }
        });
        Self { url, requests, connections }
    }

    async fn answering(status: &str, headers: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n");
        Self::start(Some(head + body)).await
    }

    fn config(&self) -> HttpOptions {
        HttpOptions::new(&self.url)
    }

    async fn post(&self) -> HandlerResult {
        post(self.config()).await
    }
}

/// Reads requests with a content length, one after the other.
async fn serve(
    mut stream: TcpStream,
    response: Option<String>,
    closes: bool,
    seen: mpsc::UnboundedSender<String>,
) {
    let mut bytes = Vec::new();
    while stream.read_buf(&mut bytes).await.is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() < length.map_or(0, |length| length.parse().unwrap()) {
            continue;
        }
        bytes.clear();
        let _ = seen.send(text);
        if let Some(response) = &response {
            // Fails where the handler has heard enough.
            let _ = stream.write_all(response.as_bytes()).await;
        }
        if closes {
            return;
        }
    }
}

async fn post(config: HttpOptions) -> HandlerResult {
    let (event, attempt) = (samples::event("a 1", "{\"n\":1}"), samples::attempt());
    let mut handler = HttpFactory::new(&config).unwrap().build(0).unwrap();
    samples::settle(handler.handle(&event, &attempt)).await
}

async fn failure(status: &str, headers: &str) -> Failure {
    let server = Server::answering(status, headers, "why\nso").await;
    server.post().await.expect_err(status)
}

#[tokio::test]
async fn u01_binary_request_has_these_headers_and_no_others() {
    let mut server = Server::answering("204 No Content", "", "").await;
    let config =
        HttpOptions { headers: Secret(vec![("X-Team".into(), "blue".into())]), ..server.config() };
    assert!(matches!(post(config).await, Ok(Outputs::None)));
    let request = server.requests.recv().await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("POST /in?key=secret HTTP/1.1"));
    let mut headers: Vec<_> = lines.filter(|line| !line.starts_with("host: ")).collect();
    headers.sort_unstable();
    let expected = [
        "accept: */*",
        "authorization: Basic bWU6c2VjcmV0",
        "ce-id: a%201",
        "ce-source: /samples",
        "ce-specversion: 1.0",
        "ce-subject: s",
        "ce-type: sample.made",
        "content-length: 7",
        "content-type: application/json",
        "greenroom-attempt: 1",
        "greenroom-fence: 1764278460000",
        "idempotency-key: /samples a%201",
        concat!("user-agent: greenroom/", env!("CARGO_PKG_VERSION")),
        "x-team: blue",
    ];
    assert_eq!(headers, expected);
    assert_eq!(body, "{\"n\":1}");
}

#[tokio::test]
async fn u01_structured_request_carries_the_whole_event() {
    let mut server = Server::answering("200 OK", "", "fine").await;
    let config = HttpOptions { mode: Mode::Structured, pass: true, ..server.config() };
    assert!(matches!(post(config).await, Ok(Outputs::Same)));
    let request = server.requests.recv().await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: application/cloudevents+json"), "{head}");
    assert!(!head.contains("ce-id") && head.contains("greenroom-attempt: 1"), "{head}");
    assert_eq!(Event::parse(body.as_bytes()).unwrap(), samples::event("a 1", "{\"n\":1}"));
}

#[tokio::test]
async fn u01_outputs_are_read_from_the_response() {
    let one = r#"{"specversion":"1.0","id":"out","source":"s","type":"t"}"#;
    let batch = format!("[{one},{one}]");
    let cases = [
        ("content-type: application/cloudevents+json\r\n", one, 1),
        ("content-type: application/cloudevents-batch+json\r\n", &batch, 2),
        ("ce-specversion: 1.0\r\nce-id: out\r\nce-source: s\r\nce-type: t\r\n", "{}", 1),
    ];
    for (headers, body, count) in cases {
        let server = Server::answering("200 OK", headers, body).await;
        let Ok(Outputs::Events(events)) = server.post().await else { panic!("{headers}") };
        assert_eq!(events.len(), count, "{headers}");
        assert!(events.iter().all(|event| event.id() == "out"), "{headers}");
    }
}

#[tokio::test]
async fn u01_a_response_that_claims_events_and_has_none_rejects() {
    let headers = "content-type: application/cloudevents+json\r\n";
    let failure = Server::answering("200 OK", headers, "{}").await.post().await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Reject);
    assert!(failure.error.contains("no CloudEvent: required attribute"), "{}", failure.error);
}

const CARRIES_EVENTS: &str = "ce-specversion: 1.0\r\nce-id: out\r\nce-source: s\r\nce-type: t\r\n";

#[tokio::test]
async fn u04_an_answer_without_a_body_is_no_event_whatever_its_headers_say() {
    let types = ["application/cloudevents+json", "application/cloudevents-batch+json"];
    let announced = types.map(|ty| format!("content-type: {ty}\r\n"));
    for headers in announced.iter().map(|headers| &**headers).chain([CARRIES_EVENTS]) {
        for status in ["200 OK", "202 Accepted", "204 No Content", "205 Reset Content"] {
            for length in ["content-length: 0\r\n", "transfer-encoding: chunked\r\n"] {
                let end = if length.starts_with('t') { "0\r\n\r\n" } else { "" };
                let length = if status.starts_with("204") { "" } else { length };
                let end = if length.is_empty() { "" } else { end };
                let answer = format!("HTTP/1.1 {status}\r\n{length}{headers}\r\n{end}");
                let server = Server::start(Some(answer.clone())).await;
                assert!(matches!(server.post().await, Ok(Outputs::None)), "{answer}");
                let config = HttpOptions { pass: true, ..server.config() };
                assert!(matches!(post(config).await, Ok(Outputs::Same)), "{answer}");
                let results = post_all(server.config(), &["a", "b"]).await;
                assert!(results.iter().all(Result::is_ok), "{answer}");
            }
        }
    }
}

#[tokio::test]
async fn u01_a_response_with_events_beyond_the_limit_rejects_and_names_the_option() {
    let server = Server::answering("200 OK", CARRIES_EVENTS, &"x".repeat(1000)).await;
    let config = |max_response| HttpOptions { max_response, ..server.config() };
    assert!(post(config(1000)).await.is_ok());
    let failure = post(config(999)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Reject);
    assert!(failure.error.contains("raise `http.max_response`"), "{}", failure.error);
    // Without a length that is said beforehand.
    let body = format!("3e8\r\n{}\r\n0\r\n\r\n", "x".repeat(1000));
    let head = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n{CARRIES_EVENTS}\r\n");
    let server = Server::start(Some(head + &body)).await;
    let config = |max_response| HttpOptions { max_response, ..server.config() };
    assert!(post(config(1000)).await.is_ok());
    assert_eq!(post(config(999)).await.unwrap_err().kind, FailureKind::Reject);
}

#[tokio::test]
async fn a_2xx_settles_whatever_becomes_of_a_body_that_nobody_needs() {
    let long = format!("content-length: 1000\r\n\r\n{}", "x".repeat(1000));
    for rest in [
        &long,
        "content-length: 1000\r\n\r\nhalf",
        "content-length: 1000\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n5\r\nhalf",
        "transfer-encoding: chunked\r\n\r\nno chunk at all\r\n",
        "transfer-encoding: chunked\r\n\r\nffffffffffffffffffff\r\n",
        "content-type: application/json\r\n\r\nuntil the end",
    ] {
        let server = Server::breaking(&format!("HTTP/1.1 200 OK\r\n{rest}")).await;
        let config = HttpOptions { max_response: 100, ..server.config() };
        assert!(matches!(post(config).await, Ok(Outputs::None)), "{rest:?}");
        let config = HttpOptions { max_response: 100, pass: true, ..server.config() };
        assert!(matches!(post(config).await, Ok(Outputs::Same)), "{rest:?}");
    }
}

#[tokio::test]
async fn the_connection_of_a_body_that_nobody_needs_is_used_again_where_it_was_read() {
    let server = Server::answering("200 OK", "", &"x".repeat(10_000)).await;
    let factory = HttpFactory::new(&server.config()).unwrap();
    let (event, attempt) = (samples::event("a", "{}"), samples::attempt());
    for worker in 0..10 {
        let mut handler = factory.build(worker).unwrap();
        samples::settle(handler.handle(&event, &attempt)).await.unwrap();
    }
    assert_eq!(server.connections.load(SeqCst), 1);
}

/// What an attempt ends in, and what it may have done, where the target writes this and closes the
/// connection.
async fn broken_off(response: &str) -> Failure {
    Server::breaking(response).await.post().await.expect_err(response)
}

#[tokio::test]
async fn a_connection_that_is_lost_once_the_event_was_sent_may_have_had_an_effect() {
    let events = format!("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n{CARRIES_EVENTS}\r\n");
    for response in [
        "",
        "HTTP/1.1 20",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "not HTTP at all\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\nab",
        &events,
        &format!("{events}half"),
        &events.replace("content-length: 9\r\n", "transfer-encoding: chunked\r\n"),
        &format!("HTTP/1.1 200 OK\r\n{}\r\n", "x-many: headers\r\n".repeat(1_000)),
        &format!("HTTP/1.1 200 OK\r\nx-long: {}\r\n\r\n", "x".repeat(2_000_000)),
    ] {
        let (failure, shown) = (broken_off(response).await, &response[..response.len().min(99)]);
        assert_eq!(failure.kind, FailureKind::Retry { after: None }, "{shown:?}: {failure}");
        assert_eq!(failure.effect, Effect::Unknown, "{shown:?}: {failure}");
        assert!(failure.error.contains("lost the connection to http://127"), "{failure}");
    }
    for gateway in ["502 Bad Gateway", "504 Gateway Timeout"] {
        assert_eq!(failure(gateway, "").await.effect, Effect::Unknown, "{gateway}");
    }
    for answered in ["500 No", "503 Busy", "404 Not Found", "401 Unauthorized"] {
        assert_eq!(failure(answered, "").await.effect, Effect::Answered, "{answered}");
    }
}

#[tokio::test]
async fn a_connection_that_is_reset_may_have_had_an_effect() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // Closed with bytes that nobody has read, it is reset.
            let _ = stream.read(&mut [0; 10]).await;
        }
    });
    let failure = post(HttpOptions::new(url)).await.unwrap_err();
    assert_eq!(failure.effect, Effect::Unknown, "{failure}");
}

#[tokio::test]
async fn answers_before_the_answer_are_passed_over() {
    let flood = "HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n".repeat(1_000);
    let server = Server::start(Some(flood + "HTTP/1.1 204 No Content\r\n\r\n")).await;
    assert!(matches!(server.post().await, Ok(Outputs::None)));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_cannot_be_found_or_reached_has_had_nothing() {
    // A name and an address that nobody may have (RFC 2606, RFC 5737).
    for url in ["http://target.invalid/", "http://192.0.2.1/"] {
        let failure = post(HttpOptions::new(url)).await.unwrap_err();
        assert_eq!(failure.effect, Effect::None, "{failure}");
        assert!(failure.error.contains("cannot connect to http://"), "{failure}");
    }
}

#[tokio::test]
async fn a_target_that_speaks_no_tls_has_had_nothing() {
    let server = Server::answering("200 OK", "", "").await;
    let url = server.url.replace("http://", "https://");
    let failure = post(HttpOptions::new(url)).await.unwrap_err();
    assert_eq!(failure.effect, Effect::None, "{failure}");
    assert!(failure.error.contains("cannot connect to"), "{failure}");
}

#[tokio::test]
async fn u04_statuses_become_failures_that_say_what_happened() {
    let wait = |after: u64| FailureKind::Retry { after: Some(Duration::from_secs(after)) };
    let backoff = FailureKind::Retry { after: None };
    let cases = [
        ("500 Internal Server Error", "", backoff),
        ("429 Too Many Requests", "retry-after: 7\r\n", wait(7)),
        ("503 Service Unavailable", "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n", backoff),
        ("503 Service Unavailable", "retry-after: 0\r\n", backoff),
        ("404 Not Found", "", FailureKind::Reject),
        ("401 Unauthorized", "", FailureKind::Pause),
        ("302 Found", "location: http://127.0.0.1:1/\r\n", FailureKind::Reject),
    ];
    for (status, headers, kind) in cases {
        let failure = failure(status, headers).await;
        assert_eq!(failure.kind, kind, "{status}");
        assert!(failure.error.starts_with(&format!("http: {status} after ")), "{failure}");
        assert!(failure.error.contains(" ms from http://127.0.0.1:"), "{failure}");
        assert!(failure.error.contains("/in: why\\nso"), "{}", failure.error);
        assert!(!failure.error.contains("secret"), "{}", failure.error);
    }
}

#[tokio::test]
async fn u04_an_error_quotes_the_first_bytes_of_a_long_body() {
    let server = Server::answering("500 No", "", &"y".repeat(100_000)).await;
    let failure = server.post().await.unwrap_err();
    assert_eq!(failure.error.matches('y').count(), 200);
}

#[tokio::test]
async fn u04_no_answer_in_time_is_a_timeout() {
    let server = Server::start(None).await;
    let config = HttpOptions { timeout: Duration::from_millis(100), ..server.config() };
    let failure = post(config).await.unwrap_err();
    assert_eq!((failure.kind, failure.effect), (FailureKind::Timeout, Effect::Unknown));
    assert!(failure.error.contains("within 100ms"), "{}", failure.error);
    assert!(!failure.error.contains("secret"), "{}", failure.error);
}

#[tokio::test]
async fn u04_a_body_with_events_that_stalls_is_a_timeout_and_another_one_is_not_waited_for() {
    let stalls = |headers| format!("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n{headers}\r\nab");
    let timeout = Duration::from_millis(500);
    let server = Server::start(Some(stalls(CARRIES_EVENTS))).await;
    let failure = post(HttpOptions { timeout, ..server.config() }).await.unwrap_err();
    assert_eq!((failure.kind, failure.effect), (FailureKind::Timeout, Effect::Unknown));
    let server = Server::start(Some(stalls(""))).await;
    assert!(post(HttpOptions { timeout, ..server.config() }).await.is_ok());
}

#[tokio::test]
async fn u04_a_refused_connection_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/?key=secret", listener.local_addr().unwrap());
    drop(listener);
    let failure = post(HttpOptions::new(url)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Retry { after: None });
    assert_eq!(failure.effect, Effect::None, "nobody has had it");
    assert!(failure.error.contains("cannot connect to http://127.0.0.1:"), "{}", failure.error);
    assert!(failure.error.contains("refused") && !failure.error.contains("secret"));
}

fn row(on: &str, verdict: Verdict) -> (String, String) {
    (on.to_owned(), verdict.as_str().to_owned())
}

/// What becomes of an answer with rows of a configuration before the usual map.
async fn with_rows(rows: &[(&str, Verdict)], status: &str, headers: &str) -> HandlerResult {
    let server = Server::answering(status, headers, "").await;
    let status = rows.iter().map(|(on, verdict)| row(on, *verdict)).collect();
    post(HttpOptions { status, ..server.config() }).await
}

#[tokio::test]
async fn u04_a_row_of_the_configuration_decides() {
    let rows = [("409", Verdict::Settle), ("5xx", Verdict::Park), ("503", Verdict::Retry)];
    assert!(with_rows(&rows, "409 Conflict", "").await.is_ok());
    let kind = |result: HandlerResult| result.unwrap_err().kind;
    assert_eq!(kind(with_rows(&rows, "500 No", "").await), FailureKind::Park);
    let after = Some(Duration::from_secs(3));
    let busy = with_rows(&rows, "503 Busy", "retry-after: 3\r\n").await;
    assert_eq!(kind(busy), FailureKind::Retry { after });
    assert_eq!(kind(with_rows(&rows, "422 No", "").await), FailureKind::Reject);
}

#[tokio::test]
async fn u04_a_row_of_the_configuration_decides_where_nobody_answers() {
    let server = Server::start(None).await;
    let timeout = Duration::from_millis(50);
    let status = vec![row("timeout", Verdict::Reject)];
    let failure = post(HttpOptions { timeout, status, ..server.config() }).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Reject);
    assert!(failure.error.contains("no answer"), "{failure}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let status = vec![row("connection", Verdict::Pause)];
    let failure = post(HttpOptions { status, ..HttpOptions::new(url) }).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Pause);
}

#[tokio::test]
async fn u04_a_response_header_goes_before_the_status() {
    let said = async |status, word: &str| {
        let headers = format!("greenroom-outcome: {word}\r\nretry-after: 2\r\n");
        with_rows(&[], status, &headers).await.map_err(|failure| failure.kind)
    };
    let after = Some(Duration::from_secs(2));
    for status in ["200 OK", "422 No", "500 No", "401 No"] {
        assert_eq!(said(status, "retry").await.unwrap_err(), FailureKind::Retry { after });
        assert_eq!(said(status, "reject").await.unwrap_err(), FailureKind::Reject);
        assert_eq!(said(status, "park").await.unwrap_err(), FailureKind::Park);
    }
    assert!(said("200 OK", "settle").await.is_ok(), "not understood: the status decides");
    assert_eq!(said("422 No", "whatever").await.unwrap_err(), FailureKind::Reject);
}

#[tokio::test]
async fn u01_workers_share_connections_and_errors_keep_them() {
    let server = Server::answering("500 No", "", "not now").await;
    let factory = HttpFactory::new(&server.config()).unwrap();
    let (event, attempt) = (samples::event("a", "{}"), samples::attempt());
    for worker in 0..10 {
        let mut handler = factory.build(worker).unwrap();
        samples::settle(handler.handle(&event, &attempt)).await.unwrap_err();
    }
    assert_eq!(server.connections.load(SeqCst), 1);
}

#[test]
fn u01_settings_that_cannot_work_are_refused_without_their_secrets() {
    let url = "http://localhost/";
    let config = HttpOptions { timeout: Duration::ZERO, ..HttpOptions::new(url) };
    assert!(HttpFactory::new(&config).unwrap_err().contains("`timeout` is 0"));
    let headers = Secret(vec![("authorization".to_owned(), "secret\n".to_owned())]);
    let config = HttpOptions { headers, ..HttpOptions::new(url) };
    assert!(!format!("{config:?}").contains("secret"));
    let error = HttpFactory::new(&config).unwrap_err();
    assert!(error.contains("authorization") && !error.contains("secret"), "{error}");
}

/// Several events in one attempt, and what became of each.
async fn post_all(config: HttpOptions, ids: &[&str]) -> Vec<HandlerResult> {
    let factory = HttpFactory::new(&config).unwrap();
    let mut handler = factory.build(0).unwrap();
    let events: Vec<_> = ids.iter().map(|id| samples::event(id, "{}")).collect();
    let events: Vec<_> = events.iter().map(|event| (event, samples::attempt())).collect();
    handler.handle_all(&events).await
}

#[tokio::test]
async fn k12_a_batch_is_one_request_in_batch_mode() {
    let mut server = Server::answering("200 OK", "", "").await;
    let results = post_all(server.config(), &["a", "b", "c"]).await;
    assert!(results.len() == 3 && results.iter().all(Result::is_ok), "{results:?}");
    let request = server.requests.recv().await.unwrap();
    assert!(request.contains("application/cloudevents-batch+json"), "{request}");
    let body = request.split_once("\r\n\r\n").unwrap().1;
    let sent = Event::parse_batch(body.as_bytes()).unwrap();
    assert_eq!(sent.iter().map(Event::id).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(server.requests.try_recv().is_err(), "one request");
}

#[tokio::test]
async fn k12_a_batch_that_is_rejected_is_posted_one_by_one() {
    let mut server = Server::answering("422 No", "", "bad").await;
    let results = post_all(server.config(), &["a", "b"]).await;
    assert!(results.iter().all(|result| {
        result.as_ref().is_err_and(|failure| failure.kind == FailureKind::Reject)
    }));
    let mut requests = Vec::new();
    while let Ok(request) = server.requests.try_recv() {
        requests.push(request.contains("cloudevents-batch"));
    }
    assert_eq!(requests, [true, false, false]);
}

#[tokio::test]
async fn k12_a_batch_whose_target_is_down_is_tried_again_whole() {
    let mut server = Server::answering("503 Busy", "retry-after: 7\r\n", "").await;
    let results = post_all(server.config(), &["a", "b"]).await;
    let after = Some(Duration::from_secs(7));
    assert!(results.iter().all(|result| {
        result.as_ref().is_err_and(|failure| failure.kind == FailureKind::Retry { after })
    }));
    assert!(server.requests.recv().await.is_some() && server.requests.try_recv().is_err());
}

#[tokio::test]
async fn k12_a_response_to_a_batch_that_carries_events_is_refused() {
    let event = r#"{"specversion":"1.0","id":"x","source":"/s","type":"t"}"#;
    let server =
        Server::answering("200 OK", "content-type: application/cloudevents+json\r\n", event).await;
    let results = post_all(server.config(), &["a", "b"]).await;
    let error = results[0].as_ref().unwrap_err();
    assert!(error.error.contains("carries events"), "{error}");
}

#[tokio::test]
async fn k12_a_batch_that_was_handled_is_not_posted_again_for_the_body_of_its_answer() {
    let structured = "content-type: application/cloudevents+json\r\n";
    for (headers, body) in [(structured, "{}"), (CARRIES_EVENTS, &*"x".repeat(1_000))] {
        let mut server = Server::answering("200 OK", headers, body).await;
        let config = HttpOptions { max_response: 100, ..server.config() };
        let results = post_all(config, &["a", "b"]).await;
        assert!(results.iter().all(|result| {
            result.as_ref().is_err_and(|failure| failure.kind == FailureKind::Reject)
        }));
        assert!(server.requests.recv().await.unwrap().contains("cloudevents-batch"));
        assert!(server.requests.try_recv().is_err(), "one request: {headers}");
    }
}

#[tokio::test]
async fn k12_a_batch_that_was_handled_is_not_posted_again_where_the_answer_breaks_off() {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n{CARRIES_EVENTS}\r\n");
    let timeout = Duration::from_millis(500);
    for closes in [true, false] {
        let mut server = Server::serving(Some(format!("{head}half")), closes).await;
        let results = post_all(HttpOptions { timeout, ..server.config() }, &["a", "b"]).await;
        for failure in results.into_iter().map(Result::unwrap_err) {
            assert_eq!(failure.kind, FailureKind::Reject, "{failure}");
            assert!(failure.error.contains("it has handled the batch"), "{failure}");
        }
        assert!(server.requests.recv().await.is_some() && server.requests.try_recv().is_err());
    }
}

#[tokio::test]
async fn k12_a_batch_names_the_highest_attempt_and_has_no_idempotency_key() {
    let mut server = Server::answering("200 OK", "", "").await;
    let mut handler = HttpFactory::new(&server.config()).unwrap().build(0).unwrap();
    let events = [samples::event("a", "{}"), samples::event("b", "{}")];
    let attempt = |number| Attempt { number, ..samples::attempt() };
    handler.handle_all(&[(&events[0], attempt(3)), (&events[1], attempt(1))]).await;
    let request = server.requests.recv().await.unwrap();
    assert!(request.contains("greenroom-attempt: 3\r\n"), "{request}");
    assert!(!request.contains("idempotency-key") && !request.contains("ce-id:"), "{request}");
}

#[tokio::test]
async fn an_answer_may_have_a_hundred_headers() {
    let with = |count| format!("HTTP/1.1 204 Yes\r\n{}\r\n", "x-one: more\r\n".repeat(count));
    assert!(Server::start(Some(with(100))).await.post().await.is_ok());
    assert_eq!(
        Server::start(Some(with(101))).await.post().await.unwrap_err().effect,
        Effect::Unknown
    );
}

#[tokio::test]
async fn u01_binary_data_and_no_data_are_sent_as_they_are() {
    let mut server = Server::answering("204 No Content", "", "").await;
    let attributes = r#""specversion":"1.0","id":"1","source":"s","type":"t""#;
    for (data, content_type, body) in [
        (
            r#","datacontenttype":"text/plain","data_base64":"aGVsbG8=""#,
            Some("text/plain"),
            "hello",
        ),
        (r#","datacontenttype":"text/plain","data":"hello""#, Some("text/plain"), "hello"),
        (r#","data":"hello""#, Some("application/json"), "\"hello\""),
        ("", None, ""),
    ] {
        let event = Event::parse(format!("{{{attributes}{data}}}").as_bytes()).unwrap();
        let request = received(&mut server, Mode::Binary, &event).await;
        let (head, sent) = request.split_once("\r\n\r\n").unwrap();
        let named = head.lines().find_map(|line| line.strip_prefix("content-type: "));
        assert_eq!((named, sent), (content_type, body), "{data}");
    }
}

/// What the target receives of a first attempt at this event.
async fn received(server: &mut Server, mode: Mode, event: &Event) -> String {
    let url = server.url.replace("me:secret@", "").replace("/in?key=secret", "/prices");
    let factory = HttpFactory::new(&HttpOptions { mode, ..HttpOptions::new(url) }).unwrap();
    let (mut handler, attempt) = (factory.build(0).unwrap(), samples::attempt());
    samples::settle(handler.handle(event, &attempt)).await.unwrap();
    server.requests.recv().await.unwrap()
}

/// The examples of one kind on the page.
fn shown<'a>(page: &'a str, kind: &str) -> Vec<&'a str> {
    let begins = format!("```{kind}\n");
    page.split(&begins).skip(1).map(|rest| rest.split_once("\n```").unwrap().0).collect()
}

/// A request without the headers that differ from run to run: its first line, its headers, and its
/// body.
fn parts(request: &str) -> (String, Vec<String>, String) {
    let request = request.replace("\r\n", "\n");
    let (head, body) = request.split_once("\n\n").unwrap();
    let mut lines = head.lines().map(str::to_owned);
    let first = lines.next().unwrap();
    let varies = |line: &String| line.starts_with("host: ") || line.starts_with("user-agent: ");
    let mut headers: Vec<_> = lines.filter(|line| !varies(line)).collect();
    headers.sort_unstable();
    (first, headers, body.to_owned())
}

#[tokio::test]
async fn u01_the_page_on_targets_shows_what_they_receive() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/http-targets.md");
    let page = std::fs::read_to_string(path).unwrap();
    let event = Event::parse(shown(&page, "json")[0].as_bytes()).unwrap();
    let mut server = Server::answering("204 No Content", "", "").await;
    let modes = [Mode::Binary, Mode::Structured];
    let requests = shown(&page, "http");
    assert_eq!(requests.len(), modes.len());
    for (mode, shown) in modes.into_iter().zip(requests) {
        let request = received(&mut server, mode, &event).await;
        assert_eq!(parts(&request), parts(shown), "{mode:?}");
    }
    let config = HttpOptions::new("http://localhost/");
    assert_eq!(config.timeout, Duration::from_secs(5));
    assert_eq!(config.target().unwrap().connect_timeout, Duration::from_secs(2));
    assert_eq!(config.max_response, 16 * 1024 * 1024);
    for stated in ["`timeout` (5 s)", "two seconds", "`max_response` (16 MiB)", "first 200 bytes"] {
        assert!(page.contains(stated), "{stated}");
    }
}

#[tokio::test]
async fn c08_other_options_hold_from_the_next_attempt_on() {
    let (mut first, mut second) = (
        Server::answering("204 No Content", "", "").await,
        Server::answering("204 No Content", "", "").await,
    );
    let factory = HttpFactory::new(&first.config()).unwrap();
    let mut handler = factory.build(0).unwrap();
    let (event, attempt) = (samples::event("a", "{}"), samples::attempt());
    samples::settle(handler.handle(&event, &attempt)).await.unwrap();
    assert!(!factory.reconfigure(&first.config()).unwrap(), "they are the same");
    let headers = Secret(vec![("x-key".to_owned(), "new".to_owned())]);
    assert!(factory.reconfigure(&HttpOptions { headers, ..second.config() }).unwrap());
    samples::settle(handler.handle(&event, &attempt)).await.unwrap();
    assert!(!first.requests.recv().await.unwrap().contains("x-key"));
    assert!(second.requests.recv().await.unwrap().contains("x-key: new"));
    assert!(factory.reconfigure(&HttpOptions::new("nowhere")).is_err());
    assert!(samples::settle(handler.handle(&event, &attempt)).await.is_ok(), "the old ones hold");
}

#[test]
fn c02_each_option_takes_what_it_should_and_refuses_the_rest() {
    let urls = ["a", "'ftp://a'", "5", "'http://'", "'http:///x'", "'http:x'"];
    assert_options::<HttpOptions>(
        &[("url", "'https://a'")],
        &[
            ("url", "'http://a/b'", &urls),
            (
                "url",
                "{ from: /url, allow: ['https://*.a/**', 10.0.0.0/8] }",
                &[
                    "{}",
                    "{ to: 'ftp://a' }",
                    "{ from: /url }",
                    "{ from: /url, allow: [10.0.0.0/8] }",
                    "{ from: /url, allow: ['https://a'] }",
                    "{ from: none, allow: 'https://a/' }",
                    "{ from: Url, allow: 'https://a/' }",
                    "{ to: 'http://a', allow: 'https://a/' }",
                    "{ to: 'http://a', from: /url, allow: 'https://a/' }",
                ],
            ),
            (
                "headers",
                "{ x-key: b }",
                &[
                    "{ ce-id: b }",
                    "{ Content-Type: b }",
                    "{ idempotency-key: b }",
                    "{ 'a b': c }",
                    "{ a: \"b\\nc\" }",
                    "[a]",
                ],
            ),
            (
                "auth",
                "{ bearer: token }",
                &[
                    "{}",
                    "token",
                    "{ bearer: 'to ken' }",
                    "{ bearer: t, basic: { user: a, password: b } }",
                    "{ bearer: t }, headers: { Authorization: x }",
                ],
            ),
            (
                "auth",
                "{ basic: { user: a, password: b } }",
                &["{ basic: { user: a } }", "{ basic: { user: 'a:b', password: b } }"],
            ),
            ("tls", "{}", &["{ cert: x }", "{ key: x }", "{ insecure: true }"]),
            ("signature", "{ secrets: secrets.json }", &["{}", "secrets.json"]),
            ("timeout", "1m", &["5"]),
            ("max_response", "1MiB", &["0", "5s"]),
            ("mode", "structured", &["text", "batch"]),
            ("pass", "true", &["1"]),
            ("status", "{ 404: retry, 5xx: park }", &["{ 404: stop }", "{ 40: retry }"]),
        ],
    );
}
