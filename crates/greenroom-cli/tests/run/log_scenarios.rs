//! The scenarios that every release passes (Z), on the durable log behind an `http` input.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::run::{
    daemon::{Daemon, wait},
    faketime,
    order::{Repeats, assert_all_in_order},
    posts::{Posts, STRUCTURED, address},
    stage::{Stage, event, events},
};

/// An `http` input, and the rest.
fn stage(rest: &str) -> Stage {
    Stage::with(&format!(
        "
inputs: {{ i: {{ http: {{ listen: '127.0.0.1:0', store: kept, max_event: 32MiB, max_body: 64MiB }} }} }}
outputs: {{ done: {{ file: {{ path: done }} }} }}
admin: {{ listen: 127.0.0.1:0 }}
{rest}"
    ))
}

fn post_all(daemon: &Daemon<'_>, events: &[Value]) {
    let mut posts = Posts::connect(&address(daemon)).unwrap();
    for batch in events.chunks(500) {
        let told = posts.batch(batch).unwrap();
        assert_eq!((told.status, &told.body["stored"]), (202, &json!(batch.len())), "{told:?}");
    }
}

fn wait_for_lines(stage: &Stage, name: &str, lines: usize) {
    wait(|| (stage.count_lines(name) >= lines).then_some(()));
}

/// One event always fails. Those of other keys go on, and so does the rest of its own.
#[test]
fn z03_a_poisonous_event_of_a_log_is_a_dead_letter_and_holds_up_nobody() {
    let stage = stage(
        "
pools: { default: { workers: 8 } }
handlers:
  bad: { on: bad, order_by: subject, http: { url: 'http://127.0.0.1:1/' }, retry: { attempts: 3, backoff: 10ms..20ms } }
  all: { on: test.happened, order_by: subject, pass: }
outage: { failures: 1000000, window: 1h }
shutdown: { deadline: 20s }
",
    );
    let daemon = Daemon::start(&stage);
    let mut all = events(1_000);
    all.insert(500, event("poison", "bad", "s1", json!(0)));
    post_all(&daemon, &all);
    wait_for_lines(&stage, "done", 1_000);
    wait_for_lines(&stage, "dead-letters.ndjson", 1);
    daemon.wait_for("/api/run", |run| {
        let partition = &run["inputs"][0]["partitions"][0];
        partition["lag"] == 0 && partition["oldest_open"] == partition["next"]
    });
    daemon.signal(Signal::TERM);
    daemon.ended().counted(0, [1_001, 1_000, 1, 0]);
    assert_eq!(stage.read("dead-letters.ndjson")[0]["event"]["id"], "poison");
    assert_all_in_order(&events(1_000), &stage.read("done"), Repeats::None);
}

/// Where the place of the dead letters is down, the event stays open and is handled by the next
/// run.
#[test]
fn z03_what_cannot_become_a_dead_letter_stays_in_the_log() {
    let rest = |dead: &str| {
        format!(
            "handlers: {{ h: {{ on: nothing, pass: }} }}\ndead_letters: {{ file: {{ path: {dead} }} }}\n"
        )
    };
    let full = stage(&rest("/dev/full"));
    let daemon = Daemon::start(&full);
    post_all(&daemon, &[event("kept", "t", "s", json!(1))]);
    let run = daemon.ended();
    assert_eq!(run.code, 3, "{run:?}");
    let config = fs::read_to_string(full.path("greenroom.yaml")).unwrap();
    full.write("greenroom.yaml", config.replace("/dev/full", "letters"));
    let daemon = Daemon::start(&full);
    wait_for_lines(&full, "letters", 1);
    daemon.signal(Signal::TERM);
    daemon.ended().counted(0, [1, 0, 1, 0]);
    assert_eq!(full.read("letters")[0]["event"]["id"], "kept");
}

