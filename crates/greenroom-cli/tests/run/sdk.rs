//! Workers that use the packages of `sdk/`, for Python and for Node: both are to do the same.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::run::{
    order::{Repeats, assert_all_in_order},
    stage::{Run, Stage, end, event, events},
};

/// A language, and one worker in it for each test.
struct Language {
    /// What runs the file that is added.
    command: &'static str,
    answers: &'static str,
    crashes: &'static str,
    sleeps: &'static str,
    recycles: &'static str,
}

const PYTHON: Language = Language {
    command: "[python3, -u, worker]",
    answers: r#"
from greenroom_worker import Reject, Release, Retry, Worker

worker = Worker(source="/w")
print("printed before the worker runs")

@worker.on("sum")
def total(event):
    print("printed by a handler")
    for _ in range(2):
        yield event.derive("summed", {"total": sum(event.data)})

@worker.on("pass.*")
async def on(event):
    return event

@worker.on("busy")
def busy(event):
    if event.attempt == 1:
        raise Retry("busy", after=0.01)
    return event.replace(data={"attempt": event.attempt})

@worker.on("refused")
def refused(event):
    raise Reject("not wanted \ud800")

@worker.on("odd")
def odd(event):
    raise ValueError("odd")

@worker.on("unsendable")
def unsendable(event):
    return event.derive("x", float("nan"))

worker.run()
"#,
    crashes: r#"
import os
from greenroom_worker import run

def handler(event):
    if event.id == "e7":
        os._exit(5)
    return event

run(handler)
"#,
    sleeps: r#"
import time
from greenroom_worker import run

def handler(event):
    open("begun", "a").write("\n")
    time.sleep(0.3)
    return event

run(handler)
open("drained", "a").write("\n")
"#,
    recycles: r#"
from greenroom_worker import run
run(lambda event: event, recycle_after=50)
"#,
};

