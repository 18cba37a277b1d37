//! `where`: what may be asked of an event, and what can never be (C21).

use greenroom_bus::router::Condition;

use super::*;

fn asks(asked: &str) -> String {
    format!("{BASE}handlers: {{ h: {{ on: a, where: {asked}, pass: }} }}\n")
}

#[test]
fn c21_values_stand_for_themselves_or_for_what_they_are_compared_by() {
    let text = asks(
        "{ /total: { greater: 100, at_most: 5e3 }, /region: eu, /zip: '0815', subject: { in: [a, 7] }, \
         /a.b~1c: { present: false }, time: { less: 2026-01-01T00:00:00Z } }",
    );
    let config = load(&text).good();
    let asked = &config.handlers[0].conditions;
    let fields: Vec<_> = asked.iter().map(|asked| asked.asked().unwrap().to_string()).collect();
    assert_eq!(fields, ["/total", "/region", "/zip", "subject", "/a.b~1c", "time"]);
    assert_eq!(
        asked[0].conditions(),
        [Condition::Greater(100.into()), Condition::AtMost(5000.0.into())]
    );
    assert_eq!(asked[1].conditions(), [Condition::Equal("eu".into())]);
    assert_eq!(asked[2].conditions(), [Condition::Equal("0815".into())]);
    assert_eq!(asked[3].conditions(), [Condition::In(vec!["a".into(), 7.into()])]);
    assert_eq!(asked[4].conditions(), [Condition::Present(false)]);
    assert!(!config.handlers[0].takes_all());
}

#[test]
fn c21_values_may_come_from_the_environment_and_are_not_told() {
    let asked = |value: &str| load(&asks(&format!("{{ /n: {{ at_least: '{value}' }} }}")));
    let config = asked("${WORKERS}").good();
    assert_eq!(config.handlers[0].conditions[0].conditions(), [Condition::AtLeast(7.into())]);
    let secret = load(&asks("{ /n: { equal: '${SECRET}', greater: 5 } }"));
    assert_eq!(secret.lines(), ["2:34 no value meets all of this"]);
    assert!(!secret.text().contains("hunter2"), "{}", secret.text());
}

#[test]
fn c21_what_can_be_no_condition_is_told_at_its_place() {
    for (asked, expected) in [
        ("{ Subject: a }", "2:34 `Subject` is not a field of an event"),
        ("{ /a~2: 1 }", "2:34 `/a~2` is not a field of an event"),
        ("{ specversion: '1.0' }", "2:34 `specversion` is not a field of an event"),
        ("{ /a: }", "2:34 there is no condition"),
        ("{ /a: {} }", "2:34 there is no condition"),
        ("{ /a: [1] }", "2:38 a condition is a mapping, but this is a list"),
        ("{ /a: { less: true } }", "2:46 `true` and `false` have no order"),
        ("{ /a: { greater: 5, less: 5 } }", "2:34 no value meets all of this"),
        ("{ /a: { at_least: 5, at_most: x } }", "2:34 no value meets all of this"),
        ("{ /a: { in: [1, 2], greater: 2 } }", "2:34 no value meets all of this"),
        ("{ /a: { present: false, equal: 2 } }", "2:34 no value meets all of this"),
        ("{ /a: { eqal: 2 } }", "2:40 unknown key `eqal` in a condition"),
    ] {
        assert_eq!(load(&asks(asked)).lines(), [expected], "{asked}");
    }
    load(&asks("{ /a: { at_least: 5, at_most: 5 } }")).good();
    load(&asks("{ /a: { present: true, in: [1, 2], greater: 1 } }")).good();
}

