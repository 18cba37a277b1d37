//! An intake on a real socket, before a log in memory.

mod sample;

use std::{num::NonZeroU64, time::Duration};

use greenroom_config::Secret;
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};

use self::sample::{
    BINARY, STRUCTURED, Stage, batch, client_tls, event, head, pem, post, server_tls,
};
use super::{shared::Shared, *};
use crate::source::log::AppendError;

#[tokio::test]
async fn b02_202_comes_after_the_events_are_durable_and_counts_them() {
    let stage = Stage::open(HttpSettings::default());
    let hold = stage.log.hold();
    let body = batch(&["a", "b", "a"]);
    let mut sent = stage.connect().await;
    sent.write_all(post("application/cloudevents-batch+json", &body).as_bytes()).await.unwrap();
    stage.log.began(1).await;
    let early = timeout(Duration::from_millis(50), sent.read_u8()).await;
    assert!(early.is_err(), "answered before it was stored");
    drop(hold);
    let answer = sample::answer(&mut sent).await;
    assert_eq!((answer.status, answer.json()), (202, json!({ "stored": 2, "repeated": 1 })));
    assert_eq!(stage.log.ids(), ["a", "b"]);
}

#[tokio::test]
async fn b02_events_come_in_each_mode_on_one_connection() {
    let stage = Stage::open(HttpSettings::default());
    let mut connection = stage.connect().await;
    let binary =
        format!("POST /events?x=1 HTTP/1.1\r\nhost: h\r\n{BINARY}content-length: 2\r\n\r\n{{}}");
    let structured = post(STRUCTURED, &event("s"));
    let chunked = format!(
        "POST /events HTTP/1.1\r\nhost: h\r\ncontent-type: {STRUCTURED}\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
        event("c").len(),
        event("c")
    );
    for message in [binary, structured, chunked] {
        connection.write_all(message.as_bytes()).await.unwrap();
        assert_eq!(sample::answer(&mut connection).await.status, 202, "{message}");
    }
    assert_eq!(stage.log.ids(), ["binary", "s", "c"]);
}

#[tokio::test]
async fn b02_a_batch_is_stored_whole_or_not_at_all() {
    let stage = Stage::open(HttpSettings::default());
    let body = format!("[{},{{\"specversion\":\"1.0\",\"id\":\"x\"}}]", event("a"));
    let answer = stage.post("application/cloudevents-batch+json", &body).await;
    assert_eq!(answer.status, 400);
    let told = answer.json();
    assert_eq!((&told["index"], &told["field"]), (&json!(1), &json!("source")), "{told}");
    assert!(stage.log.ids().is_empty());
}

#[tokio::test]
async fn b02_each_refusal_has_its_status_and_what_to_do() {
    let settings = HttpSettings { max_event: 1_000, max_body: 2_000, ..HttpSettings::default() };
    let stage = Stage::open(settings);
    let foreign = stage.post("application/json", "{}").await;
    assert_eq!(foreign.status, 415);
    assert!(foreign.header("accept").unwrap().contains(STRUCTURED), "{foreign:?}");
    assert!(foreign.json()["error"].as_str().unwrap().contains("ce- headers"), "{foreign:?}");

    let get = stage.ask(&head("GET", "/events", "")).await;
    assert_eq!((get.status, get.header("allow")), (405, Some("POST")));
    assert_eq!(stage.ask(&head("POST", "/other", "content-length: 0\r\n")).await.status, 404);
    assert_eq!(stage.ask(&head("GET", "/healthz", "")).await.status, 200);
    assert_eq!(stage.ask(&head("DELETE", "/healthz", "")).await.header("allow"), Some("GET, HEAD"));

    for ty in [STRUCTURED, "application/cloudevents-batch+json"] {
        let large = stage.post(ty, &" ".repeat(2_001)).await;
        assert_eq!(large.status, 413, "{ty}");
    }
    let large = event(&"x".repeat(1_000));
    assert_eq!(
        stage.post("application/cloudevents-batch+json", &format!("[{large}]")).await.status,
        413
    );
    assert!(stage.log.ids().is_empty());
}

