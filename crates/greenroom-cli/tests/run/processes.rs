//! The `exec` handler: workers that work, die, hang, talk nonsense, or are not there.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::run::{
    order::{Repeats, assert_all_in_order},
    stage::{Run, Stage, event, events},
};

/// A configuration with one `exec` handler; more options of the handler's
/// kind, and more of the file.
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
    let stage = Stage::with(&exec(2, "[sh, w.sh]", "timeout: 600ms", ""));
    stage.write(
        "w.sh",
        r#"while IFS= read -r line; do token=${line#*\"token\":\"}; token=${token%%\"*}
case $line in *'"id":"e2"'*) sleep 60;; esac
printf '{"token":"%s","outcome":"pass"}\n' "$token"; done"#,
    );
    stage.write_events("in", &events(10));
    let run = stage.run_with("--set handlers.h.retry.attempts=2", b"");
    let report = run.counted(0, [10, 9, 1, 0]);
    assert_eq!(report["dead_letters_by_reason"]["retries_exhausted"], 1);
    assert_eq!(report["repeated_at_most"], 2, "both attempts may have had an effect");
    let letter = &stage.read("dead-letters.ndjson")[0];
    assert_eq!((&letter["event"]["id"], &letter["attempts"]), (&json!("e2"), &json!(2)));
    assert!(letter["error"].as_str().unwrap().contains("raise `timeout`"), "{letter}");
}

#[test]
fn u02_a_worker_that_answers_nonsense_is_replaced_and_its_event_given_up() {
    let stage = Stage::with(&exec(1, "[sh, w.sh]", "restart: { max: 100, window: 60s }", ""));
    stage.write(
        "w.sh",
        r#"while IFS= read -r line; do token=${line#*\"token\":\"}; token=${token%%\"*}
case $line in *'"id":"e0"'*) printf '{"token":"%s","outcome":"pass"}\n' "$token";; *) echo 'Hello, world!';; esac; done"#,
    );
    stage.write_events("in", &events(3));
    let run = stage.run();
    let report = run.counted(0, [3, 1, 2, 0]);
    assert_eq!(report["dead_letters_by_reason"]["poisoned"], 2);
    let letters = stage.read("dead-letters.ndjson");
    assert_eq!(letters[0]["event"]["id"], "e1");
    assert!(letters[0]["error"].as_str().unwrap().contains("Hello, world!"), "{}", letters[0]);
    assert!(run.stderr.contains("worker process crashed"), "{}", run.stderr);
}

#[test]
fn d09_workers_that_all_die_pause_the_handler_and_no_event_is_blamed() {
    let restart = "restart: { max: 0, window: 60s }";
    let rest = "outage: { limit: 300ms }";
    let stage = Stage::with(&exec(2, "[sh, -c, 'echo no luck >&2; exit 7']", restart, rest));
    stage.write_events("in", &events(10));
    let run = stage.run();
    let report = run.report();
    assert_eq!(
        (run.code, &report["refused"], &report["dead_lettered"]),
        (3, &json!(10), &json!(0))
    );
    let error = report["errors"][0].as_str().unwrap();
    let says =
        ["in outage", "\"sh\"", "no event is blamed", "exit status: 7", "no luck", "by hand"];
    assert!(says.iter().all(|says| error.contains(says)), "{error}");
    assert!(run.stderr.contains("no luck") && !stage.path("dead-letters.ndjson").exists());
}

