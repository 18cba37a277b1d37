//! Mistakes in a configuration: all at once, with their places, before anything is touched.

use std::{fs::File, io::Write, process::Stdio, time::Instant};

use crate::run::stage::{Run, Stage, events};

fn check(stage: &Stage, arguments: &str) -> Run {
    let started = Instant::now();
    Run::of(stage.command(arguments).output().unwrap(), started)
}

#[test]
fn c02_every_mistake_is_told_in_one_run_with_line_and_column() {
    let stage = Stage::with(
        "inputs:
  orders:
    file: { pth: orders.ndjson }
pools:
  default: { workers: many }
handlers:
  prices:
    on: 'price..changed'
    pool: epr
    order_by: data.id
    pass:
outputs:
  done: { file: { path: 7, truncate: perhaps } }
shutdwon: {}
",
    );
    for command in ["check", "run"] {
        let run = check(&stage, &format!("{command} greenroom.yaml"));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        for place in ["3:13", "5:23", "8:9", "9:11", "10:15", "13:38", "14:1"] {
            assert!(
                run.stderr.contains(&format!("greenroom.yaml:{place}\n")),
                "{place}: {}",
                run.stderr
            );
        }
        for word in ["did you mean `path`?", "did you mean `shutdown`?", "write `/id`"] {
            assert!(run.stderr.contains(word), "{word}: {}", run.stderr);
        }
    }
}

#[test]
fn kinds_that_are_not_built_and_keys_that_are_unknown_are_refused_by_check_and_run() {
    let good = "inputs: { i: { generator: { count: 1 } } }\nhandlers: { h: { on: '**', pass: } }\n";
    for (setting, says) in [
        ("dead_letters={kafka: {}}", "kafka dead letters needs `brokers`"),
        ("inputs.i={memory: {}}", "unknown key `memory` in an input"),
        ("pools.default.autopilot=act", "unknown key `autopilot` in a pool"),
    ] {
        let stage = Stage::with(good);
        for command in ["check", "run"] {
            let started = Instant::now();
            let mut command = stage.command(command);
            let output = command.args(["greenroom.yaml", "--set", setting]).output().unwrap();
            let run = Run::of(output, started);
            assert_eq!(run.code, 2, "{setting}: {run:?}");
            assert!(run.stderr.contains(says), "{setting}: {}", run.stderr);
        }
    }
}

#[test]
fn c08_values_come_from_the_environment_and_from_the_command_line() {
    let stage = Stage::with(
        "inputs: { i: { generator: { count: '${COUNT}', types: ['${TYPE:-t}'] } } }\nhandlers: { h: { on: t, pass: } }\n",
    );
    let started = Instant::now();
    let mut command = stage.command("run greenroom.yaml --report json");
    Run::of(command.env("COUNT", "12").output().unwrap(), started).counted(0, [12, 12, 0, 0]);
    let missing = check(&stage, "check greenroom.yaml");
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("COUNT"), "{}", missing.stderr);
}

#[test]
fn toml_says_the_same() {
    let stage = Stage::new();
    stage.write(
        "greenroom.toml",
        "[inputs.i.generator]\ncount = 9\n[pools.default]\nworkers = 3\n[handlers.h]\non = '**'\ndrop = {}\n",
    );
    let run = check(&stage, "run greenroom.toml --report json");
    assert_eq!(run.counted(0, [9, 9, 0, 0])["pools"][0]["workers"], 3);
}

#[test]
fn o11_the_report_for_people_begins_with_a_verdict() {
    let stage = Stage::with(
        "inputs: { i: { generator: { count: 9 } } }\nhandlers: { h: { on: '**', drop: } }\n",
    );
    let run = check(&stage, "run greenroom.yaml");
    assert!(run.stdout.starts_with("done: 9 taken, 9 handled in 0."), "{}", run.stdout);
    let refused =
        check(&stage, "run greenroom.yaml --set handlers.h.on=other --set no_handler=refuse");
    assert_eq!(refused.code, 3);
    assert!(refused.stdout.starts_with("ended with 9 refused: 9 taken"), "{}", refused.stdout);
}

#[test]
fn c11_a_variable_that_needs_quotes_is_told() {
    let stage = Stage::with("inputs: { i: { generator: { count: ${COUNT} } } }\n");
    let run = check(&stage, "check greenroom.yaml");
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("needs quotes") && run.stderr.contains("yaml:1:37"),
        "{}",
        run.stderr
    );
}

#[test]
fn c01_a_configuration_from_standard_input_has_the_working_directory() {
    const CONFIG: &str = "{ inputs: { i: { file: { path: in.ndjson } } }, \
                          handlers: { all: { on: test.none, pass: {} } }, \
                          outputs: { o: { file: { path: done.ndjson } } } }";
    for (name, is_piped) in [("-", true), ("/dev/stdin", true), ("/dev/stdin", false)] {
        let stage = Stage::with(CONFIG);
        stage.write_events("in.ndjson", &events(2));
        let mut command = stage.command(&format!("run {name}"));
        let started = Instant::now();
        let output = match is_piped {
            false => {
                let config = File::open(stage.path("greenroom.yaml")).unwrap();
                command.stdin(config).output().unwrap()
            }
            true => {
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
                let mut child = command.spawn().unwrap();
                child.stdin.take().unwrap().write_all(CONFIG.as_bytes()).unwrap();
                child.wait_with_output().unwrap()
            }
        };
        let run = Run::of(output, started);
        assert_eq!(run.code, 0, "{name}: {run:?}");
        assert_eq!(stage.read("dead-letters.ndjson").len(), 2, "{name}");
    }
}
