//! Input that is no event, or none that its handler can take: dead letters with
//! the bytes and the reason.

use std::{fs::File, io::Write};

use serde_json::{Value, json};

use crate::run::stage::{Stage, event, events, lines};

const CONFIG: &str = "
inputs: { i: { file: { path: in } } }
handlers: { all: { on: '**', order_by: subject, pass: } }
outputs: { done: { file: { path: done } } }
";

/// The raw bytes of a dead letter.
fn raw(letter: &Value) -> Vec<u8> {
    let text = letter["raw_base64"].as_str().unwrap();
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = group.iter().fold(0_u32, |bits, c| bits << 6 | u32::from(digit(*c)));
        let bits = bits << (6 * (4 - group.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}

/// Runs two good events with this line between them; returns the letter that it became.
fn between_good_ones(line: &[u8]) -> Value {
    let stage = Stage::with(CONFIG);
    let good = events(2);
    let input = [lines(&good[..1]).as_bytes(), line, b"\n", lines(&good[1..]).as_bytes()].concat();
    stage.write("in", input);
    let report = stage.run().counted(0, [3, 2, 1, 0]);
    assert_eq!(report["dead_letters_by_reason"], json!({"malformed": 1}));
    let mut letters = stage.read("dead-letters.ndjson");
    let letter = letters.remove(0);
    assert_eq!((&letter["event"], &letter["position"]), (&Value::Null, &json!(2)), "{letter}");
    assert_eq!(raw(&letter), line);
    letter
}

fn assert_says(letter: &Value, what: &str) {
    let error = letter["error"].as_str().unwrap();
    assert!(error.contains(what), "{error:?} does not say {what:?}");
}

#[test]
fn m02_a_line_that_is_no_json_is_a_dead_letter_with_its_bytes() {
    between_good_ones(b"{\"specversion\":\"1.0\",\"id\":");
    between_good_ones(b"\x01\x00\x02 not json");
    between_good_ones(b"[1,2,3]");
}

#[test]
fn m02_a_missing_attribute_is_named() {
    let without_id = r#"{"specversion":"1.0","source":"/s","type":"t"}"#;
    assert_says(&between_good_ones(without_id.as_bytes()), "id");
    let without_type = r#"{"specversion":"1.0","source":"/s","id":"1"}"#;
    assert_says(&between_good_ones(without_type.as_bytes()), "type");
    let empty_source = r#"{"specversion":"1.0","source":"","id":"1","type":"t"}"#;
    assert_says(&between_good_ones(empty_source.as_bytes()), "source");
}

#[test]
fn m02_attributes_of_the_wrong_type_are_named() {
    let line = r#"{"specversion":"1.0","source":"/s","id":7,"type":"t"}"#;
    assert_says(&between_good_ones(line.as_bytes()), "id");
    let line = r#"{"specversion":"1.0","source":"/s","id":"7","type":"t","data_base64":{"a":1}}"#;
    assert_says(&between_good_ones(line.as_bytes()), "data_base64");
}

#[test]
fn m02_invalid_utf8_is_a_dead_letter_with_its_bytes() {
    let line = b"{\"specversion\":\"1.0\",\"source\":\"/s\",\"id\":\"\xff\xfe\",\"type\":\"t\"}";
    assert_says(&between_good_ones(line), "UTF-8");
}

#[test]
fn k01_data_whose_key_is_no_scalar_is_a_dead_letter_and_a_missing_one_may_be() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in } } }
handlers: { all: { on: '**', order_by: /order, key_required: true, pass: } }
",
    );
    let with = |id: &str, data: Value| event(id, "t", "s", data);
    let given = [
        with("1", json!({"order": {"id": 1}})),
        with("2", json!({"order": "o-2"})),
        with("3", json!({"other": 1})),
        with("4", json!("text")),
    ];
    stage.write_events("in", &given);
    let report = stage.run().counted(0, [4, 1, 3, 0]);
    assert_eq!(report["dead_letters_by_reason"], json!({"key_missing": 3}));
    let letters = stage.read("dead-letters.ndjson");
    let ids: Vec<_> = letters.iter().map(|letter| letter["event"]["id"].clone()).collect();
    assert_eq!(ids, ["1", "3", "4"]);
    assert!(letters.iter().all(|letter| letter["error"].as_str().unwrap().contains("/order")));
    let lenient = stage.run_with("--set handlers.all.key_required=false", b"");
    lenient.counted(0, [4, 3, 1, 0]);
}

#[test]
fn b01_an_empty_file_is_a_run_of_nothing() {
    let stage = Stage::with(CONFIG);
    for content in ["", "\n\n  \n"] {
        stage.write("in", content);
        stage.run().counted(0, [0, 0, 0, 0]);
    }
    assert_eq!(stage.read("done").len(), 0);
}

#[test]
fn b01_a_last_line_without_a_line_feed_counts() {
    let stage = Stage::with(CONFIG);
    stage.write("in", lines(&events(3)).trim_end());
    stage.run().counted(0, [3, 3, 0, 0]);
}

#[test]
fn b01_a_line_of_64_mib_is_a_dead_letter_and_memory_stays_sane() {
    const LENGTH: usize = 64 << 20;
    let stage = Stage::with(CONFIG);
    let good = lines(&events(2));
    let mut input = File::create(stage.path("in")).unwrap();
    input.write_all(br#"{"specversion":"1.0","id":"1","source":"/s","type":"t","data":""#).unwrap();
    input.write_all(&vec![b'x'; LENGTH]).unwrap();
    input.write_all(format!("\"}}\n{good}").as_bytes()).unwrap();
    let report = stage.run().counted(0, [3, 2, 1, 0]);
    let letter = std::fs::read_to_string(stage.path("dead-letters.ndjson")).unwrap();
    let kept = 16_usize << 20;
    assert!((kept / 3 * 4..kept / 3 * 4 + 1_024).contains(&letter.len()), "its beginning is there");
    assert!(letter.contains("more than `max_event`"), "and the reason");
    if let Some(peak) = report["peak_rss_bytes"].as_u64() {
        assert!(peak < 160 << 20, "{} MiB", peak >> 20);
    }
    assert_eq!(stage.read("done").len(), 2);
}

#[test]
fn b01_max_event_is_the_longest_line_that_is_taken() {
    let stage = Stage::with(CONFIG);
    stage.write_events("in", &[event("1", "t", "s", json!("x".repeat(2_000)))]);
    stage.run().counted(0, [1, 1, 0, 0]);
    stage.run_with("--set inputs.i.file.max_event=1KiB", b"").counted(0, [1, 0, 1, 0]);
}

#[test]
fn b01_an_input_that_breaks_off_is_an_error_after_what_was_whole() {
    let stage = Stage::with(CONFIG);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(lines(&events(2_000)).as_bytes()).unwrap();
    let mut bytes = encoder.finish().unwrap();
    bytes.truncate(bytes.len() / 2);
    stage.write("in", bytes);
    let run = stage.run();
    let report = run.report();
    assert_eq!((run.code, &report["refused"]), (3, &json!(0)), "{report}");
    assert!(report["handled"].as_u64() > Some(100), "{report}");
    assert!(report["errors"][0].as_str().unwrap().contains("reading failed in line"), "{report}");
}
