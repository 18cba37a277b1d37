//! `http` outputs: targets that take events, refuse them, and are away.

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering::SeqCst},
};

use serde_json::{Value, json};

use crate::run::{
    daemon::{Daemon, wait},
    order::{Repeats, assert_all_in_order},
    server::{Answer, Request, Server, certificate},
    stage::{Stage, event, events},
};

fn config(url: &str, options: &str, rest: &str) -> String {
    format!(
        "
inputs: {{ i: {{ file: {{ path: in }} }} }}
pools: {{ default: {{ workers: 8 }} }}
handlers: {{ h: {{ on: '**', order_by: subject, pass: }} }}
outputs: {{ api: {{ http: {{ url: '{url}', backoff: 1ms..10ms, {options} }} }} }}
{rest}
"
    )
}

fn posted(requests: &[Request]) -> Vec<Value> {
    let event = |request: &Request| {
        json!({
            "id": request.header("ce-id"),
            "subject": request.header("ce-subject"),
            "data": serde_json::from_slice::<Value>(&request.body).unwrap(),
        })
    };
    requests.iter().map(event).collect()
}

#[test]
fn b06_events_arrive_in_order_per_key_while_some_attempts_fail() {
    let server =
        Server::start(|number, _| Answer::Status(if number % 7 == 3 { 503 } else { 204 }, ""));
    let stage = Stage::with(&config(&server.url, "", ""));
    let events = events(200);
    stage.write_events("in", &events);
    let report = stage.run().counted(0, [200, 200, 0, 0]);
    assert_eq!(report["outputs"][0]["events"], 200, "{report}");
    assert_eq!(report["outputs"][0]["trouble"], Value::Null);
    let requests = server.requests.lock().unwrap();
    assert_all_in_order(&events, &posted(&requests), Repeats::Allowed);
}

#[test]
fn b06_a_batch_holds_many_events() {
    let server = Server::start(|_, _| Answer::Status(200, ""));
    let options = "mode: batch, batch: { events: 50, within: 200ms }, concurrency: 1";
    let stage = Stage::with(&config(&server.url, options, ""));
    let events = events(200);
    stage.write_events("in", &events);
    stage.run().counted(0, [200, 200, 0, 0]);
    let requests = server.requests.lock().unwrap();
    assert!(requests.len() < 20, "{}", requests.len());
    let posted = requests
        .iter()
        .flat_map(|request| serde_json::from_slice::<Vec<Value>>(&request.body).unwrap());
    assert_all_in_order(&events, &posted.collect::<Vec<_>>(), Repeats::None);
}

#[test]
fn d13_what_a_target_rejects_is_a_dead_letter_and_the_run_goes_on() {
    let server = Server::start(|_, request| {
        Answer::Status(if request.header("ce-id") == Some("e5") { 422 } else { 200 }, "")
    });
    let stage = Stage::with(&config(&server.url, "", ""));
    let events = events(30);
    stage.write_events("in", &events);
    let report = stage.run().counted(0, [30, 29, 1, 0]);
    assert_eq!(report["dead_letters_by_reason"]["output_rejected"], 1);
    assert_eq!(report["outputs"][0]["rejected"], 1);
    let letter = &stage.read("dead-letters.ndjson")[0];
    assert_eq!((&letter["event"], &letter["reason"]), (&events[5], &json!("output_rejected")));
    let by = &letter["rejected_by"][0];
    assert_eq!((&by["output"], &by["event"]), (&json!("api"), &Value::Null));
    assert!(by["error"].as_str().unwrap().contains("422"), "{letter}");
}

#[test]
fn d13_an_output_that_stays_paused_ends_a_finite_run_and_blames_no_event() {
    let server = Server::start(|_, _| Answer::Status(401, ""));
    let stage = Stage::with(&config(&server.url, "", "outage: { limit: 400ms }"));
    stage.write_events("in", &events(10));
    let run = stage.run();
    let report = run.counted(3, [10, 0, 0, 10]);
    let error = report["errors"][0].as_str().unwrap();
    assert!(error.starts_with("the output \"api\" is paused") && error.contains("401"), "{error}");
    assert!(error.contains("no credentials were sent"), "{error}");
    assert!(!stage.path("dead-letters.ndjson").exists());
}

