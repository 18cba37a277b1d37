//! The admin listener: what it answers, to whom, and that nothing holds it up.

#[cfg(target_os = "linux")]
use std::{io::Write, net::TcpStream};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::json;

use crate::run::{
    daemon::{Daemon, wait},
    server::{Answer, Server},
    stage::{Run, Stage, event, events},
};

/// Events that wait for something that never comes.
const STUCK: &str = "
inputs: { i: { file: { path: in } } }
pools: { default: { workers: 2, queue: 4 }, busy: { workers: 64 } }
handlers:
  hang: { on: 'test.happened', order_by: subject, exec: { command: [sleep, '3600'], timeout: 1h } }
  other: { on: 'other', pool: busy, pass: }
admin: { listen: 127.0.0.1:0 }
";

fn stuck() -> Stage {
    let stage = Stage::with(STUCK);
    stage.write_events("in", &events(200));
    stage
}

#[test]
fn o09_a_saturated_pool_with_stuck_handlers_holds_up_no_answer() {
    let stage = stuck();
    let daemon = Daemon::start(&stage);
    let pool = daemon
        .wait_for("/api/pools/default", |pool| pool["state"] == "full" && pool["in_hand"] == 2);
    assert_eq!((&pool["settings"]["queue"], &pool["busy"]), (&json!(4), &json!(2)), "{pool}");
    let started = Instant::now();
    for path in ["/api/pools", "/api/handlers", "/api/keys", "/api/keys?key=s0", "/readyz"] {
        assert_eq!(daemon.get(path).0, 200, "{path}");
    }
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let run = daemon.stop();
    assert_eq!(run.code, 3, "{run:?}");
}

#[test]
fn o09_a_flood_of_events_holds_up_no_answer() {
    let stage = Stage::with(
        "
inputs: { g: { generator: { keys: 100000, zipf: 0 } } }
pools: { default: { workers: 256, queue: 100000 } }
handlers: { all: { on: '**', order_by: subject, drop: } }
admin: { listen: 127.0.0.1:0 }
shutdown: { deadline: 5s }
",
    );
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/run", |run| run["settled"].as_u64().unwrap() > 10_000);
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let started = Instant::now();
        assert_eq!(daemon.get("/api/pools").0, 200);
        slowest = slowest.max(started.elapsed());
    }
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    daemon.stop();
}

#[test]
fn o09_what_is_not_there_is_told_with_what_there_is() {
    let stage = stuck();
    let daemon = Daemon::start(&stage);
    let (status, answer) = daemon.get("/api/pool");
    assert_eq!(status, 404);
    assert!(answer["error"]["what"].as_str().unwrap().contains("/api/pool"), "{answer}");
    assert!(answer["error"]["details"]["GET /api/pools"].is_string(), "{answer}");
    let (status, answer) = daemon.get("/api/pools/defualt");
    assert_eq!(status, 404);
    assert!(answer["error"]["what"].as_str().unwrap().contains("default, busy"), "{answer}");
    assert_eq!(daemon.get("/api/reload").0, 405);
    assert_eq!(daemon.post("/api/pools").0, 405);
    let (status, answer) = daemon.get("/api/keys?kye=s0");
    assert_eq!((status, &answer["error"]["where"]), (400, &json!("/api/keys")), "{answer}");
    assert_eq!(daemon.post("/api/keys/skip").0, 400);
    assert_eq!(daemon.post("/api/keys/skip?key=s0").0, 400, "which event?");
    assert_eq!(daemon.post("/api/keys/skip?key=s0&event=e").0, 404, "it is not parked");
    assert_eq!(daemon.get("/api/pools/busy").1["name"], "busy");
    assert_eq!(daemon.get("/api/handlers/other").1["kind"], "pass");
    let paths = daemon.get("/api").1;
    assert!(paths.as_object().unwrap().len() > 10, "{paths}");
}

#[test]
fn o09_without_a_token_only_this_machine_may_ask() {
    let stage = stuck();
    let daemon = Daemon::start(&stage);
    assert!(daemon.address.starts_with("127.0.0.1:"), "{}", daemon.address);
    let (status, answer) = daemon.ask("GET", "/api/pools", "Host: evil.example\r\n");
    assert_eq!(status, 403, "{answer}");
    let host = format!("Host: {}\r\n", daemon.address);
    let from = |origin: &str| {
        let headers = format!("{host}Origin: {origin}\r\n");
        daemon.ask("POST", "/api/pools/default/pause", &headers).0
    };
    assert_eq!(from("http://evil.example"), 403);
    assert_ne!(daemon.get("/api/pools/default").1["state"], "paused");
    assert_eq!(from(&format!("http://{}", daemon.address)), 200);
    assert_eq!(daemon.get("/api/pools/default").1["state"], "paused");
}

