//! What is posted to the `http` input: connections, messages, and who may post.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use fuzz::fuzz;
use greenroom_bus::{
    BoxFuture,
    event::Event,
    record::{Mapping, Pick, RecordPart},
    source::http::{
        Access, BadMessage, Encoding, HttpSettings, Message, Reading, Signature, SignedTime,
        fuzzed::{admits, converse},
        read,
    },
    store::log::{AppendError, Appended, EventLog},
};
use greenroom_config::Secret;
use ring::hmac::{HMAC_SHA256, Key, sign};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, duplex},
    runtime::{Builder, Runtime},
    sync::mpsc,
};

use crate::{
    events::{assert_it_survives, written},
    http::{MESSAGES, TOKENS, split},
};

/// The largest event and the largest batch, in bytes and events.
const MAX_EVENT: usize = 400;
const MAX_BATCH: usize = 3;

/// An error is shown so far, in bytes.
const LONGEST_ERROR: usize = 2_000;

fn mapping() -> Mapping {
    let header = |name: &str| Pick::part(RecordPart::Header(name.into()));
    Mapping::new(header("content-type").or("hook"), Pick::part(RecordPart::Path))
        .subject(header("ce-id").optional())
        .time(header("date").optional())
}

#[test]
fn messages_are_events_or_say_why_not() {
    let mapping = mapping();
    fuzz!(MESSAGES, TOKENS, |input| {
        let (headers, body) = split(input);
        for records in [None, Some(&mapping)] {
            let reading = Reading { records, max_event: MAX_EVENT, max_batch: MAX_BATCH };
            let message = Message { path: "/hooks/shop", headers: &headers, body: &body };
            match read(&message, &reading) {
                Ok(events) => {
                    assert!(events.len() <= MAX_BATCH);
                    events.iter().for_each(assert_it_survives);
                    let again = read(&message, &reading).expect("the same again");
                    let lines = |events: &[Event]| events.iter().map(written).collect::<Vec<_>>();
                    assert_eq!(lines(&again), lines(&events), "posted again, it is the same");
                    assert!(events.iter().all(|event| event.approximate_bytes() <= MAX_EVENT));
                }
                Err(error) => assert_it_can_be_told(&error),
            }
        }
    });
}

fn assert_it_can_be_told(error: &BadMessage) {
    let text = error.to_string();
    assert!(!text.is_empty() && text.len() <= LONGEST_ERROR, "{} bytes", text.len());
    if let BadMessage::Event { field: Some(field), .. } = error {
        assert!(field.len() <= LONGEST_ERROR);
    }
}

const POSTS: &[&[u8]] = &[
    b"POST /events HTTP/1.1\r\nhost: h\r\nauthorization: Bearer sesame\r\ncontent-type: application/cloudevents+json\r\ncontent-length: 54\r\n\r\n{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"s\",\"type\":\"t\"}",
    b"POST /events HTTP/1.1\r\nhost: h\r\nauthorization: bearer sesame\r\nce-specversion: 1.0\r\nce-id: 2\r\nce-source: s\r\nce-type: t\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nhost: h\r\n\r\n",
    b"POST /events HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\nauthorization: Bearer sesame\r\ncontent-type: application/cloudevents-batch+json\r\ncontent-length: 56\r\n\r\n[{\"specversion\":\"1.0\",\"id\":\"3\",\"source\":\"s\",\"type\":\"t\"}]",
    b"POST /events HTTP/1.0\r\ncontent-type: application/cloudevents+json\r\ncontent-length: 54\r\n\r\n{\"specversion\":\"1.0\",\"id\":\"4\",\"source\":\"s\",\"type\":\"t\"}",
    b"PUT /events HTTP/1.1\r\nhost: h\r\n\r\nPOST /other HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\n\r\nx",
];

const PIECES: &[&str] = &[
    "\r\n",
    "\r\n\r\n",
    ":",
    " ",
    "\t",
    "\u{0}",
    "\u{fc}",
    "%00",
    "POST /events HTTP/1.1\r\n",
    "GET http://h/events HTTP/1.1\r\n",
    "POST * HTTP/1.1\r\n",
    "host: h\r\n",
    "connection: close\r\n",
    "connection: upgrade\r\nupgrade: h2c\r\n",
    "transfer-encoding: chunked\r\n",
    "transfer-encoding: identity\r\n",
    "content-length: 0\r\n",
    "content-length: 18446744073709551616\r\n",
    "content-length: -1\r\n",
    "content-encoding: gzip\r\n",
    "expect: 100-continue\r\n",
    "authorization: Bearer sesame\r\n",
    "authorization: Basic sesame\r\n",
    "origin: null\r\n",
    "ce-id: 9\r\n",
    "ffffffffffffffff\r\n",
    "0\r\n\r\n",
    "5\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

/// A log that says what it was given.
struct Told(mpsc::UnboundedSender<usize>);

impl EventLog for Told {
    fn describe(&self) -> String {
        "log:told".to_owned()
    }

    fn append<'a>(&'a self, events: Vec<Event>) -> BoxFuture<'a, Result<Appended, AppendError>> {
        events.iter().for_each(assert_it_survives);
        let told = self.0.send(events.len());
        Box::pin(async move {
            told.map_err(|_| AppendError::Failed("nobody listens".to_owned()))?;
            Ok(Appended { stored: events.len() as u64, repeated: 0 })
        })
    }
}

