//! The layers of a handler: what they take, and every mistake with its place.

use std::fs;

use super::*;

const SCHEMA: &str = r#"{ "type": "object", "required": ["n"] }"#;

/// The handlers of this text, beside which `s.json` is a schema, `text.json` is no JSON, and
/// `none.json` is no schema.
fn load_handlers(handlers: &str) -> Loaded {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in
        [("s.json", SCHEMA), ("text.json", "no"), ("none.json", r#"{ "type": "objct" }"#)]
    {
        fs::write(directory.path().join(name), content).unwrap();
    }
    let text = format!("{BASE}handlers:\n{handlers}");
    load_with("c.yaml", &text, &[], directory.path())
}

fn layered(layers: &str) -> Loaded {
    load_handlers(&format!("  h: {{ on: a, pass: {{}}, layers: {layers} }}\n"))
}

#[test]
fn r07_layers_come_in_the_order_in_which_they_are_written() {
    let loaded = load_handlers(
        "  h:
    on: a
    layers:
      - tracing
      - metrics:
      - correlation: {}
      - deduplication: { within: 1m, remember: 7 }
      - validation: { 'a.*': s.json, a: s.json }
      - timeout: 5s
      - circuitBreaker: { failures: 3, openFor: 2s }
      - rate_limit: 20/s
      - metrics
    pass: {}
",
    );
    let layers = loaded.good().handlers.remove(0).layers;
    let names: Vec<_> = layers.iter().map(LayerConfig::key).collect();
    let expected =
        "tracing metrics correlation deduplication validation timeout circuit_breaker rate metrics";
    assert_eq!(names.join(" "), expected);
    assert_eq!(
        layers[3],
        LayerConfig::Deduplication(DeduplicationConfig {
            within: Duration::from_secs(60),
            remember: 7,
            store: None,
        })
    );
    let LayerConfig::Validation(schemas) = &layers[4] else { panic!("{layers:?}") };
    let on: Vec<_> = schemas.iter().map(|schema| schema.on.as_str()).collect();
    assert_eq!(on, ["a.*", "a"]);
    assert_eq!(schemas[0].document["required"][0], "n");
    assert_eq!(layers[5], LayerConfig::Timeout(Duration::from_secs(5)));
    let breaker = Breaker { failures: 3, open_for: Duration::from_secs(2), shared: None };
    assert_eq!(layers[6], LayerConfig::CircuitBreaker(breaker));
    assert_eq!(layers[7], LayerConfig::Rate(Rate { per_second: 20.0 }));
}

#[test]
fn r07_a_byte_order_mark_before_a_schema_is_skipped() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("s.json"), format!("\u{feff}{SCHEMA}")).unwrap();
    let text = handler("pass: {}, layers: [{ validation: { a: s.json } }]");
    load_with("c.yaml", &text, &[], directory.path()).good();
}

#[test]
fn r07_layers_have_usual_settings() {
    let layers = layered("[circuit_breaker, deduplicate]").good().handlers.remove(0).layers;
    let breaker = Breaker { failures: 5, open_for: Duration::from_secs(10), shared: None };
    assert_eq!(layers[0], LayerConfig::CircuitBreaker(breaker));
    let within = Duration::from_secs(600);
    assert_eq!(
        layers[1],
        LayerConfig::Deduplication(DeduplicationConfig { within, remember: 100_000, store: None })
    );
    assert_eq!(layered("[tracing]").good().handlers[0].layers.len(), 1);
    assert!(load(&handler("pass: {}")).good().handlers[0].layers.is_empty());
}

