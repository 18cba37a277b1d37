//! `http` inputs: posted, on disk, handled; whatever happens in between.

use std::{
    fs::File,
    net::TcpStream,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde_json::{Value, json};

use crate::run::{
    daemon::{Daemon, wait},
    order::{Repeats, assert_all_in_order},
    posts::{Posts, STRUCTURED, address, address_in},
    server::certificate,
    small_disk::SmallDisk,
    stage::{Run, Stage, end, event, events},
};

const PASS: &str = "
inputs: { i: { http: { listen: '127.0.0.1:0', store: kept } } }
handlers: { all: { on: '**', order_by: subject, pass: } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
shutdown: { deadline: 20s }
";

/// Nothing is ever handled.
const STUCK: &str = "
inputs: { i: { http: { listen: '127.0.0.1:0', store: kept }, run_ahead: 1 } }
pools: { default: { workers: 1, queue: 1 } }
handlers: { all: { on: '**', simulate: { latency: 1h..1h } } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
shutdown: { deadline: 0s }
";

fn ids(stage: &Stage) -> Vec<String> {
    stage.read("done").iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

fn lines(stage: &Stage) -> usize {
    std::fs::read(stage.path("done")).unwrap_or_default().iter().filter(|b| **b == b'\n').count()
}

/// Ends it by one signal.
fn drained(daemon: Daemon<'_>) -> Run {
    daemon.signal(Signal::TERM);
    daemon.ended()
}

#[test]
fn b02_what_is_posted_in_any_mode_is_handled_and_a_stop_leaves_nothing_to_do() {
    let stage = Stage::with(PASS);
    let daemon = Daemon::start(&stage);
    let mut posts = Posts::connect(&address(&daemon)).unwrap();
    assert_eq!(posts.event(&event("one", "t", "s", json!(1))).unwrap().status, 202);
    let binary =
        "ce-specversion: 1.0\r\nce-id: two\r\nce-source: /test\r\nce-type: t\r\nce-subject: s\r\n";
    assert_eq!(posts.post(binary, "{}").unwrap().status, 202);
    let batch = [event("three", "t", "s", json!(3)), event("four", "t", "s", json!(4))];
    let told = posts.batch(&batch).unwrap();
    assert_eq!(told.body, json!({ "stored": 2, "repeated": 0 }));
    wait(|| (lines(&stage) == 4).then_some(()));
    assert_eq!(ids(&stage), ["one", "two", "three", "four"]);
    drained(daemon).counted(0, [4, 4, 0, 0]);

    let daemon = Daemon::start(&stage);
    address(&daemon);
    let run = drained(daemon);
    run.counted(0, [0, 0, 0, 0]);
    assert!(run.stderr.is_empty(), "its log is a file");
}

#[test]
fn b02_what_is_stored_and_not_read_by_a_stop_is_left_to_the_next_run_and_no_failure() {
    let slow = PASS
        .replace("pass:", "simulate: { latency: 5ms..5ms }")
        .replace("store: kept }", "store: kept }, run_ahead: 1, in_flight: 1KiB");
    let stage = Stage::with(&(slow + "pools: { default: { workers: 1, queue: 1 } }\n"));
    let daemon = Daemon::start(&stage);
    let events = events(2_000);
    let mut posts = Posts::connect(&address(&daemon)).unwrap();
    for batch in events.chunks(500) {
        assert_eq!(posts.batch(batch).unwrap().status, 202);
    }
    let run = drained(daemon);
    assert_eq!(run.code, 0, "{run:?}");
    let first = lines(&stage);
    assert!(first < 2_000, "{first}");
    stage.write("greenroom.yaml", PASS);
    let daemon = Daemon::start(&stage);
    wait(|| (lines(&stage) >= 2_000).then_some(()));
    let handled = drained(daemon).report()["handled"].as_u64().unwrap();
    assert_eq!(first as u64 + handled, 2_000);
    assert_all_in_order(&events, &stage.read("done"), Repeats::None);
}

/// Half of the posts may still find room, so senders alone do not show it.
#[test]
fn b02_a_full_disk_is_told_by_health_and_by_one_line_of_the_log() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("disk")).unwrap();
    let Some(disk) = SmallDisk::mount(&stage.path("disk"), 5) else { return };
    let kept =
        format!("store: {}, retention: {{ size: 8MiB }}", disk.path().join("kept").display());
    stage.write("greenroom.yaml", PASS.replace("store: kept", &kept));
    std::fs::write(disk.path().join("ballast"), vec![0; 2 << 20]).unwrap();
    let daemon = Daemon::start(&stage);
    let at = address(&daemon);
    let health = || Posts::connect(&at).unwrap().get("/healthz").unwrap().status;
    assert_eq!((health(), &daemon.get("/healthz").1["health"]), (200, &json!("green")));
    let mut posts = Posts::connect(&at).unwrap();
    let mut post = |n| posts.event(&event(&format!("e{n}"), "t", "s", json!("x".repeat(500_000))));
    // A segment has 2 MiB, and there is no room for a second one.
    let refused = (0..20).find(|n| post(*n).unwrap().status == 429);
    assert!(refused.is_some() && post(50).unwrap().status == 429);
    assert_eq!(health(), 503);
    let told = daemon.get("/healthz").1;
    assert_eq!(told["health"], "yellow");
    assert!(told["headline"].as_str().unwrap().contains("the input `i`"), "{told}");
    assert_eq!(posts.event(&event("small", "t", "s", json!(1))).unwrap().status, 202);
    std::fs::remove_file(disk.path().join("ballast")).unwrap();
    wait(|| (health() == 200).then_some(()));
    assert_eq!(daemon.get("/healthz").1["health"], "green");
    let log = daemon.log();
    let count = |line: &str| log.matches(line).count();
    let counts = (count("the log is full: events are refused"), count("the log has room again"));
    assert_eq!(counts, (1, 1), "{log}");
    assert_eq!(drained(daemon).code, 0);
}

#[test]
fn d11_a_stuck_handler_holds_up_no_sender() {
    let stage = Stage::with(STUCK);
    let daemon = Daemon::start(&stage);
    let mut posts = Posts::connect(&address(&daemon)).unwrap();
    for event in events(300) {
        assert_eq!(posts.event(&event).unwrap().status, 202);
    }
    let input = daemon.get("/api/run").1["inputs"][0].clone();
    assert!(input["taken"].as_u64().unwrap_or(0) < 300, "{input}");
}

#[test]
fn d14_a_post_repeated_after_its_202_was_lost_is_one_event() {
    let stage = Stage::with(STUCK);
    let daemon = Daemon::start(&stage);
    let mut posts = Posts::connect(&address(&daemon)).unwrap();
    let posted = event("once", "t", "s", json!(1));
    // What its sender never gets to see.
    assert_eq!(posts.event(&posted).unwrap().body["stored"], 1);
    daemon.signal(Signal::KILL);
    drop(daemon);

    stage.write("greenroom.yaml", PASS);
    let daemon = Daemon::start(&stage);
    let mut posts = Posts::connect(&address(&daemon)).unwrap();
    assert_eq!(posts.event(&posted).unwrap().body, json!({ "stored": 0, "repeated": 1 }));
    assert_eq!(posts.event(&event("last", "t", "s", json!(1))).unwrap().body["stored"], 1);
    wait(|| ids(&stage).contains(&"last".to_owned()).then_some(()));
    assert_eq!(ids(&stage), ["once", "last"]);
    drained(daemon).counted(0, [2, 2, 0, 0]);
}

#[test]
fn b02_tokens_are_reloaded_and_what_needs_a_restart_is_named() {
    let guarded = PASS.replace("store: kept", "store: kept, auth: { bearer: 'file:token' }");
    let stage = Stage::with(&guarded);
    stage.write("token", "old\n");
    let daemon = Daemon::start(&stage);
    let at = address(&daemon);
    let posted = event("e", "t", "s", json!(1)).to_string();
    let as_whom = |token: &str| {
        let headers = format!("authorization: Bearer {token}\r\ncontent-type: {STRUCTURED}\r\n");
        Posts::connect(&at).unwrap().post(&headers, &posted).unwrap().status
    };
    assert_eq!((as_whom("old"), as_whom("new")), (202, 401));
    stage.write("token", "new\n");
    let (status, told) = daemon.post("/api/reload");
    assert_eq!((status, &told["changed"]), (200, &json!(["inputs.i.http"])), "{told}");
    assert_eq!((as_whom("old"), as_whom("new")), (401, 202));

    let other = guarded.replace("store: kept", "store: other, path: /in, max_event: 1KiB");
    stage.write("greenroom.yaml", other);
    let (_, told) = daemon.post("/api/reload");
    let left: Vec<_> = told["left"].as_array().unwrap().iter().map(|left| &left["what"]).collect();
    assert_eq!(left, ["inputs.i.http.path", "inputs.i.http.store"], "{told}");
    let large = event("large", "t", "s", json!("x".repeat(2_000))).to_string();
    let headers = format!("authorization: Bearer new\r\ncontent-type: {STRUCTURED}\r\n");
    assert_eq!(Posts::connect(&at).unwrap().post(&headers, &large).unwrap().status, 413);
    drained(daemon);
}

#[test]
fn b02_a_reload_that_would_need_another_address_to_go_without_auth_leaves_the_input_as_it_is() {
    let guarded = PASS
        .replace("'127.0.0.1:0'", "'0.0.0.0:0'")
        .replace("store: kept", "store: kept, auth: { bearer: sesame }");
    let stage = Stage::with(&guarded);
    let daemon = Daemon::start(&stage);
    let at = address(&daemon).replace("0.0.0.0", "127.0.0.1");
    stage.write("greenroom.yaml", PASS);
    let (_, told) = daemon.post("/api/reload");
    let left: Vec<_> = told["left"].as_array().unwrap().iter().map(|left| &left["what"]).collect();
    assert_eq!(left, ["inputs.i.http.listen", "inputs.i.http"], "{told}");
    assert!(told.to_string().contains("it still listens at 0.0.0.0:0"), "{told}");
    let posted = Posts::connect(&at).unwrap().event(&event("e", "t", "s", json!(1))).unwrap();
    assert_eq!(posted.status, 401, "nobody is let in by half of the change");
    drained(daemon);
}

/// Posts over TLS to a server that shows a certificate of this name.
fn over_tls(at: &str, name: &str) -> Posts<StreamOwned<ClientConnection, TcpStream>> {
    let mut authorities = RootCertStore::empty();
    authorities.add(CertificateDer::from_pem_file(certificate("ca.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(authorities)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let tls = ClientConnection::new(Arc::new(config), name).unwrap();
    Posts::over(StreamOwned::new(tls, TcpStream::connect(at).unwrap()))
}

#[test]
fn b02_certificates_are_reloaded_for_new_connections_and_broken_ones_are_not_taken() {
    let config = PASS.replace("store: kept", "store: kept, tls: { cert: cert.pem, key: key.pem }");
    let stage = Stage::with(&config);
    let show = |name: &str| {
        stage.write("cert.pem", std::fs::read(certificate(&format!("{name}.pem"))).unwrap());
        stage.write("key.pem", std::fs::read(certificate(&format!("{name}.key"))).unwrap());
    };
    show("server");
    let daemon = Daemon::start(&stage);
    let at = address(&daemon);
    let mut first = over_tls(&at, "localhost");
    assert_eq!(first.event(&event("1", "t", "s", json!(1))).unwrap().status, 202);
    show("renamed");
    let (status, told) = daemon.post("/api/reload");
    assert_eq!((status, &told["changed"]), (200, &json!(["inputs.i.http"])), "{told}");
    assert!(over_tls(&at, "localhost").event(&event("2", "t", "s", json!(1))).is_err());
    let mut second = over_tls(&at, "target.internal");
    assert_eq!(second.event(&event("2", "t", "s", json!(2))).unwrap().status, 202);
    assert_eq!(first.event(&event("3", "t", "s", json!(3))).unwrap().status, 202, "an old one");

    stage.write("cert.pem", "no certificate\n");
    let (status, told) = daemon.post("/api/reload");
    assert!(status != 200 && told.to_string().contains("holds no certificate"), "{status}: {told}");
    let mut third = over_tls(&at, "target.internal");
    assert_eq!(third.event(&event("4", "t", "s", json!(4))).unwrap().status, 202);
    // What is stored and not read by a stop would be left to the next run.
    wait(|| (lines(&stage) == 4).then_some(()));
    drained(daemon).counted(0, [4, 4, 0, 0]);
    assert_eq!(ids(&stage), ["1", "2", "3", "4"]);
}

#[test]
fn b02_requests_are_counted_by_the_status_that_they_were_answered_with() {
    let small = "store: kept, max_event: 1KiB, auth: { bearer: sesame }";
    let stage = Stage::with(&PASS.replace("store: kept", small));
    let daemon = Daemon::start(&stage);
    let at = address(&daemon);
    assert_eq!(daemon.get("/api/run").1["inputs"][0]["answers"], json!({}));
    let posted = |token: &str, body: &str| {
        let headers = format!("authorization: Bearer {token}\r\ncontent-type: {STRUCTURED}\r\n");
        Posts::connect(&at).unwrap().post(&headers, body).unwrap().status
    };
    let good = event("a", "t", "s", json!(1)).to_string();
    let large = event("b", "t", "s", json!("x".repeat(2_000))).to_string();
    let answered = [
        posted("sesame", &good),
        posted("sesame", &good),
        posted("other", &good),
        posted("sesame", "{}"),
        posted("sesame", &large),
    ];
    assert_eq!(answered, [202, 202, 401, 400, 413]);
    let answers = daemon.get("/api/run").1["inputs"][0]["answers"].clone();
    assert_eq!(answers, json!({ "202": 2, "400": 1, "401": 1, "413": 1 }));
    drained(daemon);
    // An input of another kind answers nobody.
    let other =
        PASS.replace("http: { listen: '127.0.0.1:0', store: kept }", "generator: { rate: 1/s }");
    let other = Stage::with(&other);
    let daemon = Daemon::start(&other);
    assert_eq!(daemon.get("/api/run").1["inputs"][0]["answers"], Value::Null);
    drained(daemon);
}

#[test]
fn b02_an_input_that_is_gone_from_the_file_takes_nothing_more() {
    let two = PASS.replace("store: kept } }", "store: kept } }, g: { generator: { rate: 1/s } }");
    let stage = Stage::with(&two);
    let daemon = Daemon::start(&stage);
    let at = address(&daemon);
    assert_eq!(
        Posts::connect(&at).unwrap().event(&event("a", "t", "s", json!(1))).unwrap().status,
        202
    );
    let one = two.replace("i: { http: { listen: '127.0.0.1:0', store: kept } }, ", "");
    stage.write("greenroom.yaml", one);
    let (_, told) = daemon.post("/api/reload");
    assert_eq!(told["changed"], json!(["inputs.i (removed)"]), "{told}");
    wait(|| Posts::connect(&at).is_err().then_some(()));
    wait(|| daemon.log().contains("the input has ended").then_some(()));
    drained(daemon);
    // The next run goes on with its log.
    stage.write("greenroom.yaml", two);
    let daemon = Daemon::start(&stage);
    let again = Posts::connect(&address(&daemon)).unwrap().event(&event("a", "t", "s", json!(1)));
    assert_eq!(again.unwrap().body["repeated"], 1);
    drained(daemon);
}

#[test]
fn b02_an_input_that_was_removed_comes_back_on_its_log_while_the_daemon_runs() {
    // An address that is taken again as well.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let with = PASS
        .replace("127.0.0.1:0', store: kept } }", &format!("{port}', store: kept }} }}"))
        .replace("store: kept } }", "store: kept } }, g: { generator: { rate: 1/s, types: [g] } }");
    let without = {
        let (before, rest) = with.split_once("i: { http:").unwrap();
        let (_, after) = rest.split_once("} }, ").unwrap();
        format!("{before}{after}")
    };
    let stage = Stage::with(&with);
    let daemon = Daemon::start(&stage);
    let ended = || daemon.log().matches("the input has ended").count();
    let mut posted = Vec::new();
    for round in 0..4 {
        let mut posts = wait(|| Posts::connect(&port.to_string()).ok());
        let batch: Vec<_> =
            (0..50).map(|n| event(&format!("{round}-{n}"), "t", "s", json!(n))).collect();
        assert_eq!(posts.batch(&batch).unwrap().body, json!({ "stored": 50, "repeated": 0 }));
        posted.extend(batch);
        // It goes with a sender that is still connected, and in the midst of its events.
        stage.write("greenroom.yaml", &without);
        let (_, told) = daemon.post("/api/reload");
        assert_eq!(told["changed"], json!(["inputs.i (removed)"]), "{told}");
        wait(|| (ended() == round + 1).then_some(()));
        stage.write("greenroom.yaml", &with);
        let (_, told) = daemon.post("/api/reload");
        assert_eq!((&told["changed"], &told["left"]), (&json!(["inputs.i (added)"]), &json!([])));
    }
    let mut posts = wait(|| Posts::connect(&port.to_string()).ok());
    let told = posts.batch(&posted[..1]).unwrap();
    assert_eq!(told.body, json!({ "stored": 0, "repeated": 1 }), "the log is the same one");
    let handled = || std::fs::read_to_string(stage.path("done")).unwrap_or_default();
    wait(|| (handled().matches(r#""type":"t""#).count() >= posted.len()).then_some(()));
    drained(daemon);
    let done: Vec<_> =
        stage.read("done").into_iter().filter(|event| event["type"] == "t").collect();
    assert_all_in_order(&posted, &done, Repeats::None);
}

#[test]
fn b02_a_log_that_a_removed_input_is_not_done_with_is_given_to_nobody() {
    let second = "run_ahead: 1 }, g: { generator: { rate: 1/h, types: [g] } } }";
    let two = STUCK.replace("run_ahead: 1 } }", second);
    assert_ne!(two, STUCK);
    let stage = Stage::with(&two);
    let daemon = Daemon::start(&stage);
    let at = address(&daemon);
    Posts::connect(&at).unwrap().event(&event("a", "t", "s", json!(1))).unwrap();
    daemon.wait_for("/api/run", |run| run["inputs"][0]["partitions"][0]["next"] == 2);
    stage.write("greenroom.yaml", two.replace("i: { http:", "other: { http:"));
    // What is new is added first, and meets the log in use; then it is left by what is gone.
    for why in ["its log is read by `inputs.i`", "still read by an input that was removed"] {
        let (_, told) = daemon.post("/api/reload");
        assert_eq!(told["left"][0]["what"], "inputs.other", "{told}");
        assert!(told["left"][0]["why"].as_str().unwrap().contains(why), "{told}");
    }
    daemon.signal(Signal::KILL);
}

#[test]
fn m05_a_webhook_becomes_an_event_by_its_headers_and_path() {
    let hooks = PASS.replace(
        "store: kept } }",
        "store: kept, path: '/hooks/*' }, records: { type: { header: X-Event }, source: { path: {} }, \
         subject: { pointer: /repo } } }",
    );
    let stage = Stage::with(&hooks);
    let daemon = Daemon::start(&stage);
    let mut posts = Posts::connect(&address(&daemon)).unwrap();
    let headers = "content-type: application/json\r\nx-event: push\r\n";
    let mut post = |headers, body| posts.post_to("/hooks/git", headers, body).unwrap();
    assert_eq!(post(headers, r#"{"repo":"greenroom"}"#).body["stored"], 1);
    assert_eq!(post(headers, r#"{"repo":"greenroom"}"#).body["repeated"], 1);
    let bad = post("content-type: application/json\r\n", r#"{"repo":"greenroom"}"#);
    assert_eq!((bad.status, &bad.body["field"]), (400, &json!("type")), "{bad:?}");
    wait(|| (lines(&stage) == 1).then_some(()));
    let done = &stage.read("done")[0];
    assert_eq!(
        (&done["type"], &done["source"], &done["subject"], &done["data"]),
        (&json!("push"), &json!("/hooks/git"), &json!("greenroom"), &json!({"repo":"greenroom"}))
    );
    drained(daemon).counted(0, [1, 1, 0, 0]);
}

#[test]
fn c15_a_dry_run_reads_what_is_stored_settles_nothing_and_listens_nowhere() {
    let stage = Stage::with(STUCK);
    let daemon = Daemon::start(&stage);
    let at = address(&daemon);
    Posts::connect(&at).unwrap().batch(&events(50)).unwrap();
    let busy = stage.command("run greenroom.yaml --dry-run").output().unwrap();
    let why = String::from_utf8(busy.stderr).unwrap();
    assert!(busy.status.code() == Some(1) && why.contains("the log is in use"), "{why}");
    // Those in hand are refused by the stop.
    drained(daemon);
    let taken = std::net::TcpListener::bind(&at).unwrap();
    stage.write("greenroom.yaml", STUCK.replace("127.0.0.1:0', s", &format!("{at}', s")));
    for _ in 0..2 {
        let started = Instant::now();
        let run = Run::of(stage.command("run greenroom.yaml --dry-run").output().unwrap(), started);
        assert!(run.stdout.contains("50 events"), "{run:?}");
        assert!(run.stdout.contains("nothing was listened to"), "{run:?}");
    }
    // A run needs the address.
    let run = stage.run();
    assert!(run.code == 1 && run.stderr.contains("cannot listen"), "{run:?}");
    drop(taken);
}

/// The log is taken from under the run: it can store no position, and go on in no new segment.
#[test]
fn b02_a_log_that_fails_takes_nothing_more_and_ends_the_run_with_the_reason() {
    let stage = Stage::with(PASS);
    let daemon = Daemon::start(&stage);
    let mut posts = Posts::connect(&address(&daemon)).unwrap();
    let large = |n: usize| event(&format!("e{n}"), "t", "s", json!("x".repeat(900_000)));
    assert_eq!(posts.event(&large(0)).unwrap().status, 202);
    std::fs::remove_dir_all(stage.path("kept")).unwrap();
    // It is answered something else, or nobody is there any more.
    let is_refused = |n: usize| posts.event(&large(n)).map_or(true, |answer| answer.status == 503);
    assert!((1..1_000).any(is_refused), "it goes on for ever");
    let run = daemon.ended();
    assert_eq!(run.code, 3, "{run:?}");
    let report = run.report();
    let errors = report["errors"].to_string();
    assert!(errors.contains("kept") && errors.contains("No such file"), "{errors}");
    assert_eq!(report["taken"], report["handled"], "{report}");
}

#[test]
fn b02_two_daemons_on_one_store_are_refused_with_the_reason() {
    let stage = Stage::with(PASS);
    let daemon = Daemon::start(&stage);
    address(&daemon);
    let second = stage.run();
    assert!(second.code == 1 && second.stderr.contains("the log is in use"), "{second:?}");
    drained(daemon);
}

/// Senders of one key each, which post the next event once the last one is taken, and post again
/// what nobody has answered.
struct Senders {
    at: Arc<Mutex<String>>,
    over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<Vec<Value>>>,
}

impl Senders {
    fn start(count: usize) -> Self {
        let (at, over) = (Arc::<Mutex<String>>::default(), Arc::<AtomicBool>::default());
        let threads = (0..count).map(|key| {
            let (at, over) = (at.clone(), over.clone());
            thread::spawn(move || send(key, &at, &over))
        });
        Self { threads: threads.collect(), at, over }
    }

    /// Everything that was answered 202, in the order of each key.
    fn end(self) -> Vec<Value> {
        self.over.store(true, Ordering::Relaxed);
        self.threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    }
}

fn send(key: usize, at: &Mutex<String>, over: &AtomicBool) -> Vec<Value> {
    let mut taken = Vec::new();
    let mut posts = None;
    // What was posted last is posted until it is answered, so that nobody doubts what was stored.
    let mut unsure = false;
    while unsure || !over.load(Ordering::Relaxed) {
        let at = at.lock().unwrap().clone();
        if posts.is_none() {
            posts = Posts::connect(&at).ok();
        }
        let n = taken.len();
        let next = event(&format!("k{key}-{n}"), "t", &format!("k{key}"), json!(n));
        match posts.as_mut().map(|posts| posts.event(&next)) {
            Some(Ok(told)) if told.status == 202 => {
                taken.push(next);
                unsure = false;
            }
            Some(Ok(told)) => assert!([429, 503].contains(&told.status), "{told:?}"),
            Some(Err(_)) => {
                posts = None;
                unsure = true;
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    }
    taken
}

/// Waits until everything that is stored is handled.
fn all_handled(daemon: &Daemon<'_>) {
    daemon.wait_for("/api/run", |run| {
        let partition = &run["inputs"][0]["partitions"][0];
        partition["lag"] == 0 && partition["oldest_open"] == partition["next"]
    });
}

/// How many are delivered again at most, as each start has said.
fn again_at_most(log: &str) -> usize {
    let said = log.split("at most ").skip(1).filter_map(|rest| rest.split_once(" delivered again"));
    said.map(|(count, _)| count.replace(',', "").parse::<usize>().unwrap()).sum()
}

#[test]
fn z01_after_kill_9_at_any_moment_every_post_that_was_answered_is_handled_in_order() {
    let kills: u64 = std::env::var("GREENROOM_KILLS").map_or(6, |count| count.parse().unwrap());
    let stage = Stage::with(PASS);
    let senders = Senders::start(8);
    let mut again = 0;
    for kill in 0..kills {
        let log = File::create(stage.path("log")).unwrap();
        let mut command = stage.command("run greenroom.yaml --report json");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let log = || std::fs::read_to_string(stage.path("log")).unwrap_or_default();
        *senders.at.lock().unwrap() = wait(|| address_in(&log()));
        // Some moment, another one each time: the point of the test.
        thread::sleep(Duration::from_millis(10 + (kill * 7_919) % 290));
        child.kill().unwrap();
        drop(end(child));
        again += again_at_most(&log());
    }
    let daemon = Daemon::start(&stage);
    *senders.at.lock().unwrap() = address(&daemon);
    let posted = senders.end();
    assert!(posted.len() >= kills as usize, "{} posts", posted.len());
    again += again_at_most(&daemon.log());
    all_handled(&daemon);
    drained(daemon).report();
    let done = stage.read("done");
    assert_all_in_order(&posted, &done, Repeats::Allowed);
    let repeats = done.len() - posted.len();
    assert!(repeats <= again, "{repeats} repeats, of {again} announced");
    eprintln!("{kills} kills, {} events, {repeats} repeats, {again} announced", posted.len());
}

#[test]
fn z01_a_stop_under_load_loses_nothing_that_was_answered() {
    let stage = Stage::with(PASS);
    let senders = Senders::start(8);
    for _ in 0..3 {
        let daemon = Daemon::start(&stage);
        *senders.at.lock().unwrap() = address(&daemon);
        let before = lines(&stage);
        wait(|| (lines(&stage) > before + 50).then_some(()));
        let run = drained(daemon);
        assert_eq!(run.code, 0, "{run:?}");
    }
    let daemon = Daemon::start(&stage);
    *senders.at.lock().unwrap() = address(&daemon);
    let posted = senders.end();
    all_handled(&daemon);
    drained(daemon).report();
    assert_all_in_order(&posted, &stage.read("done"), Repeats::None);
}

#[test]
fn c03_init_http_writes_what_runs_and_takes_events() {
    let stage = Stage::new();
    assert!(stage.command("init http").output().unwrap().status.success());
    let check = stage.command("check greenroom.yaml").output().unwrap();
    assert!(check.status.success() && check.stderr.is_empty(), "{check:?}");
    let config = std::fs::read_to_string(stage.path("greenroom.yaml")).unwrap();
    let config = config.replace("127.0.0.1:8080  ", "127.0.0.1:0 ").replace("exec: {", "pass: # {");
    stage.write("greenroom.yaml", config + "admin: { listen: 127.0.0.1:0 }\n");
    let daemon = Daemon::start(&stage);
    let at = address(&daemon);
    let order = std::fs::read_to_string(stage.path("order.json")).unwrap();
    let headers = format!("content-type: {STRUCTURED}\r\n");
    assert_eq!(Posts::connect(&at).unwrap().post(&headers, &order).unwrap().status, 202);
    let sent = stage.command("send").args([&*at, "orders.ndjson"]).output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    wait(|| (stage.read("done.ndjson").len() == 7).then_some(()));
    drained(daemon).counted(0, [7, 7, 0, 0]);
}
