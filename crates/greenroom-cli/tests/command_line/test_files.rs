//! `greenroom test FILE` (C23).

use std::fs;

use tempfile::TempDir;

use super::{code, greenroom, stderr, stdout};

/// Nothing that it names is there.
const CONFIGURATION: &str = r#"
inputs:
  shop: { file: { path: nowhere/orders.ndjson }, records: { type: { pointer: /kind }, source: /app } }
  hooks: { http: { path: '/hooks/*', store: nowhere }, records: { type: { header: X-Event }, source: { path: {} }, subject: { pointer: /customer } } }
pools: { erp: { workers: 5, dedicated_threads: 2 }, loose: { engine: shared } }
handlers:
  large:
    on: order.placed
    where: { /total: { greater: 100 } }
    pool: erp
    order_by: /customer
    layers: [{ timeout: 5s }, { deduplication: { store: nowhere/seen } }]
    http: { url: 'https://erp.invalid/orders', pass: true, tls: { ca: nowhere.pem } }
    retry: { attempts: 4, backoff: 1m..1h }
  small: { on: order.placed, pool: loose, exec: { command: [no-such-program] }, retry: { attempts: 3 } }
  again: { on: retry, loopback: 1, pass: }
  last: { on: retried, drop: }
  careful: { on: careful, order_by: subject, share_by: /customer, key_required: true, pool: parks, http: { url: 'http://erp.invalid' }, retry: { attempts: 1 } }
outputs:
  eu: { on: 'order.*', where: { /region: eu }, file: { path: nowhere/eu.ndjson } }
  prices: { on: price.*, http: { url: 'http://prices.invalid', status: { 404: retry } } }
  done: { on: [order.*, paid], file: { path: nowhere/done.ndjson } }
loopback: { on: retried }
dead_letters: { store: { path: nowhere/letters } }
"#;

