//! `records`: lines that are no CloudEvents (M05).

use greenroom_bus::record::{Mapping, Pick, RecordPart};

use super::*;

#[test]
fn m05_a_single_value_is_the_attribute_itself_and_a_pointer_is_named() {
    let text = "{ type: { pointer: /kind, default: log.line }, source: /app, subject: { pointer: /user/id }, \
                content_type: application/json, extensions: { tenant: blue, file: { path: {} } } }";
    let config = load(&records(&format!("records: {text}"))).good();
    let at = |pointer: &str| Pick::part(RecordPart::Pointer(pointer.parse().unwrap()));
    let expected = Mapping::new(at("/kind").or("log.line"), Pick::literal("/app"))
        .subject(at("/user/id"))
        .content_type(Pick::literal("application/json"))
        .extension("tenant", Pick::literal("blue"))
        .and_then(|mapping| mapping.extension("file", Pick::part(RecordPart::Path)))
        .unwrap();
    let rule = config.inputs[0].records.as_ref().unwrap();
    assert_eq!(rule.mapping().unwrap(), expected);
    assert_eq!(rule.known_type(), None);
}

#[test]
fn m05_what_is_wrong_with_a_rule_is_told_at_its_place() {
    for (text, expected) in [
        ("{ type: { pointer: kind }, source: s }", "1:62 this is not a JSON pointer"),
        ("{ type: a, source: { literal: s, optional: true } }", "1:87 a literal is always present"),
        ("{ type: a, source: s, time: noon }", "1:65 this is not an RFC 3339 time"),
        (
            "{ type: a, source: s, extensions: { id: x } }",
            "1:79 an extension cannot be called `id`",
        ),
        ("{ type: a }", "1:43 records needs `source`"),
    ] {
        let loaded = load(&records(&format!("records: {text}")));
        let lines: Vec<_> =
            loaded.lines().iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect();
        assert_eq!(lines, [expected.split_once(' ').unwrap().1], "{text}");
    }
}

#[test]
fn m05_records_are_for_inputs_that_have_some() {
    let text = "inputs: { in: { generator: { count: 1, types: [a] }, records: { type: a, source: s } } }\n\
                handlers: { h: { on: a, drop: } }\n";
    assert_eq!(load(text).lines(), ["1:54 a `generator` input gives events: there are no records"]);
}

#[test]
fn m05_where_the_type_is_known_it_is_known_what_nothing_reaches() {
    let text = |ty: &str| {
        format!(
            "inputs: {{ in: {{ file: {{ path: '-' }}, records: {{ type: {ty}, source: s }} }} }}\n\
             handlers: {{ h: {{ on: order, drop: }} }}\n"
        )
    };
    let known = load(&text("log.line"));
    assert_eq!(
        known.lines(),
        [
            "1:1 no handler takes the events of the type `log.line`",
            "2:22 nothing reaches the handler `h`"
        ]
    );
    assert!(known.text().contains("the inputs give log.line only"), "{}", known.text());
    assert_eq!(load(&text("{ pointer: /kind }")).problems.summary(), "no problems");
}