const NODE: Language = Language {
    command: "[node, worker.mjs]",
    answers: r#"
import { Reject, Retry, Worker } from "greenroom-worker";

console.log("printed before the worker runs");

await new Worker({ source: "/w" })
  .on("sum", function* (event) {
    console.log("printed by a handler");
    for (let n = 0; n < 2; n += 1) {
      yield event.derive("summed", { total: event.data.reduce((a, b) => a + b) });
    }
  })
  .on("pass.*", async (event) => event)
  .on("busy", (event) => {
    if (event.attempt === 1) throw new Retry("busy", { after: 0.01 });
    return event.replace({ data: { attempt: event.attempt } });
  })
  .on("refused", () => { throw new Reject("not wanted \ud800"); })
  .on("odd", () => { const error = new Error("odd"); error.name = "ValueError"; throw error; })
  .on("unsendable", (event) => event.derive("x", NaN))
  .run();
"#,
    crashes: r#"
import { run } from "greenroom-worker";
run((event) => {
  if (event.id === "e7") process.kill(process.pid, "SIGKILL");
  return event;
});
"#,
    sleeps: r#"
import { appendFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { run } from "greenroom-worker";
run(
  async (event) => {
    appendFileSync("begun", "\n");
    await setTimeout(300);
    return event;
  },
  { close: () => appendFileSync("drained", "\n") },
);
"#,
    recycles: r#"
import { run } from "greenroom-worker";
run((event) => event, { recycleAfter: 50 });
"#,
};

fn package(language: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk").join(language);
    root.canonicalize().unwrap()
}

impl Language {
    /// A stage with this worker, and the package where the language looks for it. `None` where the
    /// language is not there.
    fn stage(&self, worker: &str, workers: usize) -> Option<Stage> {
        let is_python = self.command.contains("python3");
        let program = if is_python { "python3" } else { "node" };
        Command::new(program).arg("--version").output().ok()?;
        let stage = Stage::with(&format!(
            "
inputs: {{ i: {{ file: {{ path: in }} }} }}
pools: {{ default: {{ workers: {workers} }} }}
handlers:
  h:
    on: '**'
    order_by: subject
    exec: {{ command: {}, env: {{ PYTHONPATH: '{}' }}, restart: {{ max: 1000 }} }}
    retry: {{ attempts: 3, backoff: 1ms..5ms }}
outputs: {{ done: {{ file: {{ path: done }} }} }}
",
            self.command,
            package("python").display()
        ));
        if is_python {
            stage.write("worker", worker);
        } else {
            stage.write("worker.mjs", worker);
            fs::create_dir(stage.path("node_modules")).unwrap();
            let link = stage.path("node_modules/greenroom-worker");
            std::os::unix::fs::symlink(package("node"), link).unwrap();
        }
        Some(stage)
    }
}

/// Runs the test with each language that is there.
fn with_each(test: impl Fn(&Language)) {
    [PYTHON, NODE].iter().for_each(test);
}

#[test]
fn u06_handlers_of_both_packages_answer_retry_and_reject() {
    with_each(|language| {
        let Some(stage) = language.stage(language.answers, 1) else { return };
        let given = [
            event("1", "sum", "a", json!([1, 2, 39])),
            event("2", "pass.on", "a", json!({"text": "ü\u{2028}\r\n", "big": 1e300})),
            event("3", "busy", "a", json!({"n": 1})),
            event("4", "refused", "a", json!(null)),
            event("5", "odd", "a", json!(null)),
            event("6", "unsendable", "a", json!(null)),
            event("7", "nobody", "a", json!(null)),
        ];
        stage.write_events("in", &given);
        let run = stage.run();
        let report = run.counted(0, [7, 3, 4, 0]);
        assert_eq!((&report["restarts"], &report["retried"]), (&json!(0), &json!(3)), "{report}");
        assert_outputs(&stage.read("done"), &given);
        let letters: Vec<Value> = stage.read("dead-letters.ndjson");
        for (letter, says) in
            letters.iter().zip(["not wanted", "ValueError: odd", "cannot be written", "\"nobody\""])
        {
            assert!(
                letter["error"].as_str().unwrap().replace('\'', "\"").contains(says),
                "{letter}"
            );
        }
        for printed in ["printed before the worker runs", "printed by a handler"] {
            assert!(run.stderr.contains(printed), "{}", run.stderr);
        }
    });
}

fn assert_outputs(done: &[Value], given: &[Value]) {
    assert_eq!(done.len(), 4, "{done:?}");
    for summed in &done[..2] {
        let texts = ["type", "source", "subject", "causationid"].map(|name| &summed[name]);
        assert_eq!(texts, ["summed", "/w", "a", "1"]);
        assert_eq!(summed["data"], json!({"total": 42}));
    }
    assert_ne!(done[0]["id"], done[1]["id"]);
    assert_eq!((&done[2]["id"], &done[2]["data"]), (&given[1]["id"], &given[1]["data"]));
    assert_eq!((&done[3]["id"], &done[3]["data"]), (&given[2]["id"], &json!({"attempt": 2})));
}

#[test]
fn u06_an_event_that_crashes_a_worker_of_a_package_is_given_up_and_the_others_are_handled() {
    with_each(|language| {
        let Some(stage) = language.stage(language.crashes, 2) else { return };
        stage.write_events("in", &events(20));
        let report = stage.run().counted(0, [20, 19, 1, 0]);
        assert_eq!(report["dead_letters_by_reason"]["poisoned"], 1);
        assert_eq!(stage.read("dead-letters.ndjson")[0]["event"]["id"], "e7");
    });
}

#[test]
fn u06_workers_of_a_package_that_are_recycled_keep_the_order_of_each_key() {
    with_each(|language| {
        let Some(stage) = language.stage(language.recycles, 4) else { return };
        let events = events(600);
        stage.write_events("in", &events);
        let report = stage.run().counted(0, [600, 600, 0, 0]);
        assert_eq!(report["restarts"], 0, "a recycle is none: {report}");
        assert_all_in_order(&events, &stage.read("done"), Repeats::None);
    });
}

#[test]
fn u06_at_a_stop_workers_of_a_package_finish_what_they_have_and_clean_up() {
    with_each(|language| {
        let Some(stage) = language.stage(language.sleeps, 2) else { return };
        stage.write_events("in", &events(8));
        let started = Instant::now();
        let child = stage.start("");
        let late = started + Duration::from_secs(10);
        while !stage.path("begun").exists() {
            assert!(Instant::now() < late, "no event was begun");
            thread::sleep(Duration::from_millis(5));
        }
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let run = Run::of(end(child), started);
        let report = run.report();
        assert_eq!((&report["dead_lettered"], &report["refused"]), (&json!(0), &json!(0)));
        let drained = fs::read_to_string(stage.path("drained")).unwrap().len();
        assert!((1..=2).contains(&drained), "each worker that ran has cleaned up: {drained}");
        assert!(!run.stderr.contains("killed") && run.took < Duration::from_secs(10), "{run:?}");
    });
}