/// A generator before an output whose target answers with the status that it is told.
fn paused(stage: &Stage, status: u16) -> (Server, Arc<AtomicU16>) {
    let answers = Arc::new(AtomicU16::new(status));
    let told = answers.clone();
    let server = Server::start(move |_, request| match request.header("ce-type") {
        Some(_) => Answer::Status(told.load(SeqCst), ""),
        None => Answer::Status(200, ""),
    });
    let text = config(&server.url, "", "admin: { listen: 127.0.0.1:0 }");
    let generator = "g: { generator: { rate: 200/s, keys: 5 } }";
    stage.write("greenroom.yaml", text.replace("i: { file: { path: in } }", generator));
    (server, answers)
}

#[test]
fn d13_a_paused_output_is_red_says_why_and_an_operator_resumes_it() {
    let stage = Stage::new();
    let (_server, answers) = paused(&stage, 403);
    let daemon = Daemon::start(&stage);
    let output = daemon.wait_for("/api/outputs/api", |output| output["state"] == "paused");
    assert!(output["trouble"]["last_error"].as_str().unwrap().contains("403"), "{output}");
    assert_eq!((&output["kind"], &output["rejected"]), (&json!("http"), &json!(0)));
    let health = daemon.get("/healthz").1;
    assert_eq!(health["health"], "red", "{health}");
    let finding = &health["findings"][0];
    assert_eq!(finding["ask"], "POST /api/outputs/api/resume", "{health}");
    assert_eq!(finding["command"], "greenroom output resume api", "{health}");
    assert_eq!(daemon.get("/readyz").0, 200, "its input has room");
    answers.store(200, SeqCst);
    let (status, answer) = daemon.post("/api/outputs/api/resume");
    assert_eq!((status, &answer["output"]), (200, &json!("api")), "{answer}");
    daemon.wait_for("/api/outputs", |all| all["outputs"][0]["state"] == "up");
    daemon.wait_for("/healthz", |health| health["health"] == "green");
    assert_eq!(daemon.post("/api/outputs/api/resume").1["changed"], false);
    assert_eq!(daemon.post("/api/outputs/nobody/resume").0, 404);
    assert_eq!(daemon.get("/api/outputs/nobody").0, 404);
    let report = daemon.stop().report();
    assert_eq!(report["dead_lettered"], 0, "{report}");
}

#[test]
fn d13_a_reload_of_its_options_lets_a_paused_output_go_on_with_what_it_had() {
    let stage = Stage::new();
    let (server, _) = paused(&stage, 401);
    let other = Server::start(|_, _| Answer::Status(200, ""));
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/outputs/api", |output| output["state"] == "paused");
    let text = std::fs::read_to_string(stage.path("greenroom.yaml")).unwrap();
    stage.write("greenroom.yaml", text.replace(&server.url, &other.url));
    let (status, answer) = daemon.post("/api/reload");
    assert_eq!((status, &answer["left"]), (200, &json!([])), "{answer}");
    assert_eq!(answer["changed"], json!(["outputs.api.http"]));
    daemon.wait_for("/api/outputs/api", |output| output["state"] == "up");
    wait(|| (other.requests.lock().unwrap().len() > 20).then_some(()));
    let first = other.requests.lock().unwrap()[0].header("ce-id").unwrap().to_owned();
    let refused = server.requests.lock().unwrap()[0].header("ce-id").unwrap().to_owned();
    assert!(!first.is_empty() && !refused.is_empty());
    let report = daemon.stop().report();
    assert_eq!((&report["dead_lettered"], &report["out_of_order"]), (&json!(0), &json!(0)));
}

