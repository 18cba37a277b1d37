//! The scenarios that every release passes (Z), where they need the daemon: real
//! processes and a real server.
//!
//! Times are compared with the least that the same run could have taken, by what its
//! targets say of their own work. A machine with much else to do may spoil one round, but
//! not every one of several.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::run::{
    order::{Repeats, assert_all_in_order},
    server::{Answer, Server},
    stage::{Stage, event, events},
};

const WORKERS: u32 = 24;
/// Long enough that what a busy machine adds to it weighs little.
const WORK: Duration = Duration::from_millis(400);
const EVENTS: usize = 80;
const ROUNDS: usize = 3;

/// Skewed keys by Zipf's law, for a handler that takes a while.
fn hot_keys(handler: &str) -> Stage {
    Stage::with(&format!(
        "
inputs: {{ i: {{ generator: {{ count: {EVENTS}, keys: 1000, zipf: 1.0, payload: 0, seed: 1 }} }} }}
pools: {{ default: {{ workers: {WORKERS} }} }}
handlers: {{ h: {{ on: '**', order_by: subject, {handler} }} }}
outputs: {{ done: {{ file: {{ path: done, truncate: true }} }} }}
"
    ))
}

/// The work on one event, in seconds of one clock.
struct Worked {
    key: String,
    from: f64,
    to: f64,
}

/// How many times longer all of it took than it had to: the hottest key one by
/// one, or all on all workers.
fn ratio(all: &[Worked]) -> f64 {
    assert_eq!(all.len(), EVENTS);
    let mut of_key: HashMap<&str, f64> = HashMap::new();
    for work in all {
        *of_key.entry(&work.key).or_default() += work.to - work.from;
    }
    let hottest = of_key.values().copied().fold(0.0, f64::max);
    let least = hottest.max(of_key.values().sum::<f64>() / f64::from(WORKERS));
    let from = all.iter().map(|work| work.from).fold(f64::INFINITY, f64::min);
    let to = all.iter().map(|work| work.to).fold(0.0, f64::max);
    assert!(least > 1.0, "there was little to do: {least} s");
    (to - from) / least
}

/// The first of some rounds that is within the bound, or all of them.
fn assert_one_within(bound: f64, round: impl Fn() -> f64) {
    let mut ratios = Vec::new();
    while ratios.len() < ROUNDS {
        ratios.push(round());
        if ratios.last().is_some_and(|ratio| *ratio <= bound) {
            return;
        }
    }
    panic!("the work took {ratios:?} times as long as it had to; {bound} is allowed");
}