/// Writes all of it, and reads until the other side is done with the connection. What was answered,
/// and how many events were stored.
async fn post(input: &[u8], settings: HttpSettings) -> (Vec<u8>, usize) {
    let (told, mut stored) = mpsc::unbounded_channel();
    let (near, far) = duplex(1 << 10);
    let server = tokio::spawn(converse(far, "/events", settings, Arc::new(Told(told))));
    let (mut from, mut to) = tokio::io::split(near);
    let input = input.to_vec();
    let writer = tokio::spawn(async move {
        // It may be closed meanwhile, and stays open otherwise: the other side has its times.
        let _ = to.write_all(&input).await;
        to
    });
    let mut answers = Vec::new();
    from.read_to_end(&mut answers).await.expect("a pipe in memory");
    server.await.expect("no panic").expect("settings that can be used");
    let _ = writer.await.expect("no panic");
    let mut count = 0;
    while let Some(events) = stored.recv().await {
        count += events;
    }
    (answers, count)
}

fn virtual_time() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime")
}

/// How many answers have this status.
fn answered(answers: &[u8], status: &str) -> usize {
    let text = String::from_utf8_lossy(answers);
    text.matches(&format!("HTTP/1.1 {status} ")).count()
        + text.matches(&format!("HTTP/1.0 {status} ")).count()
}

fn assert_they_are_answers(answers: &[u8]) {
    let text = std::str::from_utf8(answers).expect("answers are texts");
    assert!(text.is_empty() || text.starts_with("HTTP/1."), "{text}");
    assert_eq!(answered(answers, "500"), 0, "{text}");
}

#[test]
fn connections() {
    let runtime = virtual_time();
    let access = Some(bearer("sesame"));
    let limits = HttpSettings { max_event: MAX_EVENT, max_batch: MAX_BATCH, ..Default::default() };
    let guarded = HttpSettings { access, ..limits.clone() };
    fuzz!(POSTS, PIECES, |input| {
        for settings in [&limits, &guarded] {
            let (answers, stored) = runtime.block_on(post(input, settings.clone()));
            assert_they_are_answers(&answers);
            assert!(stored <= MAX_BATCH * answered(&answers, "202"), "stored, and not answered");
        }
    });
}

#[test]
fn connections_without_the_token() {
    let runtime = virtual_time();
    let access = Some(bearer("another"));
    let settings = HttpSettings { access, ..HttpSettings::default() };
    fuzz!(POSTS, PIECES, |input| {
        let (answers, stored) = runtime.block_on(post(input, settings.clone()));
        assert_they_are_answers(&answers);
        assert_eq!((stored, answered(&answers, "202")), (0, 0), "without the token");
    });
}

const SIGNED: &[&[u8]] = &[
    b"x-sign:sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17\n\nHello, World!",
    b"x-sign:sha256=\nx-time:1000\n\n",
    b"authorization:Bearer sesame\nX-Sign: sha256=dXEH6g6yUJ_CESIczphLijdXC211hsIsRvQ3nIsEPhc=\n\nHello, World!",
    b"authorization:Bearer\nx-time:-1\n\nx",
];

const SECRET: &str = "It's a Secret to Everybody";

fn bearer(token: &str) -> Access {
    Access::Bearer(Secret(vec![token.to_owned()]))
}

fn signature(encoding: Encoding, time: bool) -> Signature {
    let window = Duration::from_secs(5);
    let time = time.then(|| SignedTime { header: "x-time".to_owned(), tolerance: window });
    Signature {
        header: "X-Sign".to_owned(),
        secret: Secret(vec!["another".to_owned(), SECRET.to_owned()]),
        prefix: Some("sha256=".to_owned()),
        encoding,
        timestamp: time,
    }
}

#[test]
fn who_may_post() {
    fuzz!(
        SIGNED,
        &["sesame", "Bearer ", "sha256=", "x-sign:", "x-time:", "1000", "\n", "=", "\u{fc}"],
        |input| {
            let (headers, body) = split(input);
            let value = |name: &str| {
                let mut named =
                    headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
                named.next().map(|(_, value)| String::from_utf8_lossy(value).into_owned())
            };
            let now = UNIX_EPOCH + Duration::from_secs(1_000);
            let admitted = |access: &Access| admits(Some(access), &headers, &body, now) == Ok(true);
            if admitted(&bearer("sesame")) {
                let shown = value("authorization").expect("credentials");
                let (scheme, token) = shown.split_once(' ').expect("a scheme");
                assert_eq!((&*scheme.to_ascii_lowercase(), token.trim()), ("bearer", "sesame"));
            }
            for time in [false, true] {
                let access = Access::Signature(signature(Encoding::Hex, time));
                if admitted(&access) {
                    assert_it_is_signed(&value, &body, time);
                }
            }
            let _ = admitted(&Access::Signature(signature(Encoding::Base64, false)));
        }
    );
}

fn assert_it_is_signed(value: &dyn Fn(&str) -> Option<String>, body: &Bytes, time: bool) {
    let mut signed = Vec::new();
    if time {
        let time = value("x-time").expect("a time");
        let seconds: i64 = time.trim().parse().expect("seconds");
        assert!((995..=1_005).contains(&seconds), "{seconds}");
        signed.extend(time.trim().bytes().chain(*b"."));
    }
    signed.extend_from_slice(body);
    let is_good = ["another", SECRET].iter().any(|secret| {
        let tag = sign(&Key::new(HMAC_SHA256, secret.as_bytes()), &signed);
        let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        value("x-sign")
            .is_some_and(|shown| shown.trim().to_ascii_lowercase() == format!("sha256={hex}"))
    });
    assert!(is_good, "taken without a signature");
}