#[tokio::test]
async fn b02_a_sender_of_webhooks_that_asks_is_told_whether_and_how_often_it_may_post() {
    let webhook = |origins: &[&str], per_minute| {
        let origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
        Some(Webhook { origins, per_minute: NonZeroU64::new(per_minute) })
    };
    let asks = |origin: &str| {
        let headers = format!("WebHook-Request-Origin: {origin}\r\nWebHook-Request-Rate: 120\r\n");
        head("OPTIONS", "/events", &headers)
    };
    for (origins, rate, origin, allowed) in [
        (&["sender.example", "other"][..], 100, "Sender.Example", Some("100")),
        (&["*"], 0, "anybody.example", Some("*")),
        (&["sender.example"], 100, "sender.example.org", None),
        (&["sender.example"], 100, "*", None),
    ] {
        let access = Some(Access::Bearer(Secret(vec!["token".into()])));
        let webhook = webhook(origins, rate);
        let stage = Stage::open(HttpSettings { access, webhook, ..HttpSettings::default() });
        let answer = stage.ask(&asks(origin)).await;
        assert_eq!(answer.status, if allowed.is_some() { 200 } else { 403 }, "{answer:?}");
        assert_eq!(answer.header("webhook-allowed-origin"), allowed.map(|_| origin));
        assert_eq!(answer.header("webhook-allowed-rate"), allowed);
        assert_eq!(answer.header("allow"), allowed.map(|_| "POST"));
        // It posts as everybody does.
        assert_eq!(stage.post(STRUCTURED, &event("a")).await.status, 401);
        assert_eq!(stage.ask(&head("OPTIONS", "/events", "")).await.status, 405);
        assert_eq!(stage.ask(&asks(origin).replace("/events", "/other")).await.status, 404);
    }
    let stage = Stage::open(HttpSettings::default());
    assert_eq!(stage.ask(&asks("sender.example")).await.status, 405, "nobody has allowed any");
}

#[tokio::test]
async fn b02_a_chunked_body_is_cut_off_at_its_limit() {
    let stage = Stage::open(HttpSettings { max_event: 100, ..HttpSettings::default() });
    let mut connection = stage.connect().await;
    let start = head(
        "POST",
        "/events",
        &format!("content-type: {STRUCTURED}\r\ntransfer-encoding: chunked\r\n"),
    );
    connection.write_all(start.as_bytes()).await.unwrap();
    let chunk = format!("40\r\n{}\r\n", " ".repeat(64));
    connection.write_all(chunk.as_bytes()).await.unwrap();
    connection.write_all(chunk.as_bytes()).await.unwrap();
    // The rest never comes: it is not waited for.
    assert_eq!(sample::answer(&mut connection).await.status, 413);
}

/// As most clients, which read the answer once all is written.
#[tokio::test]
async fn b02_the_sender_of_a_body_that_is_too_large_gets_its_answer() {
    let stage = Stage::open(HttpSettings::default());
    let large = " ".repeat(20 << 20);
    for (ty, path, status) in [
        (STRUCTURED, "/events", 413),
        ("application/cloudevents-batch+json", "/events", 413),
        ("text/plain", "/events", 415),
        (STRUCTURED, "/nothing", 404),
    ] {
        let mut connection = stage.connect().await;
        let message = post(ty, &large).replacen("/events", path, 1);
        connection.write_all(message.as_bytes()).await.unwrap();
        assert_eq!(sample::answer(&mut connection).await.status, status, "{ty} {path}");
        connection.write_all(post(STRUCTURED, &event("a")).as_bytes()).await.unwrap();
        assert_eq!(sample::answer(&mut connection).await.status, 202, "it can be used further");
    }
}

