//! What conditions mean, and that they mean the same however a value is written (C21).

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    event::Event,
    router::{Condition, Literal, Matcher},
};

fn matcher(field: &str, condition: Condition) -> Matcher {
    Matcher::any().field(field.parse().unwrap(), condition)
}

fn with(data: &Value) -> Event {
    Event::builder("1", "/s", "t").data_json(data).build().unwrap()
}

fn holds(condition: &Condition, value: &Value) -> bool {
    matcher("/v", condition.clone()).matches(&with(&json!({ "v": value })))
}

/// All that compare with one literal.
fn asked(literal: &Literal) -> [Condition; 5] {
    [
        Condition::Less(literal.clone()),
        Condition::Equal(literal.clone()),
        Condition::Greater(literal.clone()),
        Condition::AtMost(literal.clone()),
        Condition::AtLeast(literal.clone()),
    ]
}

fn held(literal: &Literal, value: &Value) -> [bool; 5] {
    asked(literal).map(|condition| holds(&condition, value))
}

const LESS: [bool; 5] = [true, false, false, true, false];
const EQUAL: [bool; 5] = [false, true, false, true, true];
const GREATER: [bool; 5] = [false, false, true, false, true];
const NONE: [bool; 5] = [false; 5];

#[test]
fn c21_numbers_texts_times_and_truth_values_are_compared_with_their_like() {
    let cases: &[(Literal, Value, [bool; 5])] = &[
        (100.into(), json!(99.5), LESS),
        (100.into(), json!(100.0), EQUAL),
        (1.5.into(), json!(2), GREATER),
        (9_007_199_254_740_993_i64.into(), json!(9_007_199_254_740_992_i64), LESS),
        (9_007_199_254_740_992.0.into(), json!(9_007_199_254_740_993_i64), GREATER),
        (100.into(), json!("100"), NONE),
        ("100".into(), json!(100), NONE),
        ("b".into(), json!("a"), LESS),
        ("b".into(), json!("b"), EQUAL),
        ("b".into(), json!("\"b\u{e9}"), LESS),
        ("10".into(), json!("9"), GREATER),
        ("2026-01-01T00:00:00Z".into(), json!("2026-01-01T00:30:00+01:00"), LESS),
        ("2026-01-01T00:00:00Z".into(), json!("2026-01-01T01:00:00.0+01:00"), EQUAL),
        ("2026-01-01T00:00:00Z".into(), json!("2026"), NONE),
        (true.into(), json!(true), [false, true, false, false, false]),
        (true.into(), json!(false), NONE),
        (true.into(), json!("true"), NONE),
        (1.into(), json!(true), NONE),
        ("a".into(), json!(["a"]), NONE),
        ("a".into(), json!({ "a": "a" }), NONE),
        ("a".into(), json!(null), NONE),
    ];
    for (literal, value, expected) in cases {
        assert_eq!(held(literal, value), *expected, "{literal:?} and {value}");
    }
}

#[test]
fn c21_what_is_missing_or_null_is_not_present_and_meets_nothing_else() {
    let (there, absent) = (Condition::Present(true), Condition::Present(false));
    for (data, is_there) in [
        (json!({ "v": 0 }), true),
        (json!({ "v": "" }), true),
        (json!({ "v": [] }), true),
        (json!({ "v": null }), false),
        (json!({}), false),
        (json!([1]), false),
        (json!("v"), false),
    ] {
        let event = with(&data);
        assert_eq!(matcher("/v", there.clone()).matches(&event), is_there, "{data}");
        assert_eq!(matcher("/v", absent.clone()).matches(&event), !is_there, "{data}");
    }
    let empty = Event::builder("1", "/s", "t").build().unwrap();
    assert!(matcher("/v", absent.clone()).matches(&empty), "it has no data, so no `v` either");
    assert!(
        !matcher("subject", there).matches(&empty) && matcher("subject", absent).matches(&empty)
    );
}

#[test]
fn c21_data_that_is_not_json_meets_no_condition_on_it() {
    let build = |content_type: &str, data: &'static [u8]| {
        let event = Event::builder("1", "/s", "t").datacontenttype(content_type.to_owned());
        event.data_binary(data).build().unwrap()
    };
    let broken = build("application/json", b"{\"v\":1} and more");
    let other = build("application/octet-stream", b"{\"v\":1}");
    let bytes = build("application/json", &[0xff]);
    for event in [broken, other, bytes] {
        for condition in [Condition::Present(true), Condition::Present(false)] {
            assert!(!matcher("/v", condition).matches(&event), "{event:?}");
        }
    }
    let json = build("application/vnd.shop+json", b"{\"v\":1}");
    assert!(matcher("/v", Condition::Equal(1.into())).matches(&json));
}

