//! The protocol against real processes.

mod in_flight;

use std::{fs, path::Path, time::Duration};

use greenroom_config::table::assert_options;
use tempfile::TempDir;
use tokio::time::Instant;

use super::*;
use crate::handler::{Effect, Failure, FailureKind, Outputs, samples};

/// A worker and the counters of its factory.
struct Worker {
    factory: ExecFactory,
    handler: Box<dyn Handler>,
}

impl Worker {
    fn new(config: ExecConfig) -> Self {
        let factory = ExecFactory::new(config).unwrap();
        let handler = factory.build(0).unwrap();
        Self { factory, handler }
    }

    /// A shell that runs `answer` for each line, with the token in `$t` and the line in `$line`.
    fn shell(answer: &str) -> Self {
        Self::new(shell(answer))
    }

    async fn handle(&mut self, id: &str) -> HandlerResult {
        let (event, attempt) = (samples::event(id, "{\"n\":1}"), samples::attempt());
        samples::settle(self.handler.handle(&event, &attempt)).await
    }

    /// A shell that passes the event `good` on and gives this answer to all others; it has handled
    /// `good`.
    async fn proven(answer: &str) -> Self {
        Self::has_answered(except_good(answer)).await
    }

    async fn has_answered(config: ExecConfig) -> Self {
        let mut worker = Self::new(config);
        assert!(worker.handle("good").await.is_ok());
        worker
    }

    async fn failure(&mut self, id: &str) -> Failure {
        self.handle(id).await.expect_err(id)
    }

    /// Restarts, crashes and recycles.
    fn counts(&self) -> (u64, u64, u64) {
        (self.factory.restarts(), self.factory.crashes(), self.factory.recycles())
    }
}

/// A timeout that is waited for; a shell starts and answers within it on a machine that is busy.
const SHORT: Duration = Duration::from_secs(2);

fn program(command: &[&str]) -> ExecConfig {
    let command = command.iter().map(|part| (*part).to_owned()).collect();
    ExecConfig { timeout: Duration::from_secs(10), ..ExecConfig::new(command) }
}

