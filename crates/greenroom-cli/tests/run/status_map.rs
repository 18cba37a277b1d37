//! What follows from a target's answers, as it is explained and as it is done.

use std::time::Instant;

use greenroom_bus::http::Verdict;
use serde_json::json;

use crate::run::{
    server::{Answer, Server},
    stage::{Run, Stage, events},
};

fn explain(stage: &Stage, arguments: &str) -> Run {
    let started = Instant::now();
    Run::of(stage.command(&format!("explain-status {arguments}")).output().unwrap(), started)
}

/// The verdicts of a printed table, by the answer.
fn rows(text: &str) -> Vec<(&str, &str)> {
    let cells = |line: &'_ str| -> Option<(usize, usize)> {
        let first = line.find(' ')?;
        let second = first + line[first..].find(|c: char| c != ' ')?;
        Some((first, second))
    };
    text.lines()
        .filter_map(|line| {
            let (end, start) = cells(line)?;
            let verdict = line[start..].split(' ').next()?;
            Some((&line[..end], verdict))
        })
        .filter(|(_, verdict)| Verdict::ALL.iter().any(|one| one.as_str() == *verdict))
        .collect()
}

#[test]
fn u04_the_map_is_printed() {
    let run = explain(&Stage::new(), "");
    assert_eq!(run.code, 0, "{run:?}");
    let expected = [
        ("2xx", "settle"),
        ("3xx", "reject"),
        ("401", "pause"),
        ("403", "pause"),
        ("408", "retry"),
        ("410", "pause_share"),
        ("425", "retry"),
        ("429", "hold"),
        ("4xx", "reject"),
        ("5xx", "retry"),
        ("timeout", "retry"),
        ("connection", "retry"),
        ("other", "retry"),
    ];
    assert_eq!(rows(&run.stdout), expected, "{}", run.stdout);
    for said in ["Retry-After", "greenroom-outcome"] {
        assert!(run.stdout.contains(said), "{said}");
    }
}

const CONFIG: &str = "
inputs: { i: { file: { path: in } } }
handlers:
  push:
    on: '**'
    order_by: subject
    http: { url: 'URL', pass: true, status: { 404: settle, 5xx: reject, '418': park, 410..412: retry, timeout: reject } }
    retry: { attempts: 2, backoff: 1ms..2ms }
outputs: { done: { file: { path: done } } }
";

#[test]
fn u04_the_map_of_a_configuration_is_printed_with_its_rows() {
    let stage = Stage::with(&CONFIG.replace("URL", "http://localhost:1/"));
    stage.write_events("in", &events(1));
    let run = explain(&stage, "greenroom.yaml");
    assert_eq!(run.code, 0, "{run:?}");
    let rows = rows(&run.stdout);
    let of = |answer| rows.iter().filter(|(row, _)| *row == answer).collect::<Vec<_>>();
    assert_eq!(of("404"), [&("404", "settle")]);
    assert_eq!(of("410..412"), [&("410..412", "retry")]);
    assert_eq!(of("5xx"), [&("5xx", "reject")], "it takes the place of the usual row");
    assert_eq!(of("timeout"), [&("timeout", "reject")]);
    assert!(run.stdout.contains("handler push") && run.stdout.contains("set in the configuration"));
}

#[test]
fn u04_rows_of_the_configuration_decide() {
    for (status, counts) in [(404, [3, 3, 0, 0]), (500, [3, 0, 3, 0]), (503, [3, 0, 3, 0])] {
        let server = Server::start(move |_, _| Answer::Status(status, ""));
        let stage = Stage::with(&CONFIG.replace("URL", &server.url));
        stage.write_events("in", &events(3));
        stage.run().counted(0, counts);
        assert_eq!(server.requests.lock().unwrap().len(), 3, "no attempt is repeated");
    }
}

#[test]
fn u04_a_response_header_rejects_what_the_status_settles() {
    let server = Server::start(|_, _| Answer::Status(200, "greenroom-outcome: reject\r\n"));
    let stage = Stage::with(&CONFIG.replace("URL", &server.url));
    stage.write_events("in", &events(3));
    let report = stage.run().counted(0, [3, 0, 3, 0]);
    assert_eq!(report["dead_letters_by_reason"], json!({ "rejected": 3 }));
}

#[test]
fn u04_mistakes_in_rows_are_told_with_their_place() {
    let rows = "{ 4x4: retry, 404: forgive, timeout: settle, 500..400: park }";
    let stage = Stage::with(&format!(
        "
inputs: {{ g: {{ generator: {{ count: 1 }} }} }}
handlers: {{ push: {{ on: '**', http: {{ url: 'http://localhost:1/', status: {rows} }} }} }}
"
    ));
    let run = explain(&stage, "greenroom.yaml");
    assert_eq!(run.code, 2, "{run:?}");
    for said in ["\"4x4\"", "\"forgive\"", "`timeout` cannot settle", "\"500..400\"", "4 errors"] {
        assert!(run.stderr.contains(said), "{said:?} in\n{}", run.stderr);
    }
}
