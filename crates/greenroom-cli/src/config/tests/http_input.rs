//! `http` inputs (B02).

use greenroom_bus::source::http::HttpInput;

use super::*;

fn input(options: &str) -> String {
    format!(
        "inputs: {{ i: {{ http: {{ store: log, {options} }} }} }}\nhandlers: {{ h: {{ on: a, drop: }} }}\n"
    )
}

fn why(text: &str) -> String {
    let loaded = load(text);
    assert_eq!(loaded.problems.errors(), 1, "{text}: {}", loaded.text());
    loaded.text()
}

#[test]
fn b02_an_input_listens_on_this_machine_unless_somebody_is_asked_who_they_are() {
    let config = load(&input("")).good();
    let http = config.inputs[0].kind.downcast_ref::<HttpInput>().unwrap();
    assert_eq!((http.listen.0.to_string(), &*http.path), ("127.0.0.1:8080".into(), "/events"));
    assert!(why(&input("listen: '0.0.0.0:80'")).contains("needs `auth`"));
    for guarded in ["auth: { bearer: x }", "allow_anonymous: true"] {
        load(&input(&format!("listen: '0.0.0.0:80', {guarded}"))).good();
    }
}

#[test]
fn b02_tokens_and_secrets_are_never_shown() {
    let signature = "auth: { signature: { header: x-sig, secret: [sesame, open-sesame], prefix: 'v1=', \
                     timestamp: { header: x-time } } }";
    for auth in ["auth: { bearer: [sesame, open-sesame] }", signature] {
        let config = load(&input(auth)).good();
        assert!(!format!("{config:?}").contains("sesame"), "{config:?}");
    }
    assert!(why(&input("auth: { bearer: 'two words' }")).contains("token 1"));
    assert!(!why(&input("auth: { bearer: 'two words' }")).contains("help: two words"));
    let bad = "auth: { signature: { header: 'x sig', secret: s } }";
    assert!(why(&input(bad)).contains("is no header name"));
}

#[test]
fn b02_senders_of_webhooks_have_names_and_whole_requests_a_minute() {
    for (options, rate) in [
        ("{ origins: eventgrid.azure.net, rate: 100/min }", Some(100)),
        ("{ origins: ['*', 'localhost:80'], rate: 2/s }", Some(120)),
        ("{ origin: a }", None),
    ] {
        let config = load(&input(&format!("webhook: {options}"))).good();
        let http = config.inputs[0].kind.downcast_ref::<HttpInput>().unwrap();
        let webhook = http.webhook.as_ref().unwrap().to_bus();
        assert_eq!(webhook.per_minute.map(std::num::NonZeroU64::get), rate, "{options}");
    }
    for (options, says) in [
        ("{ origins: 'https://a.example' }", "write the name alone"),
        ("{ origins: [a, 'b c'] }", "write the name alone"),
        ("{ origins: a, rate: 1/h }", "`1/min` or more"),
        ("{ rate: 1/s }", "needs `origins`"),
    ] {
        let told = why(&input(&format!("webhook: {options}")));
        assert!(told.contains(says), "{told}");
    }
}

#[test]
fn b02_a_path_is_one_that_requests_can_have() {
    for path in ["/", "/in/v1", "/hooks/*"] {
        load(&input(&format!("path: '{path}'"))).good();
    }
    for path in ["events", "/healthz", "/a b", "/a?b", "/*/b"] {
        why(&input(&format!("path: '{path}'")));
    }
}

#[test]
fn b02_bodies_have_room_for_one_and_no_two_inputs_have_one_address_or_store() {
    assert!(why(&input("bodies: 1MiB")).contains("no room for one body"));
    let two = |first: &str, second: &str| {
        format!(
            "inputs:\n  one: {{ http: {{ {first} }} }}\n  two: {{ http: {{ {second} }} }}\n\
             handlers: {{ h: {{ on: a, drop: }} }}\n"
        )
    };
    let clash = why(&two("store: a, listen: '127.0.0.1:80'", "store: b, listen: 'localhost:80'"));
    assert!(clash.contains("`inputs.one.http.listen` listens there already"), "{clash}");
    let zero = two("store: a, listen: '127.0.0.1:0'", "store: b, listen: '127.0.0.1:0'");
    load(&zero).good();
    let shared = why(&two("store: a, listen: '127.0.0.1:0'", "store: ./a, listen: '127.0.0.1:0'"));
    assert!(shared.contains("is the store of `inputs.one.http.store` already"), "{shared}");
    let admin = input("listen: '127.0.0.1:7070'") + "admin: {}\n";
    assert!(why(&admin).contains("`admin.listen` listens there already"));
}

#[test]
fn b02_certificates_that_cannot_be_used_are_told_at_their_place() {
    let missing = why(&input("tls: { cert: no.pem, key: no.key }"));
    assert!(missing.contains("cannot read `"), "{missing}");
    let half = why(&input("tls: { cert: no.pem }"));
    assert!(half.contains("needs `key`"), "{half}");
}

#[test]
fn m05_headers_are_for_inputs_that_have_some() {
    let records = "records: { type: { header: X-Event }, source: { path: {} } }";
    let text = |kind: &str| {
        format!("inputs: {{ i: {{ {kind}, {records} }} }}\nhandlers: {{ h: {{ on: a, drop: }} }}\n")
    };
    load(&text("http: { store: log }")).good();
    assert!(why(&text("file: { path: '-' }")).contains("a line has no headers"));
}