#[test]
fn c21_a_type_may_have_handlers_that_choose_before_the_last() {
    let text = |first: &str, second: &str| {
        format!(
            "{BASE}handlers:\n  h: {{ on: a, {first}pass: }}\n  g: {{ on: a, {second}drop: }}\n"
        )
    };
    assert_eq!(load(&text("where: { /n: 1 }, ", "")).problems.summary(), "no problems");
    let mistaken = load(&text("where: { /n: { less: true } }, ", ""));
    assert_eq!(mistaken.lines(), ["3:36 `true` and `false` have no order"], "and no more");
    let both = load(&text("where: { /n: 1 }, ", "where: { /n: 2 }, "));
    assert_eq!(both.problems.summary(), "no problems");
    for (first, second) in [("", "where: { /n: 1 }, "), ("match: { subject: x }, ", ""), ("", "")] {
        let lines = load(&text(first, second)).lines();
        assert_eq!(lines, ["4:12 `a` is taken by the handler `h` already"], "{first}{second}");
    }
}

#[test]
fn c21_what_never_takes_an_event_or_takes_only_some_is_known() {
    const IN: &str = "inputs: { in: { file: { path: '-' } } }\n";
    for (text, expected) in [
        (
            "handlers: { h: { on: 'price.*', where: { type: order.placed }, pass: } }",
            &["2:42 `h` never takes an event: no type of its `on` meets this"][..],
        ),
        ("handlers: { h: { on: 'price.*', where: { type: { in: [a, price.new] } }, pass: } }", &[]),
        ("handlers: { h: { on: 'price.*', where: { type: { greater: price.m } }, pass: } }", &[]),
        (
            "handlers: { h: { on: b, where: { type: { less: b } }, pass: } }",
            &["2:34 `h` never takes an event: no type of its `on` meets this"],
        ),
        (
            "handlers: { h: { on: a, pass: } }\noutputs: { o: { on: a, where: { type: b }, file: { path: x } } }",
            &["3:33 `o` never takes an event: no type of its `on` meets this"],
        ),
        // One that takes some of it lets the rest through to the next.
        ("handlers: { h: { on: a.*, where: { /n: 1 }, pass: }, i: { on: a.*, drop: } }", &[]),
        (
            "handlers: { h: { on: a.*, pass: }, i: { on: a.*, where: { /n: 1 }, drop: } }",
            &["2:45 nothing reaches the handler `i`"],
        ),
        (
            "handlers: { h: { on: a, pass: } }\noutputs: { x: { where: { /n: 1 }, file: { path: x } }, y: { file: { path: y } } }",
            &[],
        ),
        (
            "handlers: { h: { on: a, pass: } }\noutputs: { x: { file: { path: x } }, y: { where: { /n: 1 }, file: { path: y } } }",
            &["3:38 nothing reaches the output `y`"],
        ),
        (
            "handlers: { h: { on: 'a.*', loopback: 1, where: { /n: 1 }, pass: } }\nloopback: { on: 'a.*' }",
            &[],
        ),
        ("handlers: { h: { on: '**', where: { /n: 1 }, drop: } }\nno_handler: ignore", &[]),
        ("handlers: { h: { on: '**', where: { /n: 1 }, drop: } }\nhandler_rejected: ignore", &[]),
    ] {
        let loaded = load(&format!("{IN}{text}\n"));
        assert_eq!(loaded.problems.errors(), 0, "{}", loaded.text());
        assert_eq!(loaded.lines(), *expected, "{text}");
    }
}

#[test]
fn c21_a_reload_leaves_the_conditions_of_a_handler_as_they_are() {
    let (one, other) = (load(&asks("{ /n: 1 }")).good(), load(&asks("{ /n: 2 }")).good());
    assert_eq!(one.handlers[0].differs(&other.handlers[0]), ["where"]);
    assert!(!HandlerConfig::GROUP.find("where").unwrap().live);
}

#[test]
fn c21_the_schema_takes_a_value_or_a_mapping() {
    let schema = json_schema();
    let handler = &schema["properties"]["handlers"]["additionalProperties"];
    let condition = &handler["properties"]["where"]["additionalProperties"]["anyOf"];
    assert_eq!(condition[0]["type"], serde_json::json!(["string", "number", "boolean"]));
    assert_eq!(condition[1]["properties"]["in"]["minItems"], 1);
}