/// A paused output that a reload has put another one in the place of.
fn replaced<'a>(stage: &'a Stage, server: &Server) -> (Daemon<'a>, String) {
    let daemon = Daemon::start(stage);
    daemon.wait_for("/api/outputs/api", |output| output["state"] == "paused");
    let text = std::fs::read_to_string(stage.path("greenroom.yaml")).unwrap();
    let (before, rest) = text.split_once("outputs:").unwrap();
    let rest = rest.split_once('\n').unwrap().1;
    let other = format!("{before}outputs: {{ done: {{ file: {{ path: done }} }} }}\n{rest}");
    stage.write("greenroom.yaml", other);
    let answer = daemon.post("/api/reload").1;
    assert_eq!(answer["changed"], json!(["outputs.done (added)", "outputs.api (removed)"]));
    let output = daemon.get("/api/outputs/api").1;
    assert_eq!((&output["state"], &output["removed"]), (&json!("paused"), &json!(true)));
    let health = daemon.get("/healthz").1;
    assert_eq!(health["health"], "red", "{health}");
    assert_eq!(health["headline"], "The output `api`, which was removed, is paused");
    assert!(!server.requests.lock().unwrap().is_empty());
    (daemon, text)
}

fn done(daemon: Daemon<'_>) {
    wait(|| daemon.log().contains("the output has ended").then_some(()));
    daemon.wait_for("/healthz", |health| health["health"] == "green");
    let report = daemon.stop().report();
    assert_eq!(report["dead_lettered"], 0, "{report}");
}

#[test]
fn g01_d13_an_operator_resumes_a_paused_output_that_was_removed() {
    let stage = Stage::new();
    let (server, answers) = paused(&stage, 403);
    let (daemon, _) = replaced(&stage, &server);
    answers.store(200, SeqCst);
    let (status, answer) = daemon.post("/api/outputs/api/resume");
    assert_eq!((status, &answer["output"]), (200, &json!("api")), "{answer}");
    wait(|| (daemon.get("/api/outputs/api").0 == 404).then_some(()));
    done(daemon);
}

#[test]
fn c09_d13_a_paused_output_that_was_removed_takes_the_options_of_one_of_its_name() {
    let stage = Stage::new();
    let (server, _) = paused(&stage, 401);
    let (daemon, text) = replaced(&stage, &server);
    let mended = Server::start(|_, _| Answer::Status(200, ""));
    stage.write("greenroom.yaml", text.replace(&server.url, &mended.url));
    let answer = daemon.post("/api/reload").1;
    assert_eq!(answer["changed"], json!(["outputs.api.http"]), "{answer}");
    let left = |place: usize| answer["left"][place]["why"].as_str().unwrap();
    assert!(left(0).contains("is not done"), "{answer}");
    assert!(left(1).contains("continues: the new `outputs.api`"), "{answer}");
    wait(|| daemon.log().contains("the output has ended").then_some(()));
    assert!(!mended.requests.lock().unwrap().is_empty());
    let answer = daemon.post("/api/reload").1;
    assert_eq!(answer["changed"], json!(["outputs.api (added)", "outputs.done (removed)"]));
    done(daemon);
}

#[test]
fn b06_a_restart_sends_the_same_idempotency_keys() {
    let server = Server::start(|_, _| Answer::Status(200, ""));
    let stage = Stage::with(&config(&server.url, "mode: structured", ""));
    stage.write_events("in", &[event("a b", "t", "s", json!(1))]);
    stage.run().counted(0, [1, 1, 0, 0]);
    stage.run().counted(0, [1, 1, 0, 0]);
    let requests = server.requests.lock().unwrap();
    let keys: Vec<_> = requests.iter().map(|request| request.header("idempotency-key")).collect();
    assert_eq!(keys, [Some("/test a%20b"), Some("/test a%20b")]);
}

