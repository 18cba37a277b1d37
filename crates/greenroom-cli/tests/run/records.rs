//! Files whose lines are no CloudEvents (M05).

use serde_json::json;

use crate::run::stage::Stage;

const CONFIG: &str = "
inputs:
  logs:
    file: { path: app.log }
    records:
      type: { pointer: /kind, default: log.line }
      source: /app
      subject: { pointer: /user/id, optional: true }
      time: { pointer: /at, optional: true }
      content_type: application/json
      extensions: { tenant: blue, level: { pointer: /level, optional: true } }
handlers:
  logins: { on: login, where: { /ok: true }, pass: }
  rest: { on: '**', pass: }
outputs:
  logins: { on: login, where: { subject: { greater: 1 } }, file: { path: logins.ndjson, truncate: true } }
  rest: { file: { path: rest.ndjson, truncate: true } }
";

const LINES: &str = r#"{"kind":"login","user":{"id":7},"ok":true,"at":"2026-01-31T12:00:00Z"}
{"message":"ready","level":3}

not json
{"kind":{}}
"#;

fn stage() -> Stage {
    let stage = Stage::with(CONFIG);
    stage.write("app.log", LINES);
    stage
}

#[test]
fn m05_lines_become_events_that_are_routed_and_written_as_any() {
    let stage = stage();
    stage.run().counted(0, [4, 2, 2, 0]);
    let login = stage.read("logins.ndjson").remove(0);
    let attributes = ["type", "source", "subject", "time", "datacontenttype", "tenant"];
    let found = attributes.map(|name| login[name].as_str().unwrap());
    let expected = ["login", "/app", "7", "2026-01-31T12:00:00Z", "application/json", "blue"];
    assert_eq!(found, expected, "{login}");
    assert_eq!(
        login["data"],
        json!({ "kind": "login", "user": { "id": 7 }, "ok": true, "at": "2026-01-31T12:00:00Z" })
    );
    let line = stage.read("rest.ndjson").remove(0);
    assert_eq!(
        (&line["type"], &line["level"], &line["data"]["message"]),
        (&json!("log.line"), &json!(3), &json!("ready"))
    );
    assert!(line.get("subject").is_none() && line.get("time").is_none(), "{line}");
    assert_ne!(line["id"], login["id"]);
}

#[test]
fn m05_a_line_that_cannot_be_mapped_is_a_dead_letter_with_its_bytes() {
    let stage = stage();
    stage.run();
    let letters = stage.read("dead-letters.ndjson");
    let told: Vec<_> =
        letters.iter().map(|letter| (&letter["position"], &letter["reason"])).collect();
    let malformed = json!("malformed");
    assert_eq!(told, [(&json!(4), &malformed), (&json!(5), &malformed)]);
    assert_eq!(letters[0]["raw_base64"], "bm90IGpzb24=");
    let why = |place: usize| letters[place]["error"].as_str().unwrap();
    assert!(
        why(0).contains(
            "attribute `type`: the JSON pointer `/kind` needs JSON, which the record is not"
        ),
        "{}",
        why(0)
    );
    assert!(why(1).contains("at the JSON pointer `/kind` stands an object"), "{}", why(1));
}

#[test]
fn m05_a_repeated_run_gives_the_same_ids_with_and_without_a_checkpoint() {
    let stage = stage();
    let ids = |arguments: &str| {
        stage.run_with(arguments, b"");
        let mut ids: Vec<_> = ["logins.ndjson", "rest.ndjson"]
            .iter()
            .flat_map(|file| stage.read(file))
            .map(|event| event["id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids
    };
    let first = ids("");
    assert_eq!(first.len(), 2);
    assert_eq!(ids(""), first);
    let checkpoint = "--set inputs.logs.file.checkpoint=done.checkpoint";
    assert_eq!(ids(checkpoint), first);
    assert_eq!(ids(checkpoint), Vec::<String>::new(), "all of it was done");
    stage.write("app.log", format!("{LINES}{{\"kind\":\"more\"}}\n"));
    let more = ids(checkpoint);
    assert_eq!(more.len(), 1);
    let all = ids("");
    assert!(first.iter().chain(&more).all(|id| all.contains(id)), "{all:?}");
}

#[test]
fn m05_text_that_is_not_json_goes_on_as_text() {
    let stage = Stage::with(
        "
inputs:
  logs:
    file: { path: app.log }
    records: { type: log.line, source: { path: {} }, content_type: text/plain }
handlers: { all: { on: log.line, exec: { command: [cat] } } }
outputs: { done: { file: { path: done.ndjson } } }
"
        .replace("exec: { command: [cat] }", "pass: ")
        .as_str(),
    );
    stage.write("app.log", "GET /\n\n  \nPOST \"/x\"\r\n");
    stage.run().counted(0, [2, 2, 0, 0]);
    let data: Vec<_> =
        stage.read("done.ndjson").iter().map(|event| event["data"].clone()).collect();
    assert_eq!(data, [json!("GET /"), json!("POST \"/x\"")]);
    let source = stage.read("done.ndjson")[0]["source"].clone();
    assert!(source.as_str().unwrap().ends_with("app.log"), "{source}");
}

#[test]
fn m05_a_dry_run_counts_what_lines_become() {
    let stage = stage();
    let output = stage.command("run greenroom.yaml --dry-run").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("4 events in ") && text.contains("malformed      2 (50.0%)"), "{text}");
}