#[test]
fn c02_every_mistake_in_a_layer_has_its_place_and_says_what_to_do() {
    for (layers, expected, help) in [
        (
            "[]",
            "3:33 `layers` has to be a list of mappings, but the list is empty",
            "[{ timeout: 5s }",
        ),
        (
            "{ timeout: 5s }",
            "3:33 `layers` has to be a list of mappings, but this is a mapping",
            "",
        ),
        (
            "tracing",
            "3:33 `layers` has to be a list of mappings, but this is the text `tracing`",
            "",
        ),
        (
            "[trace]",
            "3:34 a layer is a mapping, but this is the text `trace`",
            "did you mean `tracing`?",
        ),
        (
            "[timeout]",
            "3:34 a layer is a mapping, but this is the text `timeout`",
            "with a duration from 1ms to 24h in it",
        ),
        (
            "[{ circut_breaker: {} }]",
            "3:36 unknown key `circut_breaker` in a layer",
            "did you mean `circuit_breaker`?",
        ),
        ("[{ timout: 5s }]", "3:36 unknown key `timout` in a layer", "did you mean `timeout`?"),
        (
            "[{ timeout: 5 }]",
            "3:45 `timeout` has to be a duration from 1ms to 24h, but the unit is missing",
            "`5s`",
        ),
        (
            "[tracing, { rate: 20 }]",
            "3:51 `rate` has to be a rate above zero, but this is the number 20",
            "`20/s`",
        ),
        ("[{ rate: 0.01/h }]", "3:42 this is less than one attempt a day", "`1/h`"),
        (
            "[{ timeout: 5s, rate: 1/s }]",
            "3:49 a layer has one kind, but `rate` follows `timeout`",
            "keep one",
        ),
        ("[{ metrics: { all: true } }]", "3:47 unknown key `all` in this layer", "remove it"),
        ("[{ circuit_breaker: { failures: 0 } }]", "3:65 `failures` has to be a whole number", ""),
        ("[{ deduplication: { within: 31d } }]", "3:61 `within` has to be a duration", ""),
        ("[{ validation: {} }]", "3:48 there is no schema", "order.schema.json"),
        ("[{ validation: { 'a*': s.json } }]", "3:50 `a*` is not a type or pattern", "order.*"),
        ("[{ validation: { a: 5 } }]", "3:53 `a` has to be text", "quotes"),
        (
            "[{ validation: { a: missing.json } }]",
            "3:50 cannot use `",
            "directory of the configuration",
        ),
        (
            "[{ validation: { a: text.json } }]",
            "3:50 cannot use `",
            "write the JSON Schema as JSON",
        ),
        ("[{ validation: { a: none.json } }]", "3:50 `", "fix the file"),
    ] {
        let loaded = layered(layers);
        let lines = loaded.lines();
        assert_eq!(loaded.problems.errors(), 1, "{layers}: {lines:?}");
        assert!(lines.iter().any(|line| line.starts_with(expected)), "{layers}: {lines:?}");
        assert!(loaded.text().contains(help), "{layers}: {}", loaded.text());
    }
}

#[test]
fn r07_circuit_breakers_of_one_name_have_the_same_settings() {
    let two = |second: &str| {
        load_handlers(&format!(
            "  a: {{ on: a, pass: {{}}, layers: [{{ circuit_breaker: {{ shared: erp, failures: 3 }} }}] }}
  b: {{ on: b, pass: {{}}, layers: [{{ circuit_breaker: {{ {second} }} }}] }}
"
        ))
    };
    assert_eq!(two("shared: erp, failures: 3").problems.errors(), 0);
    assert_eq!(two("shared: crm, failures: 4").problems.errors(), 0);
    assert_eq!(two("failures: 4").problems.errors(), 0);
    let differs = two("shared: erp, failures: 4");
    let expected = "4:36 the circuit breaker `erp` has different settings in `handlers.a.layers.0.circuit_breaker`";
    assert!(differs.lines().contains(&expected.to_owned()), "{:?}", differs.lines());
    assert_eq!(differs.problems.errors(), 1);
}

#[test]
fn c02_a_handler_with_a_mistaken_layer_is_looked_at_all_the_same() {
    let loaded = load_handlers(
        "  h: { on: 'a*', pool: nowhere, http: { url: x }, layers: [{ validation: {} }] }\n",
    );
    assert_eq!(loaded.problems.errors(), 4, "{}", loaded.text());
}

#[test]
fn the_json_schema_has_layers_as_mappings_and_words() {
    let schema = json_schema();
    let handler = &schema["properties"]["handlers"]["additionalProperties"];
    let items = &handler["properties"]["layers"]["items"]["anyOf"];
    assert_eq!(items[0]["oneOf"].as_array().unwrap().len(), 8);
    assert_eq!(items[0]["properties"]["circuit_breaker"]["properties"]["failures"]["default"], 5);
    let words = items[1]["enum"].as_array().unwrap();
    assert!(words.contains(&"tracing".into()) && !words.contains(&"timeout".into()), "{words:?}");
}