#[test]
fn a_program_that_cannot_start_for_a_while_costs_no_event_its_attempt_or_its_place() {
    let stage = Stage::with(&exec(4, "[sh, w.sh]", "", ""));
    stage.write(
        "w.sh",
        r#"echo x >> starts; [ $(wc -l < starts) -gt 12 ] || { echo no such module >&2; exit 1; }
while IFS= read -r line; do token=${line#*\"token\":\"}; token=${token%%\"*}
printf '{"token":"%s","outcome":"pass"}\n' "$token"; done"#,
    );
    let events = events(100);
    stage.write_events("in", &events);
    let run = stage.run_with("--set handlers.h.retry.attempts=1", b"");
    let report = run.counted(0, [100, 100, 0, 0]);
    assert_eq!((&report["repeated_at_most"], &report["retried"]), (&json!(0), &json!(0)));
    let done = stage.read("done");
    assert_all_in_order(&events, &done, Repeats::None);
    assert!(done.iter().all(|event| event["greenroomattempt"] == 1), "{}", done[0]);
    let says = ["in outage", "no such module", "works again"];
    assert!(says.iter().all(|says| run.stderr.contains(says)), "{}", run.stderr);
}

#[test]
fn workers_that_find_no_descriptors_left_do_not_stop_the_others() {
    let stage = Stage::with(&exec(60, "[sh, w.sh]", "", ""));
    stage.write(
        "w.sh",
        r#"while IFS= read -r line; do token=${line#*\"token\":\"}; token=${token%%\"*}
printf '{"token":"%s","outcome":"pass"}\n' "$token"; done"#,
    );
    let events = events(1_000);
    stage.write_events("in", &events);
    let binary = stage.command("run greenroom.yaml --report json");
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -n 80; exec \"$@\"", "sh"]).arg(binary.get_program());
    limited.args(binary.get_args()).current_dir(stage.path(""));
    let started = Instant::now();
    let run = Run::of(limited.output().unwrap(), started);
    run.counted(0, [1_000, 1_000, 0, 0]);
    assert_all_in_order(&events, &stage.read("done"), Repeats::None);
    assert!(run.stderr.contains("Too many open files"), "{}", run.stderr);
    assert!(
        run.stderr.contains("ulimit -n") && !run.stderr.contains("in outage"),
        "{}",
        run.stderr
    );
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

#[test]
fn u05_a_process_runs_beside_the_configuration_or_where_cwd_says() {
    let stage = Stage::new();
    std::fs::create_dir_all(stage.path("here/there")).unwrap();
    stage.write("here/greenroom.yaml", exec(1, "[sh, w.sh]", "", ""));
    let answers = r#"touch seen; while IFS= read -r line; do token=${line#*\"token\":\"}
printf '{"token":"%s","outcome":"pass"}\n' "${token%%\"*}"; done"#;
    stage.write("here/w.sh", answers);
    stage.write("here/there/w.sh", answers);
    stage.write_events("here/in", &events(1));
    for (set, seen) in [("", "here/seen"), (" --set handlers.h.exec.cwd=there", "here/there/seen")]
    {
        assert!(!stage.path(seen).exists());
        let words = format!("run here/greenroom.yaml --report json{set}");
        let started = Instant::now();
        let output = stage.command(&words).output().unwrap();
        Run::of(output, started).counted(0, [1, 1, 0, 0]);
        assert!(stage.path(seen).exists(), "{seen}");
    }
}

/// Notes each event in `handled`, and ends every fifth time in another way than with an answer.
const ENDS: &str = r#"
import json, os, sys
handled = open("handled", "a")
for n, line in enumerate(sys.stdin, 1):
    job = json.loads(line)
    print(job["event"]["id"], file=handled, flush=True)
    answer = json.dumps({"token": job["token"], "outcome": "pass"})
    if n % 5 == 0:
        ENDS
    print(answer, flush=True)
"#;

#[test]
fn what_workers_have_handled_twice_is_within_what_the_report_says() {
    for ends in [
        "os._exit(0)",
        "os._exit(3)",
        "os.kill(os.getpid(), 9)",
        "print(answer[:9], end='', flush=True); os._exit(0)",
        "print('garbage', flush=True)",
        "print(answer, flush=True)",
    ] {
        let restart = "restart: { max: 1000, window: 60s }";
        let stage = Stage::with(&exec(4, "[python3, -IS, w.py]", restart, ""));
        stage.write("w.py", ENDS.replace("ENDS", ends));
        let events = events(30);
        stage.write_events("in", &events);
        let report = stage.run().counted(0, [30, 30, 0, 0]);
        assert_all_in_order(&events, &stage.read("done"), Repeats::None);
        let handled = std::fs::read_to_string(stage.path("handled")).unwrap().lines().count();
        let twice = handled as u64 - 30;
        let bound = report["repeated_at_most"].as_u64().unwrap();
        assert!(twice <= bound && bound <= 2 * twice + 20, "{ends}: {twice} of {bound}");
    }
}
