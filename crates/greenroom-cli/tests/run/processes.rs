//! The `exec` handler: workers that work, die, hang, talk nonsense, or are not there.

use std::time::Duration;

use serde_json::json;

use crate::{
    order::{Repeats, assert_all_in_order},
    stage::{Stage, event, events},
};

/// A configuration with one `exec` handler; more options of the handler's kind, and more of the file.
fn exec(workers: usize, command: &str, options: &str, rest: &str) -> String {
    format!(
        "
inputs: {{ i: {{ file: {{ path: in }} }} }}
pools: {{ default: {{ workers: {workers} }} }}
handlers:
  h:
    on: '**'
    order_by: subject
    exec: {{ command: {command}, {options} }}
    retry: {{ attempts: 3, backoff: 1ms..5ms }}
outputs: {{ done: {{ file: {{ path: done }} }} }}
{rest}
"
    )
}

const PASS: &str = r#"
import json, os, signal, sys
handled = 0
for line in sys.stdin:
    job = json.loads(line)
    handled += 1
    if handled == 100:
        os.kill(os.getpid(), signal.SIGKILL)
    print(json.dumps({"token": job["token"], "outcome": "pass"}), flush=True)
"#;

#[test]
fn u05_workers_in_python_and_shell_pass_answer_and_reject() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in } } }
pools: { default: { workers: 2 } }
handlers:
  p: { on: py, exec: { command: [python3, -IS, w.py], env: { GREETING: hello } } }
  s: { on: sh, exec: { command: [sh, w.sh] } }
outputs: { done: { file: { path: done } } }
",
    );
    stage.write(
        "w.py",
        r#"
import json, os, sys
for line in sys.stdin:
    job = json.loads(line)
    out = {"specversion": "1.0", "id": job["event"]["id"] + "-out", "source": "/w", "type": "made",
           "data": os.environ["GREETING"]}
    print(json.dumps({"token": job["token"], "outcome": "success", "events": [out]}), flush=True)
"#,
    );
    stage.write(
        "w.sh",
        r#"while IFS= read -r line; do token=${line#*\"token\":\"}; token=${token%%\"*}
printf '{"token":"%s","outcome":"reject","error":"not wanted"}\n' "$token"; done"#,
    );
    stage.write_events("in", &[event("1", "py", "a", json!(1)), event("2", "sh", "a", json!(2))]);
    let report = stage.run().counted(0, [2, 1, 1, 0]);
    assert_eq!(report["dead_letters_by_reason"]["rejected"], 1);
    let done = stage.read("done");
    assert_eq!((&done[0]["id"], &done[0]["data"]), (&json!("1-out"), &json!("hello")));
    let letters = stage.read("dead-letters.ndjson");
    assert_eq!(
        (&letters[0]["error"], &letters[0]["event"]["id"]),
        (&json!("not wanted"), &json!("2"))
    );
}

#[test]
fn p18_workers_that_kill_themselves_lose_and_swap_nothing() {
    let restart = "restart: { max: 1000, window: 60s }";
    let stage = Stage::with(&exec(8, "[python3, -IS, w.py]", restart, ""));
    stage.write("w.py", PASS);
    let events = events(3_000);
    stage.write_events("in", &events);
    let report = stage.run().counted(0, [3_000, 3_000, 0, 0]);
    let restarts = report["restarts"].as_u64().unwrap();
    assert!(
        (15..=40).contains(&restarts),
        "one in 100 of 3000 events kills its worker: {restarts}"
    );
    assert_eq!(report["repeated_at_most"].as_u64(), Some(restarts), "{report}");
    assert_all_in_order(&events, &stage.read("done"), Repeats::Allowed);
}

#[test]
fn d04_an_event_that_kills_every_worker_is_given_up_and_the_others_are_handled() {
    let restart = "restart: { max: 1000, window: 60s }";
    let stage = Stage::with(&exec(2, "[python3, -IS, w.py]", restart, ""));
    stage.write("w.py", PASS.replace("handled == 100", "job['event']['id'] == 'e7'"));
    let events = events(20);
    stage.write_events("in", &events);
    let report = stage.run().counted(0, [20, 19, 1, 0]);
    assert_eq!(report["dead_letters_by_reason"]["poisoned"], 1);
    let letters = stage.read("dead-letters.ndjson");
    assert_eq!(letters[0]["event"], events[7]);
    assert!(letters[0]["error"].as_str().unwrap().contains("signal: 9"), "{}", letters[0]);
}

