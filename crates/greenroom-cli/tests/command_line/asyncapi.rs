//! `greenroom asyncapi FILE` (C19).

use std::path::Path;

use serde_json::Value;

use super::{code, greenroom, stderr, stdout};

const CONFIGURATION: &str = r#"
inputs:
  shop: { file: { path: orders.ndjson } }
  made: { generator: { count: 1, types: [order.placed, stock.moved] } }
pools: { erp: { workers: 5 } }
handlers:
  prices:
    on: [price.changed, "price.*", "price:changed", price_changed]
    pool: erp
    order_by: subject
    http: { url: "https://someone:hunter2@erp.example:8443/prices?key=hunter2" }
    layers: [{ validation: { price.changed: price.json } }]
  scripts: { on: order.*, exec: { command: [sh, -c, "hunter2"], env: { TOKEN: hunter2 } } }
  rest: { on: "**", drop: {} }
outputs:
  done: { on: order.placed, file: { path: done.ndjson } }
  billing: { on: stock.moved, http: { url: "https://me:hunter2@billing.example/in", mode: batch } }
dead_letters: { file: { path: dead.ndjson } }
"#;

fn document(arguments: &[&str]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("shop.yaml"), CONFIGURATION).unwrap();
    std::fs::write(directory.path().join("orders.ndjson"), "").unwrap();
    std::fs::write(directory.path().join("price.json"), r#"{ "type": "object" }"#).unwrap();
    let arguments = [&["asyncapi", "shop.yaml"], arguments].concat();
    let output = greenroom(directory.path(), &arguments);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// Every `$ref` below a value.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| match value.as_str() {
            Some(text) if name == "$ref" => found.push(text.to_owned()),
            _ => references(value, found),
        }),
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn c19_inputs_handlers_and_outputs_are_channels_with_their_operations() {
    let document = document(&[]);
    assert_eq!(document["asyncapi"], "3.0.0");
    assert_eq!(document["info"]["title"], "shop");
    let operations = [
        "dead-letter",
        "handler.prices",
        "handler.rest",
        "handler.scripts",
        "input.made",
        "input.shop",
        "output.billing",
        "output.done",
    ];
    assert_eq!(keys(&document["operations"]), operations);
    for operation in operations {
        let action = &document["operations"][operation]["action"];
        let expected = if operation.starts_with("input.") { "receive" } else { "send" };
        assert_eq!(action, expected, "{operation}");
        assert!(document["channels"][operation]["messages"].is_object(), "{operation}");
    }
    assert_eq!(document["channels"]["output.done"]["address"], "done.ndjson");
    assert_eq!(keys(&document["channels"]["output.done"]["messages"]), ["order.placed"]);
    assert_eq!(
        keys(&document["channels"]["input.made"]["messages"]),
        ["order.placed", "stock.moved"]
    );
    assert_eq!(document["operations"]["handler.rest"]["reply"], Value::Null);
}

#[test]
fn c19_an_http_handler_has_a_server_a_path_and_a_reply() {
    let document = document(&[]);
    let server = &document["servers"]["prices"];
    assert_eq!(
        (&server["host"], &server["protocol"]),
        (&"erp.example:8443".into(), &"https".into())
    );
    let channel = &document["channels"]["handler.prices"];
    assert_eq!(channel["address"], "/prices");
    assert_eq!(channel["servers"][0]["$ref"], "#/servers/prices");
    let operation = &document["operations"]["handler.prices"];
    assert_eq!(operation["bindings"]["http"]["method"], "POST");
    assert_eq!(operation["reply"]["channel"]["$ref"], "#/channels/handler.prices.answers");
    let details = &operation["x-greenroom"];
    assert_eq!((&details["pool"], &details["order_by"]), (&"erp".into(), &"subject".into()));
    assert_eq!(details["validation"]["price.changed"], "price.json");
}

#[test]
fn c19_an_http_output_has_a_server_and_a_path_and_no_reply() {
    let document = document(&[]);
    let server = &document["servers"]["output.billing"];
    assert_eq!(
        (&server["host"], &server["protocol"]),
        (&"billing.example".into(), &"https".into())
    );
    let channel = &document["channels"]["output.billing"];
    assert_eq!(channel["address"], "/in");
    assert_eq!(channel["servers"][0]["$ref"], "#/servers/output.billing");
    let operation = &document["operations"]["output.billing"];
    assert_eq!(operation["bindings"]["http"]["method"], "POST");
    assert_eq!(operation["x-greenroom"], serde_json::json!({ "kind": "http", "mode": "batch" }));
    assert!(operation.get("reply").is_none());
}