#[test]
fn o09_a_token_is_demanded_and_never_shown() {
    let config = STUCK.replace("127.0.0.1:0", "0.0.0.0:0");
    let stage = Stage::with(&config);
    stage.write_events("in", &events(10));
    let run = stage.run();
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("needs a `token`"), "{}", run.stderr);
    stage.write("token", "sesame\n");
    let with_token = config.replace("0.0.0.0:0", "127.0.0.1:0, token: 'file:token'");
    stage.write("greenroom.yaml", with_token);
    let daemon = Daemon::start(&stage);
    let (status, answer) = daemon.get("/api/pools");
    assert_eq!(status, 401);
    assert!(answer["error"]["next"].as_str().unwrap().contains("Bearer"), "{answer}");
    assert_eq!(daemon.ask("GET", "/api/pools", "Authorization: Bearer no\r\n").0, 401);
    let (status, pools) = daemon.ask("GET", "/api/pools", "Authorization: Bearer sesame\r\n");
    assert_eq!(status, 200);
    let (status, health) = daemon.get("/healthz");
    assert_eq!((status, health.get("findings")), (200, None), "{health}");
    let asked = stage.command("why").args(["s0", &daemon.address]).output().unwrap();
    let stderr = String::from_utf8(asked.stderr).unwrap();
    assert!(asked.status.code() == Some(1) && stderr.contains("GREENROOM_ADMIN_TOKEN"), "{stderr}");
    let mut why = stage.command("why");
    why.args(["s0", &daemon.address]).env("GREENROOM_ADMIN_TOKEN", "sesame");
    assert!(why.output().unwrap().status.success());
    assert!(!daemon.log().contains("sesame") && !pools.to_string().contains("sesame"));
}

#[test]
fn o09_an_address_that_is_taken_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let stage = Stage::with(&STUCK.replace("127.0.0.1:0", &address));
    stage.write_events("in", &events(10));
    let run = stage.run();
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains(&address) && run.stderr.contains("admin.listen"), "{}", run.stderr);
}

#[test]
fn o10_health_is_red_where_the_target_refuses_greenroom_itself() {
    let server = Server::start(|_, _| Answer::Status(401, ""));
    let stage = Stage::with(&format!(
        "
inputs: {{ i: {{ file: {{ path: in }} }} }}
handlers: {{ h: {{ on: '**', order_by: subject, http: {{ url: '{}' }} }} }}
admin: {{ listen: 127.0.0.1:0 }}
",
        server.url
    ));
    stage.write_events("in", &events(3));
    let daemon = Daemon::start(&stage);
    let health = daemon.wait_for("/healthz", |health| health["health"] == "red");
    assert_eq!(health["headline"], "The target of the handler `h` rejects our credentials");
    assert!(health["findings"][0]["figures"].as_str().unwrap().contains("401"), "{health}");
    assert_eq!(daemon.get("/readyz").0, 200, "no input stands for it");
    let handler = daemon.get("/api/handlers/h").1;
    assert_eq!(handler["state"], "refused", "{handler}");
    assert!(handler["outage"]["last_error"].as_str().unwrap().contains("401"));
}

#[test]
fn o10_an_input_that_a_refused_target_holds_up_is_not_ready_until_it_is_let_in() {
    let refuses = Arc::new(AtomicBool::new(true));
    let told = refuses.clone();
    let server = Server::start(move |_, _| match told.load(Ordering::SeqCst) {
        true => Answer::Status(401, ""),
        false => Answer::Status(204, ""),
    });
    let stage = Stage::with(&format!(
        "
inputs: {{ i: {{ generator: {{ rate: 500/s }}, run_ahead: 10 }} }}
pools: {{ default: {{ workers: 1, queue: 1 }} }}
handlers: {{ h: {{ on: '**', http: {{ url: '{}' }} }} }}
admin: {{ listen: 127.0.0.1:0 }}
",
        server.url
    ));
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/healthz", |health| health["health"] == "red");
    let ready = daemon.wait_for("/readyz", |ready| ready["ready"] == false);
    let why = ready["reasons"][0].as_str().unwrap();
    assert!(why.contains("the input `i` is not read"), "{ready}");
    assert_eq!(ready.to_string().matches("nput `i` is").count(), 1, "{ready}");
    refuses.store(false, Ordering::SeqCst);
    daemon.wait_for("/readyz", |ready| ready["ready"] == true);
}

#[test]
fn o10_it_is_ready_until_it_ends() {
    let stage = stuck();
    let daemon = Daemon::start(&stage);
    // A run that has taken nothing yet ends at once.
    daemon.wait_for("/api/pools/default", |pool| pool["in_hand"] == 2);
    let well = json!({ "health": "green", "headline": "All is well", "findings": [] });
    assert_eq!(daemon.get("/healthz"), (200, well));
    assert_eq!(daemon.get("/readyz"), (200, json!({ "ready": true, "reasons": [] })));
    daemon.signal(rustix::process::Signal::INT);
    let ready = daemon.wait_for("/readyz", |ready| ready["ready"] == false);
    assert!(ready["reasons"][0].as_str().unwrap().contains("ending"), "{ready}");
}