#[tokio::test]
async fn b02_what_is_read_of_a_body_that_is_too_large_has_an_end() {
    let stage = Stage::open(HttpSettings::default());
    let start = |more: &str| {
        let headers = format!("content-type: {STRUCTURED}\r\n{more}\r\n");
        head("POST", "/events", &headers)
    };
    for more in ["content-length: 1000000000", "expect: 100-continue\r\ncontent-length: 2000000"] {
        // Nothing of it comes, and nothing of it is asked for.
        let answer = stage.ask(&start(more)).await;
        assert_eq!((answer.status, answer.header("connection")), (413, Some("close")), "{more}");
    }
    let mut chunked = stage.connect().await;
    chunked.write_all(start("transfer-encoding: chunked").as_bytes()).await.unwrap();
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    for _ in 0..100 {
        // More than is read: the connection may break.
        if chunked.write_all(chunk.as_bytes()).await.is_err() {
            return;
        }
    }
    let mut rest = Vec::new();
    let _ = chunked.read_to_end(&mut rest).await;
}

#[tokio::test]
async fn b02_headers_are_bounded_as_is_said() {
    let stage = Stage::open(HttpSettings::default());
    let with = |bytes: usize| {
        let message = post(STRUCTURED, &event("a"));
        message.replacen("host: h", &format!("host: h\r\nx-more: {}", "x".repeat(bytes)), 1)
    };
    assert_eq!(stage.ask(&with(64_000)).await.status, 202);
    for bytes in [66_000, 100_000] {
        let answer = stage.ask(&with(bytes)).await;
        assert_eq!(answer.status, 431, "{bytes}");
    }
}

#[tokio::test]
async fn b02_a_full_log_is_429_and_a_failed_one_503_each_with_retry_after() {
    let stage = Stage::open(HttpSettings::default());
    let full =
        AppendError::Full { reason: "full".into(), retry_after: Duration::from_millis(1_200) };
    stage.log.fail(Some(full));
    let answer = stage.post(STRUCTURED, &event("a")).await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("2")));
    let health = stage.ask(&head("GET", "/healthz", "")).await;
    assert_eq!((health.status, health.header("retry-after")), (503, Some("1")));
    stage.log.fail(Some(AppendError::TooLarge { bytes: 9, limit: 5 }));
    assert_eq!(stage.post(STRUCTURED, &event("a")).await.status, 413);
    stage.log.fail(None);
    assert_eq!(stage.post(STRUCTURED, &event("a")).await.status, 202);

    stage.log.fail(Some(AppendError::Failed("/secret/path: input/output error".into())));
    let answer = stage.post(STRUCTURED, &event("b")).await;
    assert_eq!(answer.status, 503);
    assert!(
        answer.header("retry-after").is_some() && !answer.body.contains("secret"),
        "{answer:?}"
    );
    assert_eq!(stage.ask(&head("GET", "/healthz", "")).await.status, 503);
}

#[tokio::test]
async fn b02_tokens_and_settings_are_replaced_while_it_is_open() {
    let with = |tokens: &[&str]| HttpSettings {
        access: Some(Access::Bearer(Secret(tokens.iter().map(|&token| token.into()).collect()))),
        ..HttpSettings::default()
    };
    let stage = Stage::open(with(&["old"]));
    let as_whom = async |token: &str| {
        let body = event("a");
        let headers = format!(
            "authorization: Bearer {token}\r\ncontent-type: {STRUCTURED}\r\ncontent-length: {}\r\n",
            body.len()
        );
        stage.ask(&(head("POST", "/events", &headers) + &body)).await
    };
    assert_eq!(as_whom("old").await.status, 202);
    let unknown = as_whom("new").await;
    assert_eq!((unknown.status, &*unknown.body), (401, ""));
    assert_eq!(unknown.header("www-authenticate"), Some("Bearer"));
    assert_eq!(stage.ask(&head("GET", "/healthz", "")).await.status, 200, "a probe needs no token");

    assert_eq!(stage.intake.reconfigure(with(&["old"])), Ok(false));
    assert_eq!(stage.intake.reconfigure(with(&["new"])), Ok(true));
    assert_eq!((as_whom("old").await.status, as_whom("new").await.status), (401, 202));
    assert!(stage.intake.reconfigure(with(&[])).is_err());
    assert_eq!(as_whom("new").await.status, 202, "what cannot be used changes nothing");
}

