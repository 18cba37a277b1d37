//! The examples of the repository, as their readers run them.

use std::{path::Path, process::Command, time::Instant};

use crate::run::{
    order::{Repeats, assert_all_in_order},
    stage::{Run, Stage},
};

#[test]
fn init_writes_a_configuration_that_runs_as_it_is() {
    let stage = Stage::new();
    let init = stage.command("init --dir shop").output().unwrap();
    assert!(init.status.success(), "{init:?}");
    let started = Instant::now();
    let output = stage.command("run shop/greenroom.yaml --report json").output().unwrap();
    let report = Run::of(output, started).report();
    assert!(report["handled"].as_u64() > Some(0), "{report}");
    assert_eq!(report["refused"], 0, "{report}");
}

/// Skipped where there is no Node, as the example itself would say.
#[test]
fn process_workers_runs_from_the_root_of_the_repository() {
    if Command::new("node").arg("--version").output().is_err() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let stage = Stage::new();
    let set =
        |option: &str, file: &str| format!("{option}.file.path={}", stage.path(file).display());
    let started = Instant::now();
    let mut command = stage.command("run examples/process-workers/greenroom.yaml --report json");
    let command = command.current_dir(&root).args([
        "--set",
        &set("outputs.done", "done"),
        "--set",
        &set("dead_letters", "letters"),
    ]);
    let report = Run::of(command.output().unwrap(), started).counted(0, [300, 297, 3, 0]);
    assert_eq!(report["dead_letters_by_reason"]["rejected"], 3);
    let text =
        std::fs::read_to_string(root.join("examples/process-workers/events.ndjson")).unwrap();
    let shell = |events: Vec<serde_json::Value>| -> Vec<_> {
        events.into_iter().filter(|event| event["type"] == "shell.order").collect()
    };
    let given = shell(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect());
    assert_all_in_order(&given, &shell(stage.read("done")), Repeats::None);
}