#[test]
fn c21_attributes_are_read_as_what_they_are_compared_with() {
    let event = |value: &str| {
        let event = Event::builder("7", "/s", "t").time("2026-01-01T00:00:00Z");
        event.extension("n", value).build().unwrap()
    };
    let number = Event::builder("7", "/s", "t").extension("n", 3).extension("b", true);
    let number = number.build().unwrap();
    for event in [event("3"), event("3.0"), number.clone()] {
        assert!(matcher("n", Condition::Equal(3.into())).matches(&event), "{event:?}");
        assert!(matcher("n", Condition::Less(10.into())).matches(&event), "{event:?}");
    }
    assert!(matcher("n", Condition::Equal("3".into())).matches(&number));
    assert!(!matcher("n", Condition::Less(10.into())).matches(&event("three")));
    assert!(matcher("b", Condition::Equal(true.into())).matches(&number));
    assert!(matcher("n", Condition::Equal(true.into())).matches(&event("true")));
    let after = Condition::Greater("2025-12-31T23:00:00-00:30".into());
    assert!(matcher("time", after).matches(&event("")));
    let ids = Condition::In(vec!["6".into(), 7.into()]);
    assert!(matcher("id", ids.clone()).matches(&number));
    assert!(matcher("type", Condition::Equal("t".into())).matches(&number));
    assert!(!matcher("source", ids).matches(&number));
}

#[test]
fn c21_all_conditions_have_to_hold_and_the_first_that_does_not_is_named() {
    let both = matcher("/v", Condition::AtLeast(1.into()))
        .field("/v".parse().unwrap(), Condition::Less(5.into()))
        .field("subject".parse().unwrap(), Condition::Present(false));
    assert!(both.matches(&with(&json!({ "v": 1 }))) && !both.is_any());
    let why = |value: i32| both.mismatch(&with(&json!({ "v": value }))).map(|why| why.to_string());
    assert_eq!(why(5).as_deref(), Some("where /v (less)"));
    assert_eq!(why(0).as_deref(), Some("where /v (at_least)"));
    assert_eq!(why(4), None);
    assert_eq!(both, both.clone());
    assert_ne!(both, matcher("/v", Condition::AtLeast(1.into())));
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        any::<i64>().prop_map(Literal::from),
        (-1e18..1e18).prop_map(Literal::from),
        "[a-c\"\\\\é]{0,3}".prop_map(Literal::from),
        any::<bool>().prop_map(Literal::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e18..1e18).prop_map(Value::from),
        "[a-c\"\\\\é]{0,3}".prop_map(Value::from),
        Just(json!([1])),
        Just(json!({ "v": 1 })),
    ]
}

proptest! {
    /// Of values that compare, exactly one of less, equal and greater holds, and the or-equal forms
    /// follow from these.
    #[test]
    fn c21_conditions_agree_with_each_other(literal in literal(), value in value()) {
        let [less, equal, greater, at_most, at_least] = held(&literal, &value);
        prop_assert!(u8::from(less) + u8::from(equal) + u8::from(greater) <= 1);
        if !literal.is_bool() {
            prop_assert_eq!(at_most, less || equal);
            prop_assert_eq!(at_least, greater || equal);
        }
        let one_of = Condition::In(vec![literal.clone()]);
        prop_assert_eq!(holds(&one_of, &value), equal);
        prop_assert!(!holds(&Condition::In(Vec::new()), &value));
        let present = holds(&Condition::Present(true), &value);
        prop_assert_eq!(present, !value.is_null());
        prop_assert!(present || !(less || equal || greater || at_most || at_least));
    }

    /// Two literals compare as a literal and the same value in an event.
    #[test]
    fn c21_a_literal_meets_what_a_value_like_it_meets(one in any::<i64>(), other in literal()) {
        for condition in asked(&other) {
            prop_assert_eq!(condition.admits(&one.into()), holds(&condition, &json!(one)));
        }
        let reversed = other.compare(&one.into()).map(std::cmp::Ordering::reverse);
        prop_assert_eq!(Literal::from(one).compare(&other), reversed);
    }

    /// Of whole numbers and others, the order is that of the numbers, also where a float cannot
    /// tell them apart.
    #[test]
    fn c21_numbers_are_compared_exactly(whole in any::<i64>(), off in -3_i64..=3) {
        let other = (whole.saturating_add(off)) as f64;
        let exact = i128::from(whole).cmp(&(other as i128));
        prop_assert_eq!(Literal::from(whole).compare(&other.into()), Some(exact));
        prop_assert_eq!(Literal::from(whole).compare(&(whole as f64 + 0.5).into()).is_some(), true);
    }

    /// Where data is looked at for several conditions at once, each says what it says alone.
    #[test]
    fn c21_conditions_that_share_a_reading_say_what_each_says_alone(
        one in literal(), other in literal(), first in value(), second in value(),
    ) {
        let event = with(&json!({ "a": { "b": first, "c": second }, "d": first }));
        let parts = [
            matcher("/a/b", Condition::Equal(one.clone())),
            matcher("/a/c", Condition::AtLeast(other.clone())),
            matcher("/a", Condition::Present(true)),
            matcher("/d", Condition::AtMost(one.clone())),
        ];
        let all = Matcher::any()
            .field("/a/b".parse().unwrap(), Condition::Equal(one.clone()))
            .field("/a/c".parse().unwrap(), Condition::AtLeast(other))
            .field("/a".parse().unwrap(), Condition::Present(true))
            .field("/d".parse().unwrap(), Condition::AtMost(one));
        prop_assert_eq!(all.matches(&event), parts.iter().all(|part| part.matches(&event)));
    }
}