/// A handler and an output that post to the same target with a token from a file, over TLS.
fn with_credentials(url: &str) -> Stage {
    let who =
        "auth: { bearer: 'file:token' }, headers: { x-team: '${TEAM:-blue}' }, tls: { ca: ca.pem }";
    let stage = Stage::with(&format!(
        "
inputs: {{ g: {{ generator: {{ rate: 100/s, keys: 5 }} }} }}
handlers: {{ h: {{ on: '**', http: {{ url: '{url}', pass: true, {who} }} }} }}
outputs: {{ api: {{ http: {{ url: '{url}', {who} }} }} }}
admin: {{ listen: 127.0.0.1:0 }}
"
    ));
    stage.write("token", "hunter2\n");
    stage.write("ca.pem", std::fs::read(certificate("ca.pem")).unwrap());
    stage
}

#[test]
fn c08_credentials_from_files_are_sent_over_tls_and_read_anew_by_a_reload() {
    let server = Server::start_with_tls(|_, request| {
        let known = ["Bearer hunter2", "Bearer hunter3"];
        let is_known = request.header("authorization").is_some_and(|who| known.contains(&who));
        Answer::Status(if is_known { 200 } else { 401 }, "")
    });
    let stage = with_credentials(&server.url);
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/outputs/api", |output| output["events"].as_u64().unwrap() > 5);
    stage.write("token", "hunter3\n");
    let (status, answer) = daemon.post("/api/reload");
    assert_eq!((status, &answer["left"]), (200, &json!([])), "{answer}");
    assert_eq!(answer["changed"], json!(["handlers.h.http", "outputs.api.http"]));
    assert_eq!(daemon.post("/api/reload").1["changed"], json!([]), "nothing has changed since");
    let sent = |who: &str| {
        let requests = server.requests.lock().unwrap();
        requests.iter().filter(|request| request.header("authorization") == Some(who)).count()
    };
    wait(|| (sent("Bearer hunter3") > 10).then_some(()));
    assert!(sent("Bearer hunter2") > 5);
    let team = server.requests.lock().unwrap()[0].header("x-team").map(str::to_owned);
    assert_eq!(team.as_deref(), Some("blue"));
    // A certificate that is replaced is read anew, too.
    stage.write("ca.pem", std::fs::read(certificate("other-ca.pem")).unwrap());
    assert_eq!(daemon.post("/api/reload").1["changed"].as_array().unwrap().len(), 2);
    daemon.wait_for("/healthz", |health| health["health"] == "red");
    for path in ["/api/outputs", "/api/handlers", "/healthz", "/api/run", "/api/reload"] {
        let told = daemon.get(path).1.to_string();
        assert!(!told.contains("hunter"), "{path}: {told}");
    }
    let log = daemon.log();
    assert!(!log.contains("hunter"), "{log}");
    let run = daemon.stop();
    assert!(!run.stdout.contains("hunter"), "{}", run.stdout);
}

#[test]
fn d13_c08_a_token_that_is_refused_says_so_in_the_state_and_a_new_one_mends_it() {
    let server = Server::start_with_tls(|_, request| {
        let mended = request.header("authorization") == Some("Bearer hunter3");
        Answer::Status(if mended { 200 } else { 401 }, "")
    });
    let stage = with_credentials(&server.url);
    let text = std::fs::read_to_string(stage.path("greenroom.yaml")).unwrap();
    let (before, rest) = text.split_once("http: {").unwrap();
    let passes = format!(
        "{before}pass: {{}}, order_by: subject }} }}\n{}",
        &rest[rest.find("outputs:").unwrap()..]
    );
    stage.write("greenroom.yaml", passes);
    let daemon = Daemon::start(&stage);
    let output = daemon.wait_for("/api/outputs/api", |output| output["state"] == "paused");
    let error = output["trouble"]["last_error"].as_str().unwrap();
    assert!(error.contains("401") && error.contains("the credentials were refused"), "{error}");
    stage.write("token", "hunter3\n");
    assert_eq!(daemon.post("/api/reload").1["changed"], json!(["outputs.api.http"]));
    daemon.wait_for("/api/outputs/api", |output| output["state"] == "up");
    daemon.wait_for("/healthz", |health| health["health"] == "green");
    let report = daemon.stop().report();
    assert_eq!((&report["dead_lettered"], &report["out_of_order"]), (&json!(0), &json!(0)));
}
