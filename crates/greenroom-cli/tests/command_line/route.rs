//! `greenroom route FILE EVENT` (C20).

use std::{fs, io::Write, path::Path, process::Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{code, greenroom, stderr, stdout};

/// Files and programs that it names are not there.
const CONFIGURATION: &str = r#"
inputs: { shop: { file: { path: nowhere/orders.ndjson } } }
pools: { erp: { workers: 5 }, loose: { engine: shared } }
handlers:
  large: { on: order.placed, where: { /total: { greater: 100 } }, pool: erp, order_by: /customer, layers: [{ timeout: 5s }, tracing], pass: }
  small: { on: order.placed, pool: loose, order_by: /customer, drop: }
  orders: { on: "order.*", order_by: subject, key_required: true, exec: { command: [no-such-program] } }
  audit: { on: "order.**", fan_out: true, where: { /audit: true }, log: }
  again: { on: retry, loopback: 1, pool: erp, pass: }
outputs:
  eu: { where: { /region: eu }, file: { path: nowhere/eu.ndjson } }
  done: { on: "order.*", file: { path: nowhere/done.ndjson } }
  rest: { file: { path: nowhere/rest.ndjson } }
loopback: { on: retry }
handler_rejected: ignore
"#;

fn event(ty: &str, data: Value) -> Value {
    json!({ "specversion": "1.0", "id": "1", "source": "/shop", "type": ty, "data": data })
}

fn stage(events: &[Value]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("c.yaml"), CONFIGURATION).unwrap();
    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
    fs::write(directory.path().join("e.ndjson"), lines).unwrap();
    directory
}