/// Times of a handler, told by a process of its own.
const SLEEPS: &str = r#"
while IFS= read -r line; do
    token=${line#*\"token\":\"}; token=${token%%\"*}
    sleep 0.2
    printf '{"token":"%s","outcome":"pass"}\n' "$token"
done
"#;

#[test]
fn z05_a_hot_key_of_a_log_takes_a_quarter_longer_than_it_must_at_most() {
    const WORK: f64 = 0.2;
    const HOT: usize = 20;
    let stage = stage(
        "
pools: { default: { workers: 12 } }
handlers: { h: { on: '**', order_by: subject, exec: { command: [sh, w.sh] } } }
shutdown: { deadline: 20s }
",
    );
    stage.write("w.sh", SLEEPS);
    let daemon = Daemon::start(&stage);
    // Processes are started before the clock is.
    post_all(
        &daemon,
        &(0..12)
            .map(|n| event(&format!("w{n}"), "t", &format!("w{n}"), json!(n)))
            .collect::<Vec<_>>(),
    );
    wait_for_lines(&stage, "done", 12);
    // The hottest key is half of what eleven workers have to do otherwise.
    let key =
        |n: usize| if n.is_multiple_of(5) { "hot".to_owned() } else { format!("k{}", n % 23) };
    let mut ratios = Vec::new();
    for round in 0..3 {
        let all: Vec<Value> =
            (0..5 * HOT).map(|n| event(&format!("r{round}-{n}"), "t", &key(n), json!(n))).collect();
        let began = Instant::now();
        post_all(&daemon, &all);
        wait_for_lines(&stage, "done", 12 + (round + 1) * all.len());
        ratios.push(began.elapsed().as_secs_f64() / (WORK * HOT as f64));
        if ratios[round] <= 1.25 {
            break;
        }
    }
    assert!(ratios.iter().any(|ratio| *ratio <= 1.25), "{ratios:?}");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ended().code, 0);
}