fn shell(answer: &str) -> ExecConfig {
    let script = format!(
        r#"reply() {{ printf '{{"token":"%s","outcome":"%s"}}\n' "$t" "$1"; }}
while IFS= read -r line; do t=${{line#*\"token\":\"}}; t=${{t%%\"*}}
{answer}
done"#
    );
    program(&["sh", "-c", &script])
}

fn except_good(answer: &str) -> ExecConfig {
    shell(&format!(r#"case $line in *'"id":"good"'*) reply pass; continue;; esac; {answer}"#))
}

fn with_dir(mut config: ExecConfig, dir: &TempDir) -> ExecConfig {
    let path = dir.path().to_str().unwrap().to_owned();
    config.env.push(("DIR".to_owned(), path));
    config
}

fn is_alive(pid: &str) -> bool {
    let state = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"));
    // A zombie is dead: it waits for its parent, which may be slow here.
    state.is_ok_and(|state| !state.contains(") Z "))
}

/// Waits for something that is bound to happen.
async fn until(holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < end, "it did not happen");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

const PYTHON: &str = r#"
import json, sys
for line in sys.stdin:
    job = json.loads(line)
    event = job["event"]
    out = {"specversion": "1.0", "id": event["id"] + "-out", "source": "py", "type": "made"}
    print(json.dumps({"token": job["token"], "outcome": "success", "events": [out]}), flush=True)
"#;

const NODE: &str = r#"
const lines = require("readline").createInterface({ input: process.stdin });
lines.on("line", line => {
  const { token, attempt, event } = JSON.parse(line);
  const error = `attempt ${attempt} of ${event.id}`;
  console.log(JSON.stringify({ token, outcome: "failure", error, retry_after_ms: 250 }));
});
"#;

#[tokio::test]
async fn u02_python_worker_answers_with_events() {
    let mut worker = Worker::new(program(&["python3", "-c", PYTHON]));
    for id in ["a", "b"] {
        let Ok(Outputs::Events(events)) = worker.handle(id).await else { panic!("no events") };
        assert_eq!(events[0].id(), format!("{id}-out"));
    }
    assert_eq!(worker.counts(), (0, 0, 0));
}

#[tokio::test]
async fn u02_node_worker_sees_the_attempt_and_names_a_wait() {
    let mut worker = Worker::new(program(&["node", "-e", NODE]));
    let failure = worker.failure("a").await;
    let after = Some(Duration::from_millis(250));
    assert_eq!(failure.kind, FailureKind::Retry { after });
    assert_eq!(failure.error, "attempt 1 of a");
}

#[tokio::test]
async fn u02_shell_worker_passes_rejects_and_releases() {
    let mut worker = Worker::shell(
        r#"case $line in *'"id":"p"'*) reply pass;; *'"id":"r"'*) reply reject;; *) reply released;; esac"#,
    );
    assert!(matches!(worker.handle("p").await, Ok(Outputs::Same)));
    assert_eq!(worker.failure("r").await.kind, FailureKind::Reject);
    assert_eq!(worker.failure("x").await.kind, FailureKind::Released);
    assert_eq!(worker.counts(), (0, 0, 0));
}

#[tokio::test]
async fn u05_heartbeats_and_blank_lines_are_passed_over() {
    let mut worker = Worker::shell(r#"echo '{"heartbeat":true}'; echo; reply pass"#);
    assert!(matches!(worker.handle("a").await, Ok(Outputs::Same)));
    assert!(matches!(worker.handle("b").await, Ok(Outputs::Same)));
}

#[tokio::test]
async fn u05_heartbeats_do_not_extend_the_timeout() {
    let config = except_good("while :; do echo '{\"heartbeat\":true}'; sleep 0.02; done");
    let config = ExecConfig { timeout: SHORT, ..config };
    let mut worker = Worker::has_answered(config).await;
    assert_eq!(worker.failure("a").await.kind, FailureKind::Timeout);
}

#[tokio::test]
async fn u02_an_event_that_crashes_one_process_succeeds_in_place_on_the_next() {
    let dir = TempDir::new().unwrap();
    let config = shell(r#"[ -e "$DIR/died" ] || { : > "$DIR/died"; exit 3; }; reply pass"#);
    let mut worker = Worker::new(with_dir(config, &dir));
    assert!(matches!(worker.handle("a").await, Ok(Outputs::Same)));
    assert_eq!(worker.counts(), (1, 1, 0));
}

#[tokio::test]
async fn p18_an_event_that_crashes_two_processes_in_a_row_is_blamed() {
    let mut worker = Worker::shell(
        r#"case $line in *'"id":"poison"'*) echo last words >&2; exit 3;; esac; reply pass"#,
    );
    assert!(worker.handle("good").await.is_ok());
    let failure = worker.failure("poison").await;
    assert_eq!(failure.kind, FailureKind::Crash);
    assert!(failure.error.contains("exit status: 3"), "{}", failure.error);
    assert!(failure.error.contains("last words"), "{}", failure.error);
    assert!(worker.handle("good").await.is_ok());
    assert_eq!(worker.counts(), (2, 2, 0));
}

#[tokio::test]
async fn u05_a_line_that_is_not_understood_is_a_crash() {
    for (answer, why) in [
        ("echo hello", "hello"),
        (r#"t=999; reply pass"#, "999"),
        ("reply fine", "fine"),
        ("reply pass-; ", "pass-"),
    ] {
        let mut worker = Worker::proven(answer).await;
        let failure = worker.failure("a").await;
        assert_eq!(failure.kind, FailureKind::Crash, "{answer}");
        assert!(failure.error.contains(why), "{answer}: {}", failure.error);
        assert_eq!(worker.counts(), (1, 2, 0), "{answer}");
    }
}

#[tokio::test]
async fn u05_an_answer_of_a_past_token_is_a_crash() {
    let mut worker = Worker::shell(r#"[ "$t" = 2 ] && t=1; reply pass"#);
    assert!(worker.handle("a").await.is_ok());
    // The fresh process counts from 1 again, and answers.
    assert!(worker.handle("b").await.is_ok());
    assert_eq!(worker.counts(), (1, 1, 0));
}

#[tokio::test]
async fn u05_an_endless_line_is_a_crash() {
    let mut worker = Worker::proven("head -c 17000000 /dev/zero").await;
    let failure = worker.failure("a").await;
    assert_eq!(failure.kind, FailureKind::Crash);
    assert!(failure.error.contains("16777216 bytes"), "{}", failure.error);
}

#[tokio::test]
async fn u02_a_hung_process_is_gone_before_its_timeout_is_reported() {
    let dir = TempDir::new().unwrap();
    // The child hangs too: the kill has to reach the group.
    let config = except_good(r#"sleep 60 & echo "$$ $!" > "$DIR/pids"; wait"#);
    let config = ExecConfig { timeout: SHORT, ..with_dir(config, &dir) };
    let mut worker = Worker::has_answered(config).await;
    let failure = worker.failure("a").await;
    assert_eq!((failure.kind, failure.effect), (FailureKind::Timeout, Effect::Unknown));
    assert!(failure.error.contains("2s"), "{}", failure.error);
    let pids = fs::read_to_string(dir.path().join("pids")).unwrap();
    let (process, child) = pids.split_once(' ').unwrap();
    assert!(!is_alive(process), "the process outlived its timeout");
    // Nobody here can reap the child: it got the signal with the process, and is reaped in its own
    // time.
    until(|| !is_alive(child)).await;
    assert_eq!(worker.counts().1, 0);
}

#[tokio::test]
async fn u02_a_timeout_is_followed_by_a_fresh_process() {
    let config = shell(r#"case $line in *'"id":"slow"'*) sleep 60;; esac; reply pass"#);
    let config = ExecConfig { timeout: SHORT, ..config };
    let mut worker = Worker::has_answered(config).await;
    assert_eq!(worker.failure("slow").await.kind, FailureKind::Timeout);
    assert!(worker.handle("fast").await.is_ok());
    assert_eq!(worker.counts(), (1, 0, 0));
}

#[tokio::test]
async fn u02_a_cancelled_attempt_kills_its_process() {
    let dir = TempDir::new().unwrap();
    let config = shell(
        r#"echo $$ > "$DIR/pid.tmp"; mv "$DIR/pid.tmp" "$DIR/pid"; case $line in *'"id":"slow"'*) sleep 60;; esac; reply pass"#,
    );
    let mut worker = Worker::new(with_dir(config, &dir));
    let pid = dir.path().join("pid");
    tokio::select! {
        _ = worker.handle("slow") => panic!("it answered"),
        () = until(|| pid.exists()) => {}
    }
    let slow = fs::read_to_string(&pid).unwrap();
    assert!(worker.handle("fast").await.is_ok());
    until(|| !is_alive(&slow)).await;
    assert_ne!(fs::read_to_string(&pid).unwrap(), slow);
    assert_eq!(worker.counts(), (1, 0, 0));
}

#[tokio::test]
async fn u02_a_command_that_cannot_be_started_pauses_the_handler() {
    let mut worker = Worker::new(program(&["greenroom-no-such-program", "secret"]));
    let failure = worker.failure("a").await;
    assert_eq!(failure.kind, FailureKind::Broken);
    assert!(
        failure.error.starts_with("exec: cannot start \"greenroom-no-such-program\": No such file")
    );
    assert!(failure.error.contains("check `command`") && !failure.error.contains("secret"));
    assert_eq!(worker.counts(), (0, 0, 0));
}

#[tokio::test]
async fn u02_an_exit_with_code_0_between_events_is_a_recycle() {
    let mut worker = Worker::shell("reply pass; exit 0");
    for id in ["a", "b", "c", "d", "e", "f"] {
        assert!(worker.handle(id).await.is_ok(), "{id}");
    }
    // The end of the last one is seen without an event, too.
    until(|| worker.factory.recycles() == 6).await;
    assert_eq!(worker.counts(), (0, 0, 6));
}

#[tokio::test]
async fn u02_an_exit_with_code_0_with_an_event_in_hand_is_a_crash_of_that_event() {
    let mut worker = Worker::proven("exit 0").await;
    let failure = worker.failure("poison").await;
    assert_eq!((failure.kind, failure.effect), (FailureKind::Crash, Effect::Unknown), "{failure}");
    assert!(failure.error.contains("twice in a row with this event in hand"), "{failure}");
    assert_eq!(worker.counts(), (1, 2, 0));
    assert!(worker.handle("good").await.is_ok());
}

#[tokio::test]
async fn u02_processes_that_swallow_every_second_event_with_code_0_use_up_the_restarts() {
    let mut worker = Worker::shell(r#"[ -z "$first" ] || exit 0; first=1; reply pass"#);
    let mut handled = 0;
    let failure = loop {
        match worker.handle("a").await {
            Ok(_) => handled += 1,
            Err(failure) => break failure,
        }
        assert!(handled < 10, "it goes on without bound");
    };
    assert_eq!((failure.kind, failure.effect), (FailureKind::Broken, Effect::None), "{failure}");
    assert!(failure.error.contains("crashed more than 3 times"), "{failure}");
    assert_eq!((handled, worker.counts()), (4, (3, 4, 0)));
}

#[tokio::test]
async fn u02_a_first_event_swallowed_with_code_0_is_a_program_that_does_not_work() {
    let mut worker = Worker::shell("exit 0");
    let failure = worker.failure("a").await;
    assert_eq!((failure.kind, failure.effect), (FailureKind::Broken, Effect::Unknown));
    assert!(failure.error.contains("exit status: 0"), "{failure}");
    assert_eq!(worker.counts(), (1, 2, 0));
    assert_eq!(
        worker.factory.unanswered(),
        1,
        "the first of them; the failure says it of the other"
    );
}

#[tokio::test]
async fn p17_a_budget_used_up_pauses_the_handler_until_the_window_has_passed() {
    let dir = TempDir::new().unwrap();
    let restart = RestartLimit { max: 1, window: SHORT };
    let config = except_good(r#"[ -e "$DIR/well" ] || exit 3; reply pass"#);
    let config = ExecConfig { restart, ..with_dir(config, &dir) };
    let mut worker = Worker::has_answered(config).await;
    assert_eq!(worker.failure("a").await.kind, FailureKind::Crash);
    let failure = worker.failure("a").await;
    let start = Instant::now();
    assert_eq!(failure.kind, FailureKind::Broken);
    assert!(failure.error.contains("more than 1 times within 2s"), "{}", failure.error);
    assert!(failure.error.contains("exit status: 3"), "{}", failure.error);
    assert_eq!(failure.effect, Effect::None, "no process was there to have it");
    fs::write(dir.path().join("well"), "").unwrap();
    tokio::time::sleep_until(start + SHORT).await;
    assert!(worker.handle("a").await.is_ok());
}

#[tokio::test]
async fn u05_end_of_stdin_lets_the_process_finish() {
    let dir = TempDir::new().unwrap();
    let mut config = with_dir(shell("reply pass"), &dir);
    config.command[2].push_str("\necho done > \"$DIR/finished\"");
    let mut worker = Worker::new(config);
    worker.handle("a").await.unwrap();
    worker.handler.stop(Duration::from_secs(10)).await;
    assert_eq!(fs::read_to_string(dir.path().join("finished")).unwrap(), "done\n");
}

#[tokio::test]
async fn u05_a_process_that_does_not_finish_is_killed_after_the_patience() {
    let dir = TempDir::new().unwrap();
    let mut config = with_dir(shell("echo $$ > \"$DIR/pid\"; reply pass"), &dir);
    config.command[2].push_str("\nsleep 60");
    let mut worker = Worker::new(config);
    worker.handle("a").await.unwrap();
    let start = Instant::now();
    worker.handler.stop(Duration::from_millis(100)).await;
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(!is_alive(&fs::read_to_string(dir.path().join("pid")).unwrap()));
}

#[tokio::test]
async fn u02_a_megabyte_on_stderr_does_not_block_the_worker() {
    let mut worker = Worker::shell("head -c 1000000 /dev/zero | tr '\\0' 'x' >&2; reply pass");
    assert!(worker.handle("a").await.is_ok());
}

#[tokio::test]
async fn u02_stderr_and_crashes_reach_the_log_with_pool_and_worker() {
    let recorder = samples::Recorder::default();
    let _guard = tracing::subscriber::set_default(recorder.clone());
    let mut worker = Worker::shell("echo out of cheese >&2; exit 3");
    assert_eq!(worker.failure("a").await.kind, FailureKind::Broken);
    let lines = recorder.lines();
    let said = "INFO message=out of cheese pool=default worker=0";
    assert!(lines.iter().any(|line| line == said), "{lines:#?}");
    let crashed = "WARN message=worker process crashed: it ended with exit status: 3; last on its stderr: out of cheese pool=default worker=0";
    assert!(lines.iter().any(|line| line == crashed), "{lines:#?}");
}

#[tokio::test]
async fn u02_a_large_event_and_many_heartbeats_do_not_wait_for_each_other() {
    let beats = r#"i=0; while [ $i -lt 4000 ]; do echo '{"heartbeat":true}'; i=$((i+1)); done"#;
    let mut config = shell("reply pass");
    // More heartbeats than a pipe holds are written before the first read.
    config.command[2].insert_str(0, &format!("{beats}\n"));
    let mut worker = Worker::new(config);
    let data = format!("\"{}\"", "x".repeat(100_000));
    let (event, attempt) = (samples::event("a", &data), samples::attempt());
    let result = samples::settle(worker.handler.handle(&event, &attempt)).await;
    assert!(matches!(result, Ok(Outputs::Same)));
}

#[tokio::test]
async fn u02_environment_and_directory_reach_the_process() {
    let dir = TempDir::new().unwrap();
    let config =
        shell(r#"[ -e marker ] && [ -n "$DIR" ] && [ -n "$PATH" ] && reply pass || reply reject"#);
    let cwd = Some(dir.path().to_owned());
    fs::write(dir.path().join("marker"), "").unwrap();
    let mut worker = Worker::new(ExecConfig { cwd, ..with_dir(config, &dir) });
    assert!(worker.handle("a").await.is_ok());
}

#[test]
fn u02_settings_that_cannot_work_are_refused() {
    assert!(ExecFactory::new(program(&[])).unwrap_err().contains("`command` is empty"));
    let config = ExecConfig { timeout: Duration::ZERO, ..program(&["true"]) };
    assert!(ExecFactory::new(config).unwrap_err().contains("`timeout` is 0"));
    let config = ExecConfig { in_flight: 0, ..program(&["true"]) };
    assert!(ExecFactory::new(config).unwrap_err().contains("`in_flight` is 0"));
}

fn in_repository(path: &str) -> String {
    format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))
}

fn example(file: &str) -> String {
    in_repository(&format!("examples/process-workers/{file}"))
}

/// Runs a worker of the examples on those of its events that `takes` names; counts
/// passed, made and rejected.
async fn run_example(runtime: &str, file: &str, takes: &str) -> (usize, usize, usize) {
    let mut worker = Worker::new(program(&[runtime, &example(file)]));
    let attempt = samples::attempt();
    let mut counts = (0, 0, 0);
    for line in fs::read_to_string(example("events.ndjson")).unwrap().lines() {
        let event = Event::parse(line.as_bytes()).unwrap();
        if !event.ty().starts_with(takes) {
            continue;
        }
        match samples::settle(worker.handler.handle(&event, &attempt)).await {
            Ok(Outputs::Same) => counts.0 += 1,
            Ok(Outputs::Events(events)) => counts.1 += events.len(),
            Err(failure) if failure.kind == FailureKind::Reject => counts.2 += 1,
            other => panic!("{file} at {}: {other:?}", event.id()),
        }
    }
    assert_eq!(worker.counts(), (0, 0, 0), "{file}");
    counts
}

#[tokio::test]
async fn u02_the_example_workers_handle_their_events() {
    let runs = tokio::join!(
        run_example("python3", "worker.py", "python."),
        run_example("node", "worker.mjs", "node."),
        run_example("sh", "worker.sh", "shell."),
    );
    assert_eq!(runs, ((0, 100, 0), (97, 0, 3), (100, 0, 0)));
}

#[test]
fn u05_the_page_on_the_protocol_shows_the_example_workers_and_every_outcome() {
    let page = fs::read_to_string(in_repository("docs/process-protocol.md")).unwrap();
    for file in ["worker.py", "worker.mjs", "worker.sh"] {
        assert!(page.contains(&fs::read_to_string(example(file)).unwrap()), "{file}");
    }
    for outcome in ["success", "pass", "failure", "reject", "released"] {
        assert!(page.contains(&format!("| `{outcome}` |")), "{outcome}");
    }
}

/// Programs that cannot work, with what is said of each.
const BROKEN: [(&str, &str); 7] = [
    (
        "echo no such module >&2; echo line 7 >&2; exit 1",
        "exit status: 1; last on its stderr: no such module | line 7",
    ),
    ("exit 0", "exit status: 0"),
    ("kill -9 $$", "signal: 9"),
    ("echo Welcome to worker 2.0; exec cat >/dev/null", "Welcome to worker 2.0"),
    ("printf '\\0\\1\\2garbage\\n'; exit 1", "garbage"),
    ("exec >&-; exec sleep 60", "closed its stdin or stdout"),
    ("read line; exit 1", "exit status: 1"),
];

#[tokio::test]
async fn a_worker_program_that_cannot_start_blames_no_event() {
    for (script, why) in BROKEN {
        let mut worker = Worker::new(program(&["sh", "-c", script]));
        let failure = worker.failure("a").await;
        assert_eq!(failure.kind, FailureKind::Broken, "{script}: {failure}");
        let all = [why, "\"sh\" does not work", "no event is blamed", "by hand"];
        assert!(all.iter().all(|says| failure.error.contains(says)), "{script}: {failure}");
        assert_eq!(worker.counts(), (1, 2, 0), "{script}: two starts");
        assert_eq!(worker.failure("b").await.kind, FailureKind::Broken, "{script}");
        assert_eq!(worker.counts(), (3, 4, 0), "{script}: none from the budget, which is 3");
    }
}

#[tokio::test]
async fn a_crash_is_noticed_though_a_child_holds_the_pipes_open() {
    let mut worker = Worker::proven("sleep 300 & exit 3").await;
    let failure = worker.failure("a").await;
    assert_eq!(failure.kind, FailureKind::Crash, "{failure}");
    assert!(failure.error.contains("exit status: 3"), "{failure}");
}

#[tokio::test]
async fn a_crash_is_noticed_though_a_child_writes_on() {
    let child = r#"(while echo '{"heartbeat":true}'; do sleep 0.01; done) & exit 3"#;
    let mut worker = Worker::proven(child).await;
    let failure = tokio::time::timeout(SHORT * 2, worker.failure("a")).await.expect("it hangs");
    assert_eq!(failure.kind, FailureKind::Crash, "{failure}");
}

#[tokio::test]
async fn a_program_that_breaks_later_blames_no_event_that_it_has_not_read() {
    let dir = TempDir::new().unwrap();
    let mut config = with_dir(shell("reply pass; : > \"$DIR/broken\"; exit 0"), &dir);
    config.command[2].insert_str(0, "[ -e \"$DIR/broken\" ] && exit 5\n");
    let mut worker = Worker::new(config);
    assert!(worker.handle("a").await.is_ok());
    for id in ["b", "c", "d", "e", "f"] {
        let failure = worker.failure(id).await;
        assert_eq!(
            (failure.kind, failure.effect),
            (FailureKind::Broken, Effect::None),
            "{failure}"
        );
    }
    assert_eq!(worker.factory.unanswered(), 0);
    fs::remove_file(dir.path().join("broken")).unwrap();
    assert!(worker.handle("b").await.is_ok(), "and is back at once when it works again");
}

#[tokio::test]
async fn a_program_that_dies_of_every_event_gives_up_a_few_and_then_blames_itself() {
    let restart = RestartLimit { max: 1000, ..RestartLimit::default() };
    let config = ExecConfig { restart, ..except_good("exit 9") };
    let mut worker = Worker::has_answered(config).await;
    for id in ["a", "b", "c"] {
        assert_eq!(worker.failure(id).await.kind, FailureKind::Crash, "{id}");
    }
    for id in ["d", "e"] {
        assert_eq!(worker.failure(id).await.kind, FailureKind::Broken, "{id}");
    }
    assert!(worker.handle("good").await.is_ok());
    assert_eq!(worker.failure("d").await.kind, FailureKind::Crash, "it works, but for this event");
}

#[tokio::test]
async fn answers_of_one_worker_say_of_another_one_that_its_program_works() {
    let mut worker = Worker::proven("exit 9").await;
    let mut other = Worker { handler: worker.factory.build(1).unwrap(), ..worker };
    assert_eq!(other.failure("poison").await.kind, FailureKind::Crash);
    worker = other;
    assert!(worker.handle("good").await.is_ok());
}

#[tokio::test]
async fn a_program_that_hangs_at_its_start_blames_no_event() {
    for (script, says, effect) in [
        ("echo loading >&2; exec sleep 60", "has not read an event", Effect::None),
        ("read line; echo loading >&2; exec sleep 60", "not answered it", Effect::Unknown),
    ] {
        let timeout = SHORT;
        let config = ExecConfig { timeout, ..program(&["sh", "-c", script]) };
        let failure = Worker::new(config).failure("a").await;
        assert_eq!((failure.kind, failure.effect), (FailureKind::Broken, effect), "{failure}");
        let all = [says, "last on its stderr: loading", "2s", "raise `timeout`"];
        assert!(all.iter().all(|says| failure.error.contains(says)), "{failure}");
    }
}

#[tokio::test]
async fn a_process_that_ends_with_an_event_it_has_read_may_have_handled_it() {
    let dir = TempDir::new().unwrap();
    let once = r#"[ -e "$DIR/done" ] || { : > "$DIR/done"; exit 0; }; reply pass"#;
    let mut worker = Worker::has_answered(with_dir(except_good(once), &dir)).await;
    assert!(worker.handle("a").await.is_ok());
    assert_eq!(worker.factory.unanswered(), 1, "nobody knows, whatever its code says");
    let mut idle = Worker::shell("reply pass; exit 0");
    for id in ["a", "b", "c"] {
        assert!(idle.handle(id).await.is_ok());
    }
    assert_eq!(idle.factory.unanswered(), 0, "it had answered, and has read no other");
}

#[tokio::test]
async fn a_want_of_descriptors_gives_the_event_back_while_others_run() {
    let config = program(&["w"]);
    let error = || std::io::Error::from_raw_os_error(24);
    assert!(errors::is_for_want_of_something(&error()));
    assert!(!errors::is_for_want_of_something(&std::io::Error::from_raw_os_error(2)));
    let failure = errors::is_short(&config, &error(), 3);
    assert_eq!((failure.kind, failure.effect), (FailureKind::Released, Effect::None));
    assert!(
        failure.error.contains("3 of its processes run") && failure.error.contains("ulimit -n")
    );
    assert_eq!(errors::is_short(&config, &error(), 0).kind, FailureKind::Broken, "nobody is left");
}

/// Starts a child that does as told, and notes its number in `$DIR/child`.
fn with_child(child: &str, answer: &str) -> String {
    format!(r#"[ -e "$DIR/child" ] || {{ sh -c '{child}' & echo $! > "$DIR/child"; }}; {answer}"#)
}

/// Whether the child that a worker had started is gone.
async fn until_the_child_is_gone(dir: &TempDir) {
    let child = fs::read_to_string(dir.path().join("child")).unwrap();
    until(|| !is_alive(&child)).await;
}

const SLEEPS: &str = "exec sleep 300";
const STAYS: &str = "trap \"\" TERM; while :; do sleep 300; done";

#[tokio::test]
async fn what_a_recycled_worker_has_started_does_not_live_on() {
    for child in [SLEEPS, STAYS] {
        let dir = TempDir::new().unwrap();
        let config = with_dir(shell(&with_child(child, "reply pass; exit 0")), &dir);
        let mut worker = Worker::new(config);
        assert!(worker.handle("a").await.is_ok());
        // Whether it is seen between events or with one in hand.
        assert!(worker.handle("b").await.is_ok());
        until_the_child_is_gone(&dir).await;
    }
}

#[tokio::test]
async fn what_a_recycled_worker_has_started_does_not_wait_for_the_next_event() {
    for child in [SLEEPS, STAYS] {
        let dir = TempDir::new().unwrap();
        let config = with_dir(shell(&with_child(child, "reply pass; exit 0")), &dir);
        let mut worker = Worker::new(config);
        assert!(worker.handle("a").await.is_ok());
        until_the_child_is_gone(&dir).await;
        assert!(worker.handle("b").await.is_ok());
        until(|| worker.factory.recycles() == 2).await;
        assert_eq!(worker.counts(), (0, 0, 2));
    }
}

#[tokio::test]
async fn what_a_crashed_worker_has_started_is_gone_before_its_event_is_tried_again() {
    for child in [SLEEPS, STAYS] {
        let dir = TempDir::new().unwrap();
        let config = with_dir(except_good(&with_child(child, "exit 3")), &dir);
        let mut worker = Worker::has_answered(config).await;
        assert_eq!(worker.failure("a").await.kind, FailureKind::Crash, "it is not waited for");
        until_the_child_is_gone(&dir).await;
    }
}

#[tokio::test]
async fn what_a_worker_has_started_ends_with_it_when_it_is_stopped() {
    for (child, end) in [(SLEEPS, ""), (STAYS, ""), (STAYS, "trap '' TERM; sleep 60")] {
        let dir = TempDir::new().unwrap();
        let mut config = with_dir(shell(&with_child(child, "reply pass")), &dir);
        config.command[2].push_str(&format!("\n{end}"));
        let mut worker = Worker::new(config);
        assert!(worker.handle("a").await.is_ok());
        worker.handler.stop(Duration::from_millis(600)).await;
        until_the_child_is_gone(&dir).await;
    }
}

#[tokio::test]
async fn a_worker_that_is_late_is_asked_to_end_before_it_is_killed() {
    let dir = TempDir::new().unwrap();
    let config = except_good(r#"trap ': > "$DIR/asked"; exit' TERM; sleep 60 & wait"#);
    let config = ExecConfig { timeout: SHORT, ..with_dir(config, &dir) };
    let mut worker = Worker::has_answered(config).await;
    assert_eq!(worker.failure("a").await.kind, FailureKind::Timeout);
    assert!(dir.path().join("asked").exists());
}

#[tokio::test]
async fn a_worker_whose_attempt_is_dropped_leaves_no_child() {
    let dir = TempDir::new().unwrap();
    let config = with_dir(shell(&with_child(STAYS, "sleep 60")), &dir);
    let mut worker = Worker::new(config);
    tokio::select! {
        _ = worker.handle("slow") => panic!("it answered"),
        () = until(|| fs::read_to_string(dir.path().join("child")).is_ok_and(|pid| pid.ends_with('\n'))) => {}
    }
    until_the_child_is_gone(&dir).await;
}

#[test]
fn c02_each_option_takes_what_it_should_and_refuses_the_rest() {
    assert_options::<ExecConfig>(
        &[("command", "[sh]")],
        &[
            ("command", "[sh, '', -c]", &["sh", "[]", ""]),
            ("timeout", "1ms", &["0s", "5"]),
            ("timeout", "24h", &["25h"]),
            ("in_flight", "1_024", &["0", "1025", "many"]),
            ("restart", "{ max: 0, window: 1s }", &["{ max: -1 }", "{ window: 0s }"]),
            ("env", "{ A: b }", &["{ A: 1 }", "1", "{ 'A=': b }"]),
            ("cwd", ".", &["1"]),
        ],
    );
}