#[test]
fn r02_a_pool_and_a_handler_are_paused_and_resumed() {
    let stage = Stage::with(
        "
inputs: { g: { generator: { rate: 500/s, keys: 50 } } }
pools: { default: { workers: 4 } }
handlers: { all: { on: '**', order_by: subject, pass: } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
",
    );
    let daemon = Daemon::start(&stage);
    let settled = || daemon.get("/api/run").1["settled"].as_u64().unwrap();
    for what in ["pools/default", "handlers/all"] {
        wait(|| (settled() > 0).then_some(()));
        let (status, answer) = daemon.post(&format!("/api/{what}/pause"));
        assert_eq!((status, &answer["paused"]), (200, &json!(true)), "{answer}");
        assert_eq!(daemon.get(&format!("/api/{what}")).1["state"], "paused");
        assert_eq!(daemon.get("/healthz").1["health"], "yellow");
        // What was in hand ends; then nothing does.
        let mut before = settled();
        wait(|| {
            std::thread::sleep(Duration::from_millis(200));
            (std::mem::replace(&mut before, settled()) == before).then_some(())
        });
        assert_eq!(daemon.post(&format!("/api/{what}/resume")).1["changed"], true);
        let paused_at = settled();
        wait(|| (settled() > paused_at).then_some(()));
    }
    let run: Run = daemon.stop();
    run.report();
}

#[test]
fn d06_dead_letters_are_listed_and_shown() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in } }, g: { generator: { rate: 1/s, types: [x] } } }
handlers: { x: { on: x, drop: } }
admin: { listen: 127.0.0.1:0 }
",
    );
    let mut lines: Vec<_> =
        (0..5).map(|n| event(&n.to_string(), "y", "s", json!(n)).to_string()).collect();
    lines.push("no event".to_owned());
    stage.write("in", lines.join("\n"));
    let daemon = Daemon::start(&stage);
    let letters = |found: &serde_json::Value| found["letters"].as_array().unwrap().len();
    let all = daemon.wait_for("/api/dead-letters", |found| letters(found) == 6);
    let first = &all["letters"][0];
    assert_eq!((&first["number"], &first["reason"]), (&json!(1), &json!("no_handler")), "{first}");
    assert!(first.get("event").is_none() && first["id"].is_string(), "{first}");
    let malformed = daemon.get("/api/dead-letters?reason=malformed").1;
    assert_eq!((letters(&malformed), &malformed["letters"][0]["raw"]), (1, &json!(true)));
    let page = daemon.get("/api/dead-letters?limit=4").1;
    assert_eq!(letters(&page), 4);
    let rest = daemon.get(page["next"].as_str().unwrap()).1;
    assert_eq!((letters(&rest), &rest["next"]), (2, &json!(null)), "{rest}");
    let newest = daemon.get("/api/dead-letters?order=newest&limit=1").1;
    assert_eq!(newest["letters"][0], all["letters"][5], "{newest}");
    let found = daemon.get("/api/dead-letters?event=3").1;
    assert_eq!((letters(&found), &found["letters"][0]["id"]), (1, &json!("3")), "{found}");
    let counted = daemon.get("/api/dead-letters?by=reason").1;
    assert_eq!(counted["groups"][0]["name"], "no_handler", "{counted}");
    assert_eq!(counted["totals"]["letters"], 6, "{counted}");
    let shown = daemon.get("/api/dead-letters/1").1;
    assert_eq!(shown["letter"]["event"]["type"], "y", "{shown}");
    assert_eq!(daemon.get("/api/dead-letters/7").0, 404);
    assert_eq!(daemon.get("/api/dead-letters/one").0, 400);
}

/// As the process of the daemon, under a limit on its descriptors.
#[cfg(target_os = "linux")]
fn descriptors(daemon: &Daemon<'_>) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().count()
}

#[cfg(target_os = "linux")]
#[test]
fn three_hundred_half_requests_hold_up_no_operator_and_take_few_descriptors() {
    let stage = stuck();
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/pools/default", |pool| pool["in_hand"] == 2);
    let before = descriptors(&daemon);
    let half: Vec<_> = (0..300)
        .map(|_| {
            let mut half = TcpStream::connect(&daemon.address).unwrap();
            half.write_all(b"GET /api/pools HTTP/1.1\r\nHost: localh").unwrap();
            half
        })
        .collect();
    assert_eq!(daemon.get("/api/pools").0, 200);
    let now = descriptors(&daemon);
    assert!(now <= before + 70, "{before} before, {now} beside {} half requests", half.len());
    drop(half);
    daemon.stop();
}
