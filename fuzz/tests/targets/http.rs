//! CloudEvents over HTTP, in all three modes: headers, an empty line, a body.

use bytes::Bytes;
use fuzz::fuzz;
use greenroom_bus::{
    event::{
        Event,
        http::{announces_events, read, read_binary, write_binary},
    },
    http::{check_header, check_url},
};

use crate::{
    events::{assert_it_survives, written},
    seeds::JSON,
};

pub const MESSAGES: &[&[u8]] = &[
    b"ce-specversion:1.0\nce-id:a1\nce-source:/shop\nce-type:order.placed\n\n",
    b"CE-SpecVersion: 1.0\nce-id: a%201\nce-source:/shop\nce-type:t\nce-subject:\"a b\"\nce-time:2026-01-31T12:00:00Z\nce-tenant:%F0%9F%98%80\nContent-Type:application/json; charset=utf-8\n\n{\"n\":1}",
    b"ce-specversion:1.0\nce-id:a\nce-source:s\nce-type:t\ncontent-type:text/plain\n\ntwo\nlines",
    b"ce-specversion:1.0\nce-id:a\nce-source:s\nce-type:t\ncontent-type:application/octet-stream\n\n\x00\xff",
    b"content-type:application/cloudevents+json\n\n{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"s\",\"type\":\"t\"}",
    b"content-type:application/cloudevents-batch+json\n\n[{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"s\",\"type\":\"t\"}]",
];

pub const TOKENS: &[&str] = &[
    ":",
    "\n",
    "\n\n",
    "%",
    "%2",
    "%00",
    "%0A",
    "%FF",
    "%C3%BC",
    "\"",
    "\\",
    "ce-",
    "ce-id:b\n",
    "ce-data:x\n",
    "ce-specversion:1.0\n",
    "content-type:application/json\n",
    "content-type:\n",
    "content-type:text/plain\n",
    "content-type:application/cloudevents+json\n",
    "\u{fc}",
    "\u{0}",
    "{",
    "[",
    "null",
    "\"x\"",
    ";",
    "charset=latin1",
    "+json",
    " ",
    "\t",
    "\r",
];

const URLS: &[&[u8]] =
    &[b"http://localhost:9000/prices?a=b", b"https://user:pw@[::1]:443/%20#f", b"/relative"];

/// Headers, and what is behind an empty line.
pub fn split(message: &[u8]) -> (Vec<(&str, &[u8])>, Bytes) {
    let end = message.windows(2).position(|pair| pair == b"\n\n").unwrap_or(message.len());
    let (head, body) = message.split_at(end);
    let headers = head.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((std::str::from_utf8(&line[..colon]).ok()?, line[colon + 1..].trim_ascii()))
    });
    (headers.collect(), Bytes::copy_from_slice(body.strip_prefix(b"\n\n").unwrap_or(body)))
}

/// Binary mode tells neither numbers from texts nor bytes from JSON; what is left is the same after
/// one more turn.
fn assert_it_goes_through_headers(event: &Event) {
    let first = through_headers(event);
    let second = through_headers(&first);
    assert_eq!(written(&first), written(&second));
    let names = |event: &Event| [event.id(), event.source(), event.ty()].map(str::to_owned);
    assert_eq!(names(event), names(&first));
    assert_eq!((event.subject(), event.time()), (first.subject(), first.time()));
    assert_eq!(event.data_bytes(), first.data_bytes());
}

fn through_headers(event: &Event) -> Event {
    let message = write_binary(event);
    let headers: Vec<(&str, &[u8])> =
        message.headers.iter().map(|(name, value)| (&**name, value.as_bytes())).collect();
    for (name, value) in &headers {
        let is_plain = |byte: &u8| byte.is_ascii_graphic();
        assert!(*name == "content-type" || value.iter().all(is_plain), "{name}: {value:?}");
    }
    read_binary(&headers, &message.body).expect("what was written is read")
}

#[test]
fn messages() {
    fuzz!(MESSAGES, TOKENS, |input| {
        let (headers, body) = split(input);
        match read(&headers, &body) {
            Ok(events) => {
                assert!(events.is_empty() || announces_events(&headers));
                events.iter().for_each(assert_it_survives);
            }
            Err(error) => assert!(error.to_string().len() < 2_000, "{error}"),
        }
    });
}

#[test]
fn binary_mode() {
    fuzz!(MESSAGES, TOKENS, |input| {
        let (headers, body) = split(input);
        if let Ok(event) = read_binary(&headers, &body) {
            assert_it_survives(&event);
            assert_it_goes_through_headers(&event);
        }
    });
}

#[test]
fn events_become_headers() {
    fuzz!(crate::seeds::EVENTS, JSON, |input| {
        if let Ok(event) = Event::parse(input) {
            write_binary(&event);
        }
    });
}

#[test]
fn headers_and_urls() {
    fuzz!(URLS, TOKENS, |input| {
        let text = String::from_utf8_lossy(input);
        if let Err(error) = check_url(&text) {
            assert!(!error.to_string().is_empty());
        }
        let (name, value) = text.split_once(':').unwrap_or((&text, ""));
        let _ = check_header(name, value);
    });
}