/// Says in `ledger` what it begins and ends, and ends nothing before there is a file `go`. A
/// process whose parent was killed ends nothing.
const HOLDS: &str = r#"
while IFS= read -r line; do
    token=${line#*\"token\":\"}; token=${token%%\"*}
    id=${line#*\"id\":\"}; id=${id%%\"*}
    echo "begin $id" >>ledger
    while kill -0 $PPID && [ ! -e go ]; do sleep 0.02; done
    kill -0 $PPID || exit 1
    echo "end $id" >>ledger
    printf '{"token":"%s","outcome":"pass"}\n' "$token"
done
"#;

fn ledger(stage: &Stage) -> Vec<String> {
    let text = fs::read_to_string(stage.path("ledger")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Posts what was posted before: it is known, and nothing of it is stored a second time.
fn post_again(daemon: &Daemon<'_>, events: &[Value]) {
    let told = Posts::connect(&address(daemon)).unwrap().batch(events).unwrap();
    assert_eq!(told.body, json!({ "stored": 0, "repeated": events.len() }));
}

/// Of one range, events are in hand, behind one that is, parked, and done. It is posted again, and
/// given again after `kill -9`.
#[test]
fn z08_a_range_that_is_delivered_again_is_handled_where_it_was_not_done_and_never_twice_at_once() {
    let stage = stage(
        "
pools: { default: { workers: 8, on_final_failure: park } }
handlers:
  held: { on: held, order_by: subject, exec: { command: [sh, w.sh], timeout: 1h } }
  bad: { on: bad, order_by: subject, http: { url: 'http://127.0.0.1:1/' }, retry: { attempts: 1 } }
  all: { on: test.happened, order_by: subject, pass: }
outage: { failures: 1000000, window: 1h }
shutdown: { deadline: 20s }
",
    );
    stage.write("w.sh", HOLDS);
    let held: Vec<Value> =
        (1..=3).map(|n| event(&format!("h{n}"), "held", "held", json!(n))).collect();
    let done = events(20);
    let poison = event("poison", "bad", "poison", json!(0));
    let all = [&held[..], &[poison], &done[..]].concat();
    let is_parked = |run: &Value| run["parked_keys"] == 1;

    let daemon = Daemon::start(&stage);
    post_all(&daemon, &all);
    wait_for_lines(&stage, "done", done.len());
    daemon.wait_for("/api/run", is_parked);
    wait(|| (ledger(&stage) == ["begin h1"]).then_some(()));
    post_again(&daemon, &all);
    // What is done is on disk: all but the first four of 24.
    let checkpoint = stage.path("kept/consumers/greenroom.checkpoint");
    let is_stored = |text: String| text.contains(r#""next":25,"open":[1,4]"#);
    wait(|| fs::read_to_string(&checkpoint).is_ok_and(is_stored).then_some(()));
    daemon.signal(Signal::KILL);
    drop(daemon);

    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/run", is_parked);
    wait(|| (ledger(&stage) == ["begin h1", "begin h1"]).then_some(()));
    post_again(&daemon, &all);
    stage.write("go", "");
    wait_for_lines(&stage, "done", done.len() + held.len());
    assert_eq!(daemon.decide("skip", "poison").0, 200);
    wait_for_lines(&stage, "dead-letters.ndjson", 1);
    daemon.signal(Signal::TERM);
    let report = daemon.ended().counted(0, [4, 3, 1, 0]);
    assert_eq!(report["positions"][0]["skipped"], 20, "{report}");
    let once = ["begin h1", "end h1", "begin h2", "end h2", "begin h3", "end h3"];
    assert_eq!(ledger(&stage)[1..], once, "one after the other, each once");
    assert_all_in_order(&[&held[..], &done[..]].concat(), &stage.read("done"), Repeats::None);
}

/// 10,000 wait, and one handler never returns.
#[test]
fn z09_a_stop_under_load_ends_by_its_deadline_and_the_log_has_what_was_left() {
    let rest = |handler: &str| {
        format!(
            "
pools: {{ default: {{ workers: 4 }} }}
handlers: {{ h: {{ on: '**', order_by: subject, {handler} }} }}
shutdown: {{ deadline: 1s }}
"
        )
    };
    let stage = stage(&rest("simulate: { latency: 1h..1h, failures: 0 }"));
    let daemon = Daemon::start(&stage);
    let mut all = events(10_000);
    post_all(&daemon, &all);
    daemon.wait_for("/api/run", |run| run["progress"]["queued"] != 0);
    let at = address(&daemon);
    let mut posts = Posts::connect(&at).unwrap();
    let stopped = Instant::now();
    daemon.signal(Signal::TERM);
    wait(|| daemon.log().contains("draining").then_some(()));
    // Intake stops a moment later: what is accepted until then is in the log like the rest.
    while stopped.elapsed() < Duration::from_millis(800) {
        let late = event(&format!("late-{}", all.len()), "t", "s", json!(1));
        match posts.event(&late) {
            Ok(told) if told.status != 503 => all.push(late),
            _ => break,
        }
    }
    assert!(stopped.elapsed() < Duration::from_millis(800), "intake has stopped");
    let run = daemon.ended();
    assert!(stopped.elapsed() < Duration::from_millis(2_500), "{:?}", stopped.elapsed());
    assert_eq!((run.code, &run.report()["handled"]), (3, &json!(0)));
    let config = fs::read_to_string(stage.path("greenroom.yaml")).unwrap();
    stage.write(
        "greenroom.yaml",
        config.replace("simulate: { latency: 1h..1h, failures: 0 }", "pass:"),
    );
    let daemon = Daemon::start(&stage);
    wait_for_lines(&stage, "done", all.len());
    daemon.signal(Signal::TERM);
    let count = all.len() as u64;
    daemon.ended().counted(0, [count, count, 0, 0]);
    assert_all_in_order(&all, &stage.read("done"), Repeats::None);
}

/// The wall clock jumps by an hour, forwards and back, while events come, fail and are tried again.
#[test]
fn z10_a_jump_of_the_wall_clock_holds_up_nothing_and_makes_no_storm() {
    let Some(library) = faketime::library() else { return };
    let stage = stage(
        "
pools: { default: { workers: 8 } }
handlers:
  h:
    on: '**'
    order_by: subject
    simulate: { latency: 0ms..2ms, failures: 0.2, seed: 1 }
    retry: { attempts: 1000, backoff: 5ms..20ms }
outage: { failures: 1000000, window: 1h }
shutdown: { deadline: 20s }
",
    );
    let clock = stage.path("clock");
    fs::write(&clock, "+0").unwrap();
    let daemon = Daemon::start_with(&stage, |command| faketime::set(command, &library, &clock));
    let all = events(1_200);
    let (mut posted, began) = (0, Instant::now());
    for jump in ["+0", "+3600", "-3600", "+0"] {
        // Half of each round is under way when the clock jumps.
        post_all(&daemon, &all[posted..posted + 150]);
        fs::write(stage.path("next"), jump).unwrap();
        fs::rename(stage.path("next"), &clock).unwrap();
        post_all(&daemon, &all[posted + 150..posted + 300]);
        posted += 300;
        wait_for_lines(&stage, "done", posted);
    }
    let took = began.elapsed();
    daemon.signal(Signal::TERM);
    let report = daemon.ended().counted(0, [1_200, 1_200, 0, 0]);
    // A fifth fails, of those a fifth again, and so on: a quarter as many as there are, and chance.
    let retried = report["retried"].as_u64().unwrap();
    assert!((150..600).contains(&retried), "{retried} further attempts");
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_all_in_order(&all, &stage.read("done"), Repeats::None);
}

/// An event of 20 MiB beside small ones, under a budget of 16 MiB: it passes alone.
#[test]
fn z11_a_huge_event_of_a_log_passes_alone_and_the_others_flow() {
    let stage = Stage::with(
        "
inputs: { i: { http: { listen: '127.0.0.1:0', store: kept, max_event: 32MiB, max_body: 64MiB }, in_flight: 16MiB } }
handlers: { h: { on: '**', order_by: subject, pass: } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
shutdown: { deadline: 20s }
",
    );
    let daemon = Daemon::start(&stage);
    let mut all = events(400);
    all[200]["data"] = json!("x".repeat(20 << 20));
    let mut posts = Posts::connect(&address(&daemon)).unwrap();
    for event in &all {
        assert_eq!(posts.event(event).unwrap().status, 202);
    }
    let larger = event("larger", "t", "s", json!("x".repeat(33 << 20)));
    // Who writes on may find the connection closed before the answer is read.
    let told = posts.event(&larger);
    assert!(told.is_err() || told.is_ok_and(|told| told.status == 413), "above the limit");
    wait_for_lines(&stage, "done", all.len());
    daemon.signal(Signal::TERM);
    daemon.ended().counted(0, [400, 400, 0, 0]);
    assert_all_in_order(&all, &stage.read("done"), Repeats::None);
}

#[test]
fn z12_what_is_no_event_is_refused_by_its_post_and_stops_nothing() {
    let stage = stage("handlers: { h: { on: '**', pass: } }\nshutdown: { deadline: 20s }\n");
    let daemon = Daemon::start(&stage);
    let at = address(&daemon);
    let structured = format!("content-type: {STRUCTURED}\r\n");
    let bodies = [
        "{\"specversion\":",
        "null",
        "",
        "[]",
        "{\"specversion\":\"1.0\",\"id\":\"\",\"source\":\"/s\",\"type\":\"t\"}",
        "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/s\",\"type\":\"t\",\"data\":}",
    ];
    for body in bodies {
        let told = Posts::connect(&at).unwrap().post(&structured, body).unwrap();
        assert_eq!(told.status, 400, "{body:?}: {told:?}");
        assert!(told.body["error"].as_str().is_some_and(|why| !why.is_empty()), "{told:?}");
    }
    for headers in ["ce-specversion: 1.0\r\nce-id: 1\r\nce-type: t\r\n", "ce-specversion: 9\r\n"] {
        assert_eq!(
            Posts::connect(&at).unwrap().post(headers, "x").unwrap().status,
            400,
            "{headers:?}"
        );
    }
    post_all(&daemon, &events(10));
    wait_for_lines(&stage, "done", 10);
    daemon.signal(Signal::TERM);
    daemon.ended().counted(0, [10, 10, 0, 0]);
}
