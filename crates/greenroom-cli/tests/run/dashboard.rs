//! What the dashboard asks for: the page itself, the live stream, workers,
//! resizing; and who may do what.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::run::{
    daemon::{Daemon, wait},
    server::{Answer, Server},
    stage::{Stage, event, events},
};

/// Handlers that wait, in two workers.
const WAITING: &str = "
inputs: { i: { file: { path: in } }, ticks: { generator: { rate: 1/s, types: [tick] } } }
pools: { default: { workers: 2, queue: 100 }, ticks: { workers: 1 } }
handlers:
  hang: { on: test.happened, order_by: subject, exec: { command: [sleep, '3600'], timeout: 1h } }
  ticks: { on: tick, pool: ticks, order_by: subject, drop: }
admin: { listen: 127.0.0.1:0 }
";

fn waiting() -> Stage {
    let stage = Stage::with(WAITING);
    stage.write_events("in", &events(40));
    stage
}

/// Head and body of an answer that is no JSON.
fn fetch(daemon: &Daemon<'_>, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(&daemon.address).unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", daemon.address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

/// Data of the live stream, one a line.
struct Live(BufReader<TcpStream>);

impl Live {
    fn of(daemon: &Daemon<'_>, headers: &str) -> Self {
        let mut stream = TcpStream::connect(&daemon.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let host = &daemon.address;
        let request = format!("GET /api/live HTTP/1.0\r\nHost: {host}\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the stream has ended");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

#[test]
fn o07_the_page_and_its_files_are_served_with_a_policy() {
    let stage = waiting();
    let daemon = Daemon::start(&stage);
    let (head, page) = fetch(&daemon, "/");
    assert!(head.starts_with("http/1.0 200") && head.contains("text/html"), "{head}");
    let policy = head.lines().find(|line| line.starts_with("content-security-policy: ")).unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    for part in ["x-frame-options: deny", "x-content-type-options: nosniff"] {
        assert!(head.contains(part), "{part}: {head}");
    }
    assert!(page.contains("/assets/app.js") && page.contains("/assets/app.css"), "{page}");
    for (path, kind) in [("/assets/app.js", "javascript"), ("/assets/app.css", "text/css")] {
        let (head, _) = fetch(&daemon, path);
        assert!(head.starts_with("http/1.0 200") && head.contains(kind), "{path}: {head}");
    }
    let (head, _) = fetch(&daemon, "/api/run");
    assert!(head.contains("x-frame-options: deny") && head.contains("no-store"), "{head}");
    assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
    assert_eq!(daemon.get("/assets/../api").0, 404);
}

#[test]
fn o07_the_live_stream_tells_of_all_and_two_tabs_hear_it() {
    let stage = waiting();
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/pools/default", |pool| pool["in_hand"] == 2);
    let (mut one, mut other) = (Live::of(&daemon, ""), Live::of(&daemon, ""));
    let hello = one.next();
    assert_eq!((&hello["role"], &hello["may_change"]), (&json!("no token"), &json!(true)));
    other.next();
    let (first, second) = (one.next(), one.next());
    assert_eq!(other.next()["pools"][0]["name"], "default");
    let pool = &first["pools"][0];
    assert_eq!((&pool["in_hand"], &pool["busy"]), (&json!(2), &json!(2)), "{pool}");
    let slots = pool["slots"].as_array().unwrap();
    assert!(slots.len() == 2 && slots.iter().all(|slot| slot.as_i64().unwrap() >= 0), "{pool}");
    assert!(second["at_ms"].as_u64() > first["at_ms"].as_u64());
    assert_eq!(first["health"]["health"], "green");
    assert_eq!(first["run"]["inputs"][0]["name"], "i");
    daemon.stop();
}

#[test]
fn o07_each_worker_tells_what_it_has_in_hand_and_since_when() {
    let stage = waiting();
    let daemon = Daemon::start(&stage);
    let path = "/api/pools/default/workers";
    let busy = |found: &Value| {
        let workers = found["workers"].as_array().unwrap();
        workers.iter().all(|worker| worker["key"].is_string())
    };
    let found = daemon.wait_for(path, busy);
    let workers = found["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 2, "{found}");
    assert_ne!(workers[0]["key"], workers[1]["key"], "{found}");
    for worker in workers {
        assert_eq!((&worker["handler"], &worker["input"]), (&json!("hang"), &json!("i")));
        assert_eq!((&worker["attempt"], &worker["status"]), (&json!(1), &json!("live")));
        assert!(worker["busy_ms"].as_f64().unwrap() >= 0.0, "{worker}");
        let why = daemon.get(&format!("/api/keys?key={}", worker["key"].as_str().unwrap())).1;
        assert_eq!(why["lines"][0]["worker"], worker["slot"], "{why}");
    }
    assert_eq!(daemon.get("/api/pools/none/workers").0, 404);
    daemon.stop();
}

#[test]
fn o07_a_pool_is_resized() {
    let stage = waiting();
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/pools/default", |pool| pool["in_hand"] == 2);
    let (status, answer) = daemon.post("/api/pools/default/workers?count=5");
    assert_eq!((status, &answer["from"], &answer["workers"]), (200, &json!(2), &json!(5)));
    let pool = daemon.wait_for("/api/pools/default", |pool| pool["in_hand"] == 5);
    assert_eq!(pool["settings"]["workers"], 5, "{pool}");
    for wrong in ["", "?count=0", "?count=x", "?count=-1", "?workers=3"] {
        assert_eq!(daemon.post(&format!("/api/pools/default/workers{wrong}")).0, 400, "{wrong}");
    }
    let (status, answer) = daemon.post("/api/pools/default/workers?count=99999999");
    assert_eq!(status, 409, "{answer}");
    assert_eq!(daemon.get("/api/pools/default").1["workers"], 5);
    assert_eq!(daemon.post("/api/pools/none/workers?count=2").0, 404);
    daemon.stop();
}

#[test]
fn o09_the_document_of_the_api_is_served() {
    let stage = waiting();
    let daemon = Daemon::start(&stage);
    let (status, document) = daemon.get("/api/openapi.json");
    assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")));
    let get = &document["paths"]["/api/pools/{name}/workers"];
    assert!(get["get"].is_object() && get["post"].is_object(), "{get}");
    daemon.stop();
}

/// A greenroom with both tokens.
fn with_tokens() -> Stage {
    let config = WAITING
        .replace("127.0.0.1:0", "127.0.0.1:0, token: 'file:token', read_token: 'file:read-token'");
    let stage = Stage::with(&config);
    stage.write("token", "sesame\n");
    stage.write("read-token", "spyglass\n");
    stage.write_events("in", &events(40));
    stage
}

#[test]
fn o09_a_read_token_sees_all_and_changes_nothing_and_the_audit_log_tells() {
    let stage = with_tokens();
    let daemon = Daemon::start(&stage);
    let ask = |method: &str, path: &str, token: &str| {
        daemon.ask(method, path, &format!("authorization: Bearer {token}\r\n"))
    };
    assert_eq!(ask("GET", "/api/pools", "spyglass").0, 200);
    assert!(ask("GET", "/healthz", "spyglass").1["findings"].is_array());
    let (status, answer) = ask("POST", "/api/pools/default/pause", "spyglass");
    assert_eq!(status, 403);
    assert!(answer["error"]["next"].as_str().unwrap().contains("admin.token"), "{answer}");
    assert_eq!(daemon.post("/api/pools/default/pause").0, 401);
    assert_ne!(ask("GET", "/api/pools/default", "sesame").1["state"], "paused");
    assert_eq!(ask("POST", "/api/pools/default/pause", "sesame").0, 200);
    // The page holds nothing and asks for the token itself.
    assert!(fetch(&daemon, "/").0.starts_with("http/1.0 200"));
    assert!(fetch(&daemon, "/api/live").0.starts_with("http/1.0 401"));
    let hello = Live::of(&daemon, "authorization: Bearer spyglass\r\n").next();
    assert_eq!((&hello["role"], &hello["may_change"]), (&json!("read token"), &json!(false)));
    let log = daemon.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("admin action: ")).collect();
    let has =
        |parts: &[&str]| lines.iter().any(|line| parts.iter().all(|part| line.contains(part)));
    let what = "POST /api/pools/default/pause";
    assert!(has(&["done", "admin token", "127.0.0.1:", what, "status=200"]), "{lines:#?}");
    assert!(has(&["refused", "read token", what, "status=403"]), "{lines:#?}");
    assert!(has(&["refused", "nobody", what, "status=401"]), "{lines:#?}");
    assert_eq!(lines.len(), 3, "what only looks is not told: {lines:#?}");
    assert!(!log.contains("sesame") && !log.contains("spyglass"), "{log}");
}

#[test]
fn o09_no_route_with_any_method_lets_a_read_token_change_anything() {
    let stage = with_tokens();
    let daemon = Daemon::start(&stage);
    let ask =
        |method: &str, path: &str| daemon.ask(method, path, "authorization: Bearer spyglass\r\n");
    let document = ask("GET", "/api/openapi.json").1;
    let paths = document["paths"].as_object().unwrap();
    let mut changes = 0;
    for (path, methods) in paths {
        let named = path.replace("{name}", "default").replace("{number}", "1");
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let status = ask(method, &named).0;
            let is_known = methods[method.to_lowercase()].is_object();
            assert!(status == 403 || (status == 405 && !is_known), "{method} {path}: {status}");
            changes += u32::from(is_known);
        }
    }
    assert!(paths.len() > 30 && changes > 15, "{changes} of {} paths", paths.len());
    for (path, state) in [("/api/pools/default", "running"), ("/api/handlers/hang", "up")] {
        assert_eq!(ask("GET", path).1["state"], state, "{path}");
    }
}

#[test]
fn o09_a_read_token_stands_beside_another_token() {
    for (tokens, says) in [
        ("read_token: 'file:read-token'", "needs a `token` beside it"),
        ("token: 'file:token', read_token: 'file:token'", "is the same as `token`"),
    ] {
        let config = WAITING.replace("127.0.0.1:0", &format!("127.0.0.1:0, {tokens}"));
        let stage = Stage::with(&config);
        stage.write("token", "sesame\n");
        stage.write("read-token", "spyglass\n");
        stage.write_events("in", &events(1));
        let run = stage.run();
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(says), "{}", run.stderr);
        assert!(!run.stderr.contains("sesame") && !run.stderr.contains("spyglass"));
    }
}

#[test]
fn o09_a_form_of_a_page_changes_nothing() {
    let stage = waiting();
    let daemon = Daemon::start(&stage);
    let host = format!("Host: {}\r\n", daemon.address);
    let path = "/api/pools/default/pause";
    let form = format!("{host}Content-Type: text/plain\r\nContent-Length: 0\r\n");
    assert_eq!(daemon.ask("POST", path, &form).0, 415);
    let foreign = format!("{host}Sec-Fetch-Site: cross-site\r\n");
    assert_eq!(daemon.ask("POST", path, &foreign).0, 403);
    assert_ne!(daemon.get("/api/pools/default").1["state"], "paused");
    daemon.stop();
}

#[test]
fn o07_what_happens_to_pools_is_told_as_it_happens() {
    let server = Server::start(|_, _| Answer::Status(422, ""));
    let stage = Stage::with(&format!(
        "
inputs: {{ i: {{ file: {{ path: in }} }}, g: {{ generator: {{ rate: 1/s, types: [tick] }} }} }}
pools: {{ default: {{ workers: 2, on_final_failure: park }} }}
handlers:
  fail: {{ on: order, order_by: subject, http: {{ url: '{}' }}, retry: {{ attempts: 1 }} }}
  ticks: {{ on: tick, order_by: subject, drop: }}
admin: {{ listen: 127.0.0.1:0 }}
",
        server.url
    ));
    let line = |n: u32| event(&n.to_string(), "order", &format!("k{n}"), json!(n)).to_string();
    stage.write("in", (0..3).map(line).collect::<Vec<_>>().join("\n"));
    let daemon = Daemon::start(&stage);
    let mut live = Live::of(&daemon, "");
    daemon.wait_for("/api/keys", |keys| keys["parked"].as_array().unwrap().len() == 3);
    assert_eq!(daemon.decide("skip", "k1").0, 200);
    let sample = wait(|| {
        let sample = live.next();
        let events = sample["events"].as_array()?;
        let told = events.iter().any(|event| event["kind"] == "key_released");
        told.then_some(sample)
    });
    assert_eq!(sample["parked"].as_array().unwrap().len(), 2, "{sample}");
    assert_eq!(sample["health"]["health"], "yellow");
    daemon.stop();
}

#[test]
fn o07_the_17th_who_listens_is_told_why() {
    let stage = waiting();
    let daemon = Daemon::start(&stage);
    let mut all: Vec<_> = (0..16).map(|_| Live::of(&daemon, "")).collect();
    for live in &mut all {
        assert_eq!(live.next()["role"], "no token");
    }
    let (head, body) = fetch(&daemon, "/api/live");
    assert!(head.starts_with("http/1.0 503"), "{head}");
    assert!(body.contains("16 pages are listening, which is the limit"), "{body}");
    assert!(body.contains("close an unused page"), "{body}");
    daemon.stop();
}