#[tokio::test]
async fn b02_a_page_of_a_browser_posts_nothing_without_credentials() {
    let stage = Stage::open(HttpSettings::default());
    let body = event("a");
    let headers = format!(
        "origin: http://evil.example\r\ncontent-type: {STRUCTURED}\r\ncontent-length: {}\r\n",
        body.len()
    );
    assert_eq!(stage.ask(&(head("POST", "/events", &headers) + &body)).await.status, 403);
    assert!(stage.log.ids().is_empty());
}

#[tokio::test]
async fn b02_a_sender_that_goes_before_the_end_of_its_body_has_stored_nothing() {
    let stage = Stage::open(HttpSettings::default());
    let message = post(STRUCTURED, &event("a"));
    let mut connection = stage.connect().await;
    connection.write_all(&message.as_bytes()[..message.len() - 1]).await.unwrap();
    drop(connection);
    assert_eq!(stage.post(STRUCTURED, &event("b")).await.status, 202);
    assert_eq!(stage.log.ids(), ["b"]);
}

#[tokio::test]
async fn b02_what_has_begun_to_be_stored_is_stored_though_its_sender_goes() {
    let stage = Stage::open(HttpSettings::default());
    let hold = stage.log.hold();
    let mut connection = stage.connect().await;
    connection.write_all(post(STRUCTURED, &event("a")).as_bytes()).await.unwrap();
    stage.log.began(1).await;
    drop(connection);
    drop(hold);
    let again = stage.post(STRUCTURED, &event("a")).await;
    assert_eq!(again.json(), json!({ "stored": 0, "repeated": 1 }));
}

#[tokio::test]
async fn b02_a_slow_body_is_408_and_slow_headers_end_the_connection() {
    let moment = Duration::from_millis(50);
    let settings =
        HttpSettings { body_timeout: moment, header_timeout: moment, ..HttpSettings::default() };
    let stage = Stage::open(settings);
    let mut body = stage.connect().await;
    let message = post(STRUCTURED, &event("a"));
    body.write_all(&message.as_bytes()[..message.len() - 1]).await.unwrap();
    assert_eq!(sample::answer(&mut body).await.status, 408);
    let mut headers = stage.connect().await;
    headers.write_all(b"POST /events HTTP/1.1\r\nx-a: ").await.unwrap();
    let mut rest = Vec::new();
    headers.read_to_end(&mut rest).await.unwrap();
    let mut silent = stage.connect().await;
    assert_eq!(silent.read(&mut [0]).await.unwrap_or(0), 0);
    assert!(stage.log.ids().is_empty());
}

#[tokio::test(start_paused = true)]
async fn b02_a_body_that_pauses_is_408_after_its_time_whatever_that_is() {
    for seconds in [30, 31, 300] {
        let body_timeout = Duration::from_secs(seconds);
        let settings = HttpSettings { body_timeout, ..HttpSettings::default() };
        let log = Arc::<sample::TestLog>::default();
        let shared = Arc::new(Shared::new("http".into(), "/events", settings, log).unwrap());
        let place = shared.connections.enter().unwrap();
        let (mut client, stream) = tokio::io::duplex(1 << 16);
        tokio::spawn(serve::connection(stream, place, shared));
        let (started, message) = (Instant::now(), post(STRUCTURED, &event("a")));
        client.write_all(&message.as_bytes()[..message.len() - 1]).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 408"), "{seconds}: {answer:?}");
        assert_eq!(started.elapsed().as_secs(), seconds);
    }
}

#[tokio::test]
async fn b02_half_requests_do_not_keep_others_out() {
    let stage = Stage::open(HttpSettings { connections: 4, ..HttpSettings::default() });
    let mut half = Vec::new();
    for _ in 0..20 {
        let mut connection = stage.connect().await;
        connection.write_all(b"POST /events HTTP/1.1\r\n").await.unwrap();
        half.push(connection);
    }
    assert_eq!(stage.post(STRUCTURED, &event("a")).await.status, 202);
}