/// The result of these cases.
fn test(cases: &str) -> (i32, String, String) {
    let directory = stage(cases);
    let output = greenroom(directory.path(), &["test", "t.yaml"]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is written");
    (code(&output), stdout(&output), stderr(&output))
}

fn stage(cases: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let config = CONFIGURATION.replace("pools: {", "pools: { parks: { on_final_failure: park },");
    fs::write(directory.path().join("greenroom.yaml"), config).unwrap();
    fs::write(directory.path().join("t.yaml"), cases).unwrap();
    directory
}

#[track_caller]
fn passes(cases: &str) {
    let (code, out, err) = test(cases);
    assert_eq!(code, 0, "{out}{err}");
}

#[test]
fn c23_a_case_expects_handler_pool_key_outputs_and_attempts() {
    passes(
        "
cases:
  a large order goes to the ERP:
    event: { type: order.placed, data: { total: 250, customer: 42, region: eu } }
    expect: { outcome: handled, handler: large, pool: erp, key: 42, attempts: 1, outputs: eu }
  a small one to a program, without order:
    event: { type: order.placed, data: { total: 5, customer: 42 } }
    expect: { handler: small, pool: loose, key: null, outputs: { done: [{ type: order.placed, data: { total: 5 } }] } }
  an unknown one is a letter:
    event: { type: unknown }
    expect: { letters: [{ reason: no_handler, attempts: 0 }] }
  an event without the key that it needs:
    event: { type: careful }
    expect: { letters: [{ reason: key_missing, handler: careful }], outputs: [] }
  an event of a share:
    event: { type: careful, subject: a, data: { customer: 42 } }
    expect: { share: 42, key: a }
  one without:
    event: { type: careful, subject: a }
    expect: { share: null, key: a }
",
    );
}

#[test]
fn c23_stand_ins_answer_and_no_wait_takes_time() {
    passes(
        "
cases:
  a target that comes back:
    event: { type: order.placed, data: { total: 250, customer: 42 } }
    handlers: { large: { answers: [{ status: 503, times: 2 }, { status: 429, headers: { retry-after: '3600' }, times: 1 }] } }
    expect: { attempts: 4, outputs: done }
  one that does not:
    event: { type: order.placed, data: { total: 250, customer: 42 } }
    handlers: { large: { answers: [{ status: 500, body: disk full }] } }
    expect: { attempts: 4, letters: [{ reason: retries_exhausted, error: disk full, handler: large, attempts: 4 }] }
  one that refuses:
    event: { type: order.placed, data: { total: 250, customer: 42 } }
    handlers: { large: { answers: [{ status: 422 }] } }
    expect: { attempts: 1, letters: [{ reason: rejected }] }
  no connection, no answer, a lost connection:
    event: { type: order.placed, data: { total: 250, customer: 42 } }
    handlers: { large: { answers: [{ outcome: connection, times: 1 }, { outcome: timeout, times: 1 }, { outcome: crash, times: 1 }] } }
    expect: { attempts: 4, outputs: done }
  a program that answers with other events:
    event: { type: order.placed, data: { total: 5 } }
    handlers: { small: { answers: [{ outcome: failure, times: 1 }, { outcome: crash, times: 1 }, { events: [{ type: price.set, data: { n: 1 } }, { type: price.set, data: { n: 2 } }] }] } }
    outputs: { prices: { answers: [{ status: 404, times: 3 }] } }
    expect: { outputs: { prices: [{ data: { n: 1 } }, { data: { n: 2 } }] } }
  a program that dies of the event:
    event: { type: order.placed, data: { total: 5 } }
    handlers: { small: { answers: [{ outcome: crash }] } }
    expect: { attempts: 1, letters: [{ reason: poisoned, handler: small }] }
  a target that answers with an event:
    event: { type: order.placed, data: { total: 250 } }
    handlers: { large: { answers: [{ events: { type: price.set } }] } }
    expect: { outputs: prices }
  the same in its own form:
    event: { type: order.placed, data: { total: 250 } }
    handlers: { large: { answers: [{ status: 200, headers: { content-type: application/cloudevents+json }, body: { specversion: '1.0', id: 7, source: /erp, type: price.set } }] } }
    expect: { letters: [{ reason: rejected, error: no CloudEvent }] }
  an output that rejects:
    event: { type: order.placed, data: { total: 5 } }
    outputs: { done: { answers: [{ outcome: reject, error: too long }] } }
    expect: { letters: [{ reason: output_rejected, output: done, error: too long }] }
  an output that is down for longer than a run waits:
    event: { type: order.placed, data: { total: 5 } }
    outputs: { done: { answers: [{ outcome: failure }] } }
    expect: { outcome: refused, outputs: [] }
  a key that is parked:
    event: { type: careful, subject: a }
    handlers: { careful: { answers: [{ status: 500 }] } }
    expect: { outcome: parked }
  results that come back in:
    event: { type: retry }
    handlers: { again: { answers: [{ events: { type: retried } }] } }
    expect: { handler: [again, last], outputs: [] }
",
    );
}

#[test]
fn c23_records_and_requests_come_by_their_inputs() {
    passes(
        "
cases:
  a line:
    input: shop
    record: { value: { kind: order.placed, total: 101 } }
    expect: { handler: large }
  a line that is no event:
    input: shop
    record: { value: nonsense }
    expect: { letters: [{ reason: malformed }] }
  a hook:
    input: hooks
    request: { path: /hooks/shop, headers: { x-event: careful }, body: { customer: 7 } }
    expect: { handler: careful, key: 7, reply: 202 }
  a hook without its header:
    input: hooks
    request: { body: { customer: 7 } }
    expect: { outcome: refused, reply: 400 }
  an event by the same way:
    input: hooks
    request: { headers: { ce-specversion: '1.0', ce-id: '9', ce-type: retry, ce-source: /s } }
    expect: { handler: again, reply: 202 }
",
    );
}

#[test]
fn c23_a_case_that_fails_says_what_was_expected_and_what_came() {
    let (code, out, _) = test(
        "
handlers: { large: { answers: [{ status: 422, body: no such customer }] } }
cases:
  good:
    event: { type: order.placed, data: { total: 5 } }
    expect: { handler: small }
  wrong in each way:
    event: { type: order.placed, data: { total: 5, lines: [1, 2] } }
    expect: { outcome: ignored, handler: large, pool: erp, key: 42, share: 1, attempts: 2, reply: 202, outputs: { eu: [{}], done: { data: { total: 6, lines: [1, 3] } } } }
  rejected:
    event: { type: order.placed, data: { total: 500 } }
    expect: { outputs: done }
",
    );
    let expected = "\
ok    good
FAIL  wrong in each way
      --> t.yaml:7:3
      outcome
        - ignored
        + handled
      handler
        - large
        + small
      pool
        - erp
        + loose
      key
        - 42
        + nothing
      share
        - 1
        + nothing
      attempts
        - 2
        + 1
      reply
        - 202
        + nothing
      outputs.eu
        - 1 event
        + 0 events
      outputs.done, event 1, /data/lines/1
        - 3
        + 2
      outputs.done, event 1, /data/total
        - 6
        + 5
FAIL  rejected
      --> t.yaml:10:3
      outcome
        - handled
        + dead_letter
      outputs.done
        - at least one event
        + nothing
      letters
        - nothing
        + rejected, of handler large, after 1 attempt, with \"http: 422 Unprocessable Entity after 0 ms from https://erp.invalid/orders: no such customer\"
3 cases: 1 passed, 2 failed
";
    assert_eq!((code, out.as_str()), (1, expected));
}

#[test]
fn c23_mistakes_in_a_test_file_have_their_place() {
    for (cases, place, expected) in [
        ("cases: {}\n", "t.yaml:1", "there is no case"),
        ("case: {}\n", "t.yaml:1:1", "unknown key `case`"),
        (
            "cases:\n  a:\n    event: { type: t }\n    expect: { handler: larg }\n",
            "t.yaml:4:24",
            "did you mean `large`?",
        ),
        ("cases:\n  a:\n    event: { typ: t }\n    expect: {}\n", "t.yaml:3:12", "event 1: "),
        ("cases:\n  a:\n    expect: {}\n", "t.yaml:2:3", "nothing comes in"),
        (
            "cases:\n  a: { event: { type: t }, record: {}, expect: {} }\n",
            "t.yaml:2:28",
            "one too many",
        ),
        (
            "cases:\n  a: { record: {}, expect: {} }\n",
            "t.yaml:2:8",
            "add `input`: one of shop, hooks",
        ),
        (
            "handlers: { small: { answers: [{ status: 503 }] } }\ncases: { a: { event: { type: t }, expect: {} } }\n",
            "t.yaml:1:13",
            "kind `exec`, and has no status",
        ),
        (
            "cases:\n  a:\n    event: { type: t }\n    outputs: { done: { answers: [{}, {}] } }\n    expect: {}\n",
            "t.yaml:4:34",
            "say how many `times`",
        ),
        (
            "cases:\n  a:\n    event: { type: t }\n    expect: { letters: [{ reason: retry_exhausted }] }\n",
            "t.yaml:4:35",
            "did you mean `retries_exhausted`?",
        ),
        (
            "cases:\n  a:\n    event: { type: t }\n    expect: { outputs: { don: [] } }\n",
            "t.yaml:4:24",
            "did you mean `done`?",
        ),
        (
            "config: other.yaml\ncases: { a: { event: { type: t }, expect: {} } }\n",
            "other.yaml:1:1",
            "cannot read the configuration",
        ),
    ] {
        let (code, out, err) = test(cases);
        assert_eq!((code, out.as_str()), (2, ""), "{cases}{err}");
        assert!(err.contains(expected) && err.contains(place), "{cases}{place} {expected}\n{err}");
    }
}

#[test]
fn c23_a_configuration_in_place_of_a_test_file_is_one_mistake() {
    let directory = stage("cases: {}\n");
    let output = greenroom(directory.path(), &["test", "greenroom.yaml"]);
    let err = stderr(&output);
    assert_eq!(code(&output), 2, "{err}");
    assert!(err.contains("this is a configuration") && err.contains("1 error\n"), "{err}");
}

#[test]
fn c23_editors_get_a_schema() {
    let schema = greenroom(std::path::Path::new("."), &["schema", "--tests"]);
    let schema: serde_json::Value = serde_json::from_str(&stdout(&schema)).unwrap();
    let case = &schema["properties"]["cases"]["additionalProperties"]["properties"];
    assert!(case["expect"]["properties"]["letters"].is_object() && case["event"].is_object());
}