/// The ways of these events.
fn ways(events: &[Value]) -> Vec<Value> {
    let directory = stage(events);
    let output = greenroom(directory.path(), &["route", "c.yaml", "e.ndjson", "--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is written");
    stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn way(ty: &str, data: Value) -> Value {
    ways(&[event(ty, data)]).remove(0)
}

fn names(values: &Value, key: &str) -> Vec<String> {
    values.as_array().unwrap().iter().map(|value| value[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn c20_the_handler_pool_key_layers_and_outputs_of_an_event_are_told() {
    let way = way("order.placed", json!({ "total": 250, "customer": 42, "region": "us" }));
    assert_eq!(way["outcome"], "handled");
    let handled = &way["handlers"][0];
    assert_eq!(
        (&handled["handler"], &handled["pool"], &handled["key"], &handled["on"]),
        (&json!("large"), &json!("erp"), &json!("42"), &json!("order.placed"))
    );
    assert_eq!(handled["layers"], json!(["timeout", "tracing"]));
    assert_eq!((&handled["result"], &handled["outputs"]), (&json!("same"), &json!(["done"])));
    let others = &handled["other_outputs"];
    assert_eq!(names(others, "name"), ["rest", "eu"]);
    assert_eq!(others[0]["shadowed"], true);
    assert_eq!(others[1]["fails"], "where /region (equal)");
    let others = &way["other_handlers"];
    assert_eq!(names(others, "name"), ["small", "orders", "audit"]);
    assert_eq!((&others[0]["shadowed"], &others[1]["shadowed"]), (&json!(true), &json!(true)));
    assert_eq!(others[2]["fails"], "where /audit (equal)");
}

#[test]
fn c20_several_events_each_have_their_way() {
    let events = [
        event("order.placed", json!({ "total": 5, "customer": 1, "audit": true })),
        event("order.paid", json!({})),
        event("retry", json!(null)),
        event("price", json!(null)),
    ];
    let ways = ways(&events);
    assert_eq!(names(&ways[0]["handlers"], "handler"), ["small", "audit"]);
    let small = &ways[0]["handlers"][0];
    assert_eq!(
        (&small["key"], &small["order_by"]),
        (&Value::Null, &Value::Null),
        "it keeps no order"
    );
    assert_eq!((&small["result"], &small["outputs"]), (&json!("none"), &json!([])));
    assert_eq!(
        (&ways[1]["outcome"], &ways[1]["then"]),
        (&json!("key_missing"), &json!("dead_letter"))
    );
    let again = &ways[2]["handlers"][0];
    assert_eq!((&again["loopback"], &again["outputs"]), (&json!(true), &json!([])));
    assert_eq!(
        (&ways[3]["outcome"], &ways[3]["then"]),
        (&json!("no_handler"), &json!("dead_letter"))
    );
}

#[test]
fn c20_people_read_what_happens_and_why() {
    let directory = stage(&[
        event("order.placed", json!({ "total": 250, "customer": 42 })),
        event("price", json!(null)),
    ]);
    let output = greenroom(directory.path(), &["route", "c.yaml", "e.ndjson"]);
    let expected = "\
order.placed  id 1 of /shop
  handler  large (on order.placed; pass)
  pool     erp, 5 workers
  key      42 (by /customer)
  layers   timeout, tracing
  output   done
           output rest would take it, but another one is asked first
           output eu does not take it: where /region (equal) is not met
           handler small would take it, but another one is asked first
           handler orders would take it, but another one is asked first
           handler audit does not take it: where /audit (equal) is not met

price  id 1 of /shop
  handler  none: no handler has this type; it becomes a dead letter (`no_handler`)
";
    assert_eq!((stdout(&output).as_str(), code(&output)), (expected, 0), "{}", stderr(&output));
}

#[test]
fn c20_q11_the_share_of_an_event_is_told() {
    let shop = |id, data: Value| json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "t", "data": data });
    let directory =
        stage(&[shop("1", json!({ "tenant": "acme" })), shop("2", json!({ "tenants": "acme" }))]);
    let config = "inputs: { shop: { file: { path: '-' } } }\n\
                  pools: { default: { share_by: /tenant } }\n\
                  handlers: { all: { on: t, pass: }, none: { on: t, fan_out: true, share_by: none, drop: } }\n";
    fs::write(directory.path().join("c.yaml"), config).unwrap();
    let text = stdout(&greenroom(directory.path(), &["route", "c.yaml", "e.ndjson"]));
    let shares: Vec<_> = text.lines().filter(|line| line.starts_with("  share")).collect();
    let missing =
        "  share    none: the event has no /tenant; all such events have one share in common";
    assert_eq!(shares, ["  share    acme (by /tenant)", missing], "{text}");
    let json = stdout(&greenroom(directory.path(), &["route", "c.yaml", "e.ndjson", "--json"]));
    let way: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    let of =
        |handler: usize| (&way["handlers"][handler]["share"], &way["handlers"][handler]["key"]);
    assert_eq!((of(0), of(1)), ((&json!("acme"), &json!(null)), (&json!(null), &json!(null))));
}

#[test]
fn c20_a_sample_may_come_on_standard_input_and_settings_count() {
    let directory = stage(&[]);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_greenroom"))
        .args(["route", "c.yaml", "-", "--set", "all_outputs=true"])
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let sample = format!("[{:#}]", event("order.placed", json!({ "total": 101 })));
    child.stdin.take().unwrap().write_all(sample.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("output   done, rest"), "{}", stdout(&output));
}

#[test]
fn c20_what_cannot_be_read_is_told() {
    let directory = stage(&[json!({ "id": "1" })]);
    let run = |sample: &str| greenroom(directory.path(), &["route", "c.yaml", sample]);
    let wrong = run("e.ndjson");
    assert_eq!((code(&wrong), stdout(&wrong)), (1, String::new()));
    assert!(stderr(&wrong).contains("`specversion` is missing"), "{}", stderr(&wrong));
    assert!(stderr(&run("none")).contains("cannot read the sample none"));
    fs::write(directory.path().join("c.yaml"), "inputs: {}\n").unwrap();
    assert_eq!(code(&run("e.ndjson")), 2);
    assert_eq!(code(&greenroom(Path::new("."), &["route", "c.yaml"])), 2);
}

#[test]
fn m05_lines_of_a_sample_are_records_of_their_input() {
    let directory = tempfile::tempdir().unwrap();
    let config = "
inputs:
  logs: { file: { path: nowhere.log }, records: { type: { pointer: /kind }, source: /app, subject: { pointer: /user } } }
handlers: { logins: { on: login, order_by: subject, pass: } }
";
    fs::write(directory.path().join("c.yaml"), config).unwrap();
    fs::write(directory.path().join("app.log"), "{\"kind\":\"login\",\"user\":7}\n").unwrap();
    let route = |more: &[&str]| {
        let arguments = [&["route", "c.yaml", "app.log"], more].concat();
        greenroom(directory.path(), &arguments)
    };
    for named in [&[][..], &["--input", "logs"]] {
        let way = stdout(&route(named));
        assert!(way.contains("handler  logins ") && way.contains("key      7 "), "{way}");
    }
    let unknown = route(&["--input", "other"]);
    assert_eq!(code(&unknown), 2);
    assert!(stderr(&unknown).contains("no input `other`"), "{}", stderr(&unknown));
    fs::write(directory.path().join("app.log"), "\n{}\n").unwrap();
    let wrong = stderr(&route(&[]));
    assert!(wrong.contains("line 2: attribute `type`: nothing stands at"), "{wrong}");
}

#[test]
fn m05_a_sample_of_an_http_input_is_a_request() {
    let directory = tempfile::tempdir().unwrap();
    let config = "
inputs:
  hooks: { http: { path: '/hooks/*', store: nowhere }, records: { type: { header: X-Event }, source: { path: {} }, subject: { pointer: /order/customer } } }
  ticks: { generator: { rate: 1/s } }
handlers: { paid: { on: paid, order_by: subject, pass: } }
";
    fs::write(directory.path().join("c.yaml"), config).unwrap();
    fs::write(directory.path().join("body"), "{\n  \"order\": { \"customer\": 7 }\n}\n").unwrap();
    let run =
        |more: &[&str]| greenroom(directory.path(), &[&["route", "c.yaml", "body"], more].concat());
    let hook = ["--input", "hooks", "--path", "/hooks/shop", "--header", "x-event: paid"];
    let taken = stdout(&run(&hook));
    for line in [" of /hooks/shop\n", "handler  paid ", "key      7 "] {
        assert!(taken.contains(line), "{taken}");
    }
    let event = ["--header", "ce-specversion: 1.0", "--header", "ce-id: 9", "--header"];
    let event = [&hook[..2], &event, &["ce-type: paid", "--header", "ce-source: /s"]].concat();
    let taken = run(&event);
    assert!(stdout(&taken).starts_with("paid  id 9 of /s\n"), "{}", stderr(&taken));
    let missing = run(&hook[..2]);
    assert_eq!(code(&missing), 1);
    assert!(stderr(&missing).contains("attribute `type`"), "{}", stderr(&missing));
    for (wrong, why) in [
        (&["--path", "/hooks/shop"][..], "with `--input`"),
        (&["--input", "ticks", "--header", "a: b"], "for a `generator` input"),
        (&["--input", "hooks", "--header", "a b"], "write 'Name: value'"),
    ] {
        let refused = run(wrong);
        assert_eq!(code(&refused), 2, "{wrong:?}: {}", stderr(&refused));
        assert!(stderr(&refused).contains(why), "{wrong:?}: {}", stderr(&refused));
    }
}