#[tokio::test]
async fn b02_bodies_together_have_a_bound() {
    let settings = HttpSettings { bodies: 1_000, ..HttpSettings::default() };
    let stage = Stage::open(settings);
    let hold = stage.log.hold();
    let mut first = stage.connect().await;
    first.write_all(post(STRUCTURED, &event(&"a".repeat(600))).as_bytes()).await.unwrap();
    stage.log.began(1).await;
    let refused = stage.post(STRUCTURED, &event(&"b".repeat(600))).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    drop(hold);
    assert_eq!(sample::answer(&mut first).await.status, 202);
    assert_eq!(stage.post(STRUCTURED, &event(&"b".repeat(600))).await.status, 202);
}

#[tokio::test]
async fn b02_a_close_answers_what_is_being_stored_and_takes_nothing_more() {
    let stage = Stage::open(HttpSettings::default());
    let hold = stage.log.hold();
    let mut storing = stage.connect().await;
    storing.write_all(post(STRUCTURED, &event("a")).as_bytes()).await.unwrap();
    stage.log.began(1).await;
    let mut sending = stage.connect().await;
    let message = post(STRUCTURED, &event("b"));
    sending.write_all(&message.as_bytes()[..message.len() - 1]).await.unwrap();
    // Its headers are there once its answer has begun to be waited for: a probe on its own
    // connection comes after.
    let mut idle = stage.connect().await;
    assert_eq!(stage.ask(&head("GET", "/healthz", "")).await.status, 200);

    stage.intake.close();
    let answer = sample::answer(&mut sending).await;
    assert_eq!((answer.status, answer.header("connection")), (503, Some("close")));
    assert!(answer.header("retry-after").is_some());
    assert_eq!(idle.read(&mut [0]).await.unwrap_or(0), 0, "an idle connection is closed");
    drop(hold);
    let answer = sample::answer(&mut storing).await;
    assert_eq!(answer.status, 202);
    let started = Instant::now();
    stage.intake.closed(Duration::from_secs(10)).await;
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(TcpStream::connect(stage.intake.address()).await.is_err());
    assert_eq!(stage.log.ids(), ["a"]);
}

#[tokio::test]
async fn b02_certificates_are_shown_asked_for_and_replaced() {
    let stage = Stage::open(HttpSettings {
        tls: Some(server_tls("server", false)),
        ..HttpSettings::default()
    });
    let ask = async |name: &'static str, identity: bool| {
        let stream = stage.connect().await;
        let connector = tokio_rustls::TlsConnector::from(client_tls(identity));
        let mut stream =
            connector.connect(ServerName::try_from(name).unwrap(), stream).await.ok()?;
        stream.write_all(post(STRUCTURED, &event("a")).as_bytes()).await.ok()?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.ok()?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    };
    let taken = Some("HTTP/1.1 202".to_owned());
    assert_eq!(ask("localhost", false).await, taken);
    let asks = HttpSettings { tls: Some(server_tls("server", true)), ..HttpSettings::default() };
    assert_eq!(stage.intake.reconfigure(asks), Ok(true));
    assert_eq!(ask("localhost", false).await, None, "no certificate was shown");
    assert_eq!(ask("localhost", true).await, taken);
    assert!(stage.intake.reconfigure(HttpSettings::default()).is_err(), "TLS stays TLS");
    let broken = ServerTls { key: pem("ca.pem"), ..server_tls("server", false) };
    let broken = HttpSettings { tls: Some(broken), ..HttpSettings::default() };
    assert!(stage.intake.reconfigure(broken).unwrap_err().contains("`key`"));
    // Who speaks no TLS is told nothing.
    let mut plain = stage.connect().await;
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut told = Vec::new();
    let _ = plain.read_to_end(&mut told).await;
    assert!(!told.starts_with(b"HTTP"));
}
