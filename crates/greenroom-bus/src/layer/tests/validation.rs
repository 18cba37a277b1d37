//! Validation by JSON Schema.

use serde_json::{Value, json};

use super::*;

fn of_type(ty: &str, data: Value) -> Event {
    Event::builder("1", "/test", ty).data_json(&data).build().unwrap()
}

fn handler() -> Box<dyn Handler> {
    let order = json!({
        "type": "object",
        "required": ["id", "items"],
        "properties": { "items": { "type": "array", "items": { "type": "integer" } } },
    });
    let small = json!({ "maxProperties": 3 });
    let validation = Validation::new()
        .schema("order.*".parse().unwrap(), &order)
        .unwrap()
        .schema("**".parse().unwrap(), &small)
        .unwrap();
    Layers::new().layer(validation).around(obedient()).build(0).unwrap()
}

#[tokio::test]
async fn r07_data_that_fits_its_schema_passes_and_other_types_do() {
    let mut handler = handler();
    make(&mut handler, &of_type("order.placed", json!({"id": 1, "items": [1]}))).await.unwrap();
    make(&mut handler, &of_type("price", json!({"any": "thing"}))).await.unwrap();
}

#[tokio::test]
async fn r07_data_that_does_not_fit_rejects_the_event_and_says_where() {
    let bad = of_type("order.placed", json!({"items": [1, "two"]}));
    let failure = make(&mut handler(), &bad).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Reject);
    assert!(failure.error.contains("/items/1:"), "{failure}");
    assert!(failure.error.contains("the whole:") && failure.error.contains("\"id\""), "{failure}");
    let large = of_type("price", json!({"a": 1, "b": 2, "c": 3, "d": 4}));
    assert_eq!(kind(make(&mut handler(), &large).await), Some(FailureKind::Reject));
}

#[tokio::test]
async fn r07_data_that_is_missing_or_no_json_rejects_the_event() {
    let none = Event::builder("1", "/test", "order.placed").build().unwrap();
    let failure = make(&mut handler(), &none).await.unwrap_err();
    assert_eq!((failure.kind, &*failure.error), (FailureKind::Reject, "the event has no data"));
    let bytes = Event::builder("1", "/test", "order.placed").data_binary(&b"\xff"[..]);
    let result = make(&mut handler(), &bytes.build().unwrap()).await;
    assert_eq!(kind(result), Some(FailureKind::Reject));
}

#[tokio::test]
async fn r07_an_error_of_validation_names_some_problems_and_counts_the_others() {
    let items: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    let bad = of_type("order.placed", json!({"id": 1, "items": items}));
    let failure = make(&mut handler(), &bad).await.unwrap_err();
    assert!(failure.error.ends_with("; and 20 more"), "{failure}");
}

#[tokio::test]
async fn r07_data_with_a_member_that_is_there_twice_is_rejected() {
    let of_data = |data: &str| {
        let event = format!(
            r#"{{"specversion":"1.0","id":"1","source":"s","type":"order.placed","data":{data}}}"#
        );
        Event::parse(event.as_bytes()).unwrap()
    };
    for (data, member) in [
        (r#"{"id":"x","id":1,"items":[]}"#, "id"),
        (r#"{"id":1,"items":[],"more":[{"a":{"b":1,"c":2,"b":3}}]}"#, "b"),
        (r#"{"id":1,"items":[],"\u0069d":1}"#, "id"),
    ] {
        let failure = make(&mut handler(), &of_data(data)).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Reject, "{data}");
        let said = format!("the member \"{member}\" is there twice at line 1 column ");
        assert!(failure.error.contains(&said), "{failure}");
    }
    let alike = r#"{"id":1,"items":[],"more":[{"id":1},{"id":1.5},{"id":[null,true,-3]}]}"#;
    make(&mut handler(), &of_data(alike)).await.unwrap();
}

#[test]
fn r07_a_schema_that_is_none_is_told_when_it_is_given() {
    let wrong = Validation::new().schema("a.*".parse().unwrap(), &json!({"type": 7})).unwrap_err();
    assert_eq!(wrong.on, "a.*");
    let remote = json!({"$ref": "https://example.com/schema.json"});
    assert!(Validation::new().schema("a".parse().unwrap(), &remote).is_err());
}