#[test]
fn u02_a_worker_that_hangs_is_killed_at_its_timeout_and_its_event_given_up() {
    // The start of Python counts towards the timeout; where that is slow, others are tried again, too.
    let stage = Stage::with(&exec(2, "[python3, -IS, w.py]", "timeout: 400ms", ""));
    let hangs = PASS
        .replace("handled == 100", "job['event']['id'] == 'e2'")
        .replace("os.kill(os.getpid(), signal.SIGKILL)", "signal.pause()");
    stage.write("w.py", hangs);
    stage.write_events("in", &events(10));
    let run = stage.run();
    let report = run.counted(0, [10, 9, 1, 0]);
    assert_eq!(report["dead_letters_by_reason"]["retries_exhausted"], 1);
    assert!(report["repeated_at_most"].as_u64() >= Some(3), "{report}");
    let letter = &stage.read("dead-letters.ndjson")[0];
    assert_eq!((&letter["event"]["id"], &letter["attempts"]), (&json!("e2"), &json!(3)));
    assert!(letter["error"].as_str().unwrap().contains("raise `timeout`"), "{letter}");
}

#[test]
fn u02_a_worker_that_answers_nonsense_is_replaced_and_its_event_given_up() {
    let stage = Stage::with(&exec(1, "[sh, w.sh]", "restart: { max: 100, window: 60s }", ""));
    stage.write("w.sh", "while read -r line; do echo 'Hello, world!'; done");
    stage.write_events("in", &events(3));
    let run = stage.run();
    let report = run.counted(0, [3, 0, 3, 0]);
    assert_eq!(report["dead_letters_by_reason"]["poisoned"], 3);
    let letters = stage.read("dead-letters.ndjson");
    assert_eq!(letters[0]["event"]["id"], "e0");
    assert!(letters[0]["error"].as_str().unwrap().contains("Hello, world!"), "{}", letters[0]);
    assert!(run.stderr.contains("worker process crashed"), "{}", run.stderr);
}

#[test]
fn d09_workers_that_all_die_pause_the_handler_and_no_event_is_blamed() {
    let restart = "restart: { max: 0, window: 60s }";
    let stage = Stage::with(&exec(2, "[sh, -c, 'exit 7']", restart, "outage: { limit: 300ms }"));
    stage.write_events("in", &events(10));
    let run = stage.run();
    let report = run.report();
    assert_eq!(
        (run.code, &report["refused"], &report["dead_lettered"]),
        (3, &json!(10), &json!(0))
    );
    let error = report["errors"][0].as_str().unwrap();
    assert!(error.contains("in outage") && error.contains("crashed more than 0 times"), "{error}");
}

#[test]
fn c02_a_program_that_is_not_there_is_a_mistake_of_the_configuration() {
    let stage = Stage::with(&exec(1, "[no-such-program-anywhere]", "", ""));
    stage.write_events("in", &events(1));
    let run = stage.run();
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr.contains("cannot find the program `no-such-program-anywhere`"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("greenroom.yaml:8:"), "{}", run.stderr);
}

#[test]
fn d09_a_program_that_cannot_be_started_pauses_the_handler() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::with(&exec(1, "[./w]", "", "outage: { limit: 300ms }"));
    stage.write("w", "#!/no/such/interpreter\n");
    std::fs::set_permissions(stage.path("w"), PermissionsExt::from_mode(0o755)).unwrap();
    stage.write_events("in", &events(5));
    let run = stage.run();
    let report = run.counted(3, [5, 0, 0, 5]);
    assert!(report["errors"][0].as_str().unwrap().contains("cannot start \"./w\""), "{report}");
    assert!(run.took < Duration::from_secs(5), "{run:?}");
}