/// Starts at once, so that the start of 24 processes weighs nothing. The clock is that
/// of the system, to 10 ms.
#[cfg(target_os = "linux")]
const SLEEPS: &str = r#"
while IFS= read -r line; do
    token=${line#*\"token\":\"}; token=${token%%\"*}
    key=${line#*\"subject\":\"}; key=${key%%\"*}
    read -r from _ </proc/uptime
    sleep 0.4
    read -r to _ </proc/uptime
    printf '{"token":"%s","outcome":"success","events":[' "$token"
    printf '{"specversion":"1.0","id":"%s","source":"/w","type":"made","subject":"%s","data":[%s,%s]}]}\n' "$token" "$key" "$from" "$to"
done
"#;

#[cfg(target_os = "linux")]
#[test]
fn z05_hot_keys_of_processes_take_a_quarter_longer_than_they_must_at_most() {
    let stage = hot_keys("exec: { command: [sh, w.sh] }");
    stage.write("w.sh", SLEEPS);
    assert_one_within(1.25, || {
        stage.run().counted(0, [EVENTS as u64, EVENTS as u64, 0, 0]);
        let worked: Vec<Worked> = stage
            .read("done")
            .iter()
            .map(|made| Worked {
                key: made["subject"].as_str().unwrap().to_owned(),
                from: made["data"][0].as_f64().unwrap(),
                to: made["data"][1].as_f64().unwrap(),
            })
            .collect();
        ratio(&worked)
    });
}

#[test]
fn z05_hot_keys_over_http_take_a_quarter_longer_than_they_must_at_most() {
    let (began, worked) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
    let notes = worked.clone();
    let server = Server::start(move |_, request| {
        let from = began.elapsed().as_secs_f64();
        thread::sleep(WORK);
        let key = request.header("ce-subject").unwrap().to_owned();
        notes.lock().unwrap().push(Worked { key, from, to: began.elapsed().as_secs_f64() });
        Answer::Status(204, "")
    });
    let stage = hot_keys(&format!("http: {{ url: '{}' }}", server.url));
    assert_one_within(1.25, || {
        stage.run().counted(0, [EVENTS as u64, EVENTS as u64, 0, 0]);
        ratio(&std::mem::take(&mut *worked.lock().unwrap()))
    });
}

/// Passes events on, but answers the one with the id `e7` with half a line:
/// the first time, or always.
const TRUNCATES: &str = r#"
import json, os, sys
for line in sys.stdin:
    job = json.loads(line)
    answer = json.dumps({"token": job["token"], "outcome": "pass"})
    if job["event"]["id"] == "e7" and not os.path.exists("seen"):
        if FIRST: open("seen", "w").close()
        sys.stdout.write(answer[:len(answer) // 2] + END)
        sys.stdout.flush()
        if not END: sys.exit(0)
    else:
        print(answer, flush=True)
"#;

/// A reply that breaks off, with the process or with a line feed.
fn truncated(first: bool, end: &str) -> Stage {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in } } }
pools: { default: { workers: 2 } }
handlers:
  h:
    on: '**'
    order_by: subject
    exec: { command: [python3, -IS, w.py], restart: { max: 1000, window: 60s } }
    retry: { attempts: 3, backoff: 1ms..5ms }
outputs: { done: { file: { path: done } } }
",
    );
    let first = if first { "True" } else { "False" };
    stage.write("w.py", TRUNCATES.replace("FIRST", first).replace("END", end));
    stage.write_events("in", &events(30));
    stage
}

#[test]
fn z12_after_a_truncated_reply_of_a_process_its_event_is_handled_by_another() {
    for end in ["\"\"", "\"\\n\""] {
        let stage = truncated(true, end);
        let report = stage.run().counted(0, [30, 30, 0, 0]);
        assert_eq!((&report["restarts"], &report["repeated_at_most"]), (&json!(1), &json!(1)));
        assert_all_in_order(&events(30), &stage.read("done"), Repeats::Allowed);
    }
}

#[test]
fn z12_an_event_whose_reply_is_always_truncated_is_a_dead_letter_and_whole() {
    for end in ["\"\"", "\"\\n\""] {
        let stage = truncated(false, end);
        let report = stage.run().counted(0, [30, 29, 1, 0]);
        assert_eq!(report["dead_letters_by_reason"], json!({"poisoned": 1}));
        assert_eq!(stage.read("dead-letters.ndjson")[0]["event"], events(30)[7]);
    }
}

#[test]
fn z12_what_is_no_event_stops_nothing_and_its_bytes_are_kept() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in } } }
handlers: { all: { on: '**', order_by: subject, key_required: true, pass: } }
outputs: { done: { file: { path: done } } }
",
    );
    let good = |id: &str| event(id, "t", "s", json!(1)).to_string();
    let no_key = r#"{"specversion":"1.0","id":"n","source":"/s","type":"t"}"#;
    let lines: [&[u8]; 8] = [
        good("1").leak().as_bytes(),
        b"{\"specversion\":",
        b"null",
        b"",
        b"\xff\xfe\x00",
        no_key.as_bytes(),
        b"{\"specversion\":\"1.0\",\"id\":\"\xc3\",\"source\":\"/s\",\"type\":\"t\"}",
        good("2").leak().as_bytes(),
    ];
    stage.write("in", lines.join(&b'\n'));
    let report = stage.run().counted(0, [7, 2, 5, 0]);
    assert_eq!(report["dead_letters_by_reason"], json!({"malformed": 4, "key_missing": 1}));
    let letters = stage.read("dead-letters.ndjson");
    let kept = letters.iter().filter(|letter| letter["raw_base64"].is_string()).count();
    assert_eq!((letters.len(), kept), (5, 4));
}
