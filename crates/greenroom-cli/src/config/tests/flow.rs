//! What is never reached, what comes back to no end, and options without effect: told, and not
//! refused.

use super::*;

const IN: &str = "inputs: { in: { file: { path: '-' } } }\n";

/// Handlers and the rest, and what is told of them.
const ROWS: &[(&str, &[&str])] = &[
    (
        "handlers: { h: { on: a, pass: } }\noutputs: { all: { on: '**', file: { path: x } }, b: { on: a, file: { path: y } } }",
        &["3:59 nothing reaches the output `b`"],
    ),
    (
        "handlers: { h: { on: a, pass: } }\noutputs: { b: { on: a, file: { path: y } }, all: { on: '**', file: { path: x } } }",
        &[],
    ),
    (
        "handlers: { h: { on: a, pass: } }\nall_outputs: true\noutputs: { all: { on: '**', file: { path: x } }, b: { on: a, file: { path: y } } }",
        &[],
    ),
    (
        "handlers: { h: { on: a, drop: } }\noutputs: { b: { on: a, file: { path: y } } }",
        &["3:21 nothing reaches the output `b`"],
    ),
    (
        "handlers: { h: { on: a, pass: }, l: { on: b, log: } }\noutputs: { b: { on: b, file: { path: y } } }",
        &[
            "2:22 no output takes the events that the handler `h` passes",
            "3:21 nothing reaches the output `b`",
        ],
    ),
    (
        "handlers: { h: { on: a.*, pass: }, i: { on: a.*, match: { subject: x }, drop: } }",
        &["2:45 nothing reaches the handler `i`"],
    ),
    ("handlers: { i: { on: a.*, match: { subject: x }, drop: }, h: { on: a.*, pass: } }", &[]),
    (
        "handlers: { h: { on: 'order.**', pass: } }\nloopback: { on: 'order.**' }",
        &["2:22 the events that `h` passes come back in, but it has no room for them: they fail"],
    ),
    (
        "handlers: { h: { on: 'order.**', loopback: 1, pass: } }\nloopback: { on: 'order.**' }",
        &["2:44 the events that `h` passes come back in to `h`, forever"],
    ),
    (
        "handlers: { a: { on: again, drop: }, h: { on: '**', loopback: 1, exec: { command: [sh] } } }\nloopback: { on: again }",
        &[],
    ),
    (
        "handlers: { a: { on: again, drop: }, h: { on: '**', exec: { command: [sh] } } }\nloopback: { on: again }",
        &["3:1 no handler has room for events that come back in: each of them fails"],
    ),
    (
        "handlers: { h: { on: a, loopback: 1, exec: { command: [sh] } } }\nloopback: { on: again }",
        &["3:17 no handler takes the events that come back in as `again`"],
    ),
    (
        "handlers: { h: { on: a, pool: p, pass: } }\npools: { p: { workers: 4, limit: 9 } }",
        &["3:34 a limit of 9 holds nothing back with 4 workers"],
    ),
    ("handlers: { h: { on: a, pool: p, pass: } }\npools: { p: { workers: 4, limit: 3 } }", &[]),
    (
        "handlers: { h: { on: a, pool: p, pass: } }\npools: { p: { on_final_failure: park } }",
        &[
            "3:33 no handler of this pool has an `order_by`, so no event has a key to park: each that fails for good becomes a dead letter",
        ],
    ),
    (
        "handlers: { h: { on: a, pool: p, pass: } }\npools: { p: { engine: shared, max_per_key: 5 } }",
        &["3:44 events never wait behind a key: the `engine` is `shared`"],
    ),
    (
        "handlers: { h: { on: a, pool: p, pass: } }\npools: { p: { autoscale: { min: 2, max: 2 } } }",
        &["3:15 its minimum and maximum are both 2 workers: nothing scales"],
    ),
    (
        "handlers: { h: { on: a, pool: p, pass: } }\npools: { p: { preset: orders, workers: 2, queue: 9 } }",
        &["3:23 both sizes of the preset are overridden"],
    ),
    (
        "handlers: { h: { on: a, retry: { attempts: 1, backoff: 1s..2s }, pass: } }",
        &["2:56 with a single attempt there is nothing to wait for"],
    ),
    (
        "handlers: { h: { on: a, retry: { backoff: 5s..9s, total: 1s }, pass: } }",
        &["2:58 no second attempt is ever made: the first wait is longer than this"],
    ),
    (
        "handlers: { h: { on: a, layers: [{ timeout: 1s }], exec: { command: [sh], timeout: 5s } } }",
        &["2:84 this timeout never occurs: that of its layer `timeout` is as short"],
    ),
    (
        "handlers: { h: { on: a, pool: p, exec: { command: [sh], in_flight: 4 } } }\npools: { p: { workers: 3 } }",
        &["2:68 the pool's workers limit the events in flight: 3"],
    ),
    (
        "handlers: { h: { on: '**', drop: } }\nno_handler: ignore",
        &["3:13 every event has a handler: `h` takes them all"],
    ),
    (
        "handlers: { h: { on: a, drop: } }\nhandler_rejected: ignore",
        &["3:19 no handler rejects an event: none of them has a `match` or `where`"],
    ),
    (
        "handlers: { h: { on: a, drop: } }\nall_outputs: true",
        &["3:14 `all_outputs` makes no difference with fewer than two outputs"],
    ),
    (
        "handlers: { h: { on: a, http: { url: 'http://a', status: { 404: park } } } }",
        &["2:60 no event has a key to park here: each becomes a dead letter"],
    ),
];

#[test]
fn what_is_never_reached_and_what_has_no_effect_is_warned_about() {
    let mut wrong = Vec::new();
    for (text, expected) in ROWS {
        let loaded = load(&format!("{IN}{text}\n"));
        assert_eq!(loaded.problems.errors(), 0, "{}", loaded.text());
        if loaded.lines() != *expected {
            wrong.push(format!("{text}\n{:#?}", loaded.lines()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_type_that_no_handler_takes_is_told_unless_it_is_said_what_becomes_of_it() {
    let text =
        "inputs: { in: { generator: { types: [a, b] } } }\nhandlers: { h: { on: a, drop: } }\n";
    assert_eq!(load(text).lines(), ["1:1 no handler takes the events of the type `b`"]);
    assert_eq!(load(&format!("{text}no_handler: ignore\n")).problems.summary(), "no problems");
}

#[test]
fn what_is_said_of_positions_is_warned_about_where_it_changes_nothing() {
    let of = |input: &str, rest: &str| {
        load(&format!(
            "inputs: {{ in: {{ {input} }} }}\nhandlers: {{ h: {{ on: '**', drop: }} }}\n{rest}"
        ))
    };
    let none = of("generator: { count: 1 }, commit_every: 1s", "shutdown: { finish: in_hand }");
    assert_eq!(none.lines(), ["1:56 this input has no positions to store"]);
    let kept = of("http: { store: log }, commit_every: 50ms", "shutdown: { finish: in_hand }");
    let useless = "3:21 every input keeps its positions: a stop waits for no more anyway";
    assert_eq!(kept.lines(), [useless]);
    assert_eq!(kept.good().inputs[0].commit_every, Some(Duration::from_millis(50)));
    let all = of("http: { store: log }", "shutdown: { finish: all }").good();
    assert_eq!(all.shutdown.finish, Some(greenroom_bus::engine::Finish::All));
    assert_eq!(of("http: { store: log }", "shutdown: { finish: some }").problems.errors(), 1);
    assert_eq!(of("http: { store: log }, commit_every: 5ms", "").problems.errors(), 1);
}