#[test]
fn c19_every_reference_leads_somewhere() {
    let document = document(&[]);
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 20, "{found:?}");
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[test]
fn c19_types_that_no_key_can_have_are_kept_apart() {
    let document = document(&[]);
    let messages = document["components"]["messages"].as_object().unwrap();
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    assert!(messages.keys().all(|key| key.chars().all(allowed)), "{:?}", messages.keys());
    let names: Vec<_> =
        messages.values().map(|message| message["name"].as_str().unwrap()).collect();
    for name in ["price.changed", "price:changed", "price_changed", "price.*", "**"] {
        assert_eq!(names.iter().filter(|found| **found == name).count(), 1, "{name}: {names:?}");
    }
    let exact = &messages["price.changed"]["payload"]["allOf"][1]["properties"]["type"]["const"];
    assert_eq!(exact, "price.changed");
}

#[test]
fn c19_nothing_that_may_be_secret_is_in_the_document() {
    let text = document(&[]).to_string();
    assert!(!text.contains("hunter2") && !text.contains("someone"), "{text}");
}

#[test]
fn c19_title_and_version_are_the_users() {
    let document = document(&["--title", "Prices", "--api-version", "7"]);
    assert_eq!(
        (&document["info"]["title"], &document["info"]["version"]),
        (&"Prices".into(), &"7".into())
    );
}

#[test]
fn c19_a_wrong_configuration_is_told_and_described_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("c.yaml"), "inputs: {}\n").unwrap();
    let output = greenroom(directory.path(), &["asyncapi", "c.yaml"]);
    assert_eq!((code(&output), stdout(&output)), (2, String::new()));
    assert!(stderr(&output).contains("c.yaml"), "{}", stderr(&output));
    assert_eq!(code(&greenroom(Path::new("."), &["asyncapi"])), 2);
}

#[test]
fn m05_a_rule_for_records_shows_without_the_texts_that_it_names() {
    let directory = tempfile::tempdir().unwrap();
    let config = "
inputs:
  logs: { file: { path: app.log }, records: { type: log.line, source: /app, subject: { pointer: /user }, content_type: text/plain } }
handlers: { all: { on: '**', drop: } }
";
    std::fs::write(directory.path().join("c.yaml"), config).unwrap();
    std::fs::write(directory.path().join("app.log"), "").unwrap();
    let output = greenroom(directory.path(), &["asyncapi", "c.yaml"]);
    let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(keys(&document["channels"]["input.logs"]["messages"]), ["log.line"]);
    let records = &document["operations"]["input.logs"]["x-greenroom"]["records"];
    assert_eq!(records["content_type"], "text/plain");
    assert_eq!(records["attributes"]["subject"]["pointer"], "/user");
    assert_eq!(records["attributes"]["source"], "literal");
}

#[test]
fn c19_patterns_standard_streams_and_rotation_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let text = "
inputs: { many: { file: { path: 'events/*.ndjson' } }, one: { file: { path: '-' } } }
handlers: { all: { on: '**', pass: } }
outputs:
  rest: { file: { path: '-' } }
  paid: { on: paid, file: { path: paid.ndjson, rotate: { size: 1MiB, every: 1h, keep: 3 } } }
";
    std::fs::write(directory.path().join("c.yaml"), text).unwrap();
    let output = greenroom(directory.path(), &["asyncapi", "c.yaml"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let address = |name: &str| &document["channels"][name]["address"];
    assert_eq!(address("input.many"), "events/*.ndjson");
    assert_eq!(address("output.paid"), "paid.ndjson");
    assert!(address("input.one").is_null() && address("output.rest").is_null(), "{document}");
    let paid = &document["operations"]["output.paid"]["x-greenroom"];
    let rotate = serde_json::json!({ "bytes": 1 << 20, "seconds": 3_600, "keep": 3 });
    assert_eq!(paid["rotate"], rotate, "{paid}");
}
