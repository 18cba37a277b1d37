//! Z12: lines that are no events. Never a panic, never a source that stops,
//! and the raw bytes are kept.

use std::io::Write;

use greenroom_bus::{
    dead_letter::Reason,
    engine::{HandlerConfig, RunReport},
    event::http,
    source::{
        file::{FileSource, FileSourceOptions},
        generator::zipf::Chance,
    },
};

use super::seeds;
use crate::engine::support::{Bench, handlers::pass, letters::Letter, on};

/// Runs these lines through an engine that needs a key.
async fn through(lines: &[Vec<u8>]) -> (RunReport, Vec<Letter>) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for line in lines {
        file.write_all(line).unwrap();
        file.write_all(b"\n").unwrap();
    }
    let source = FileSource::open(file.path(), FileSourceOptions::default()).unwrap();
    let handler = HandlerConfig { key_required: true, ..on(&["**"], pass()) };
    let bench = Bench::new().set(|engine| engine.input(Box::new(source)).handler("h", handler));
    let letters = bench.letters.clone();
    let report = bench.run().await;
    assert!(report.errors.is_empty(), "{report:?}");
    (report, letters.stored())
}

fn good(n: usize) -> Vec<u8> {
    format!(
        r#"{{"specversion":"1.0","id":"{n}","source":"/s","type":"t","subject":"s{}","data":{{"n":{n},"text":"grün"}}}}"#,
        n % 7
    )
    .into_bytes()
}

/// The line with something wrong with it, or not: some changes leave an event.
fn damaged(mut line: Vec<u8>, chance: &mut Chance) -> Vec<u8> {
    let at = chance.below(line.len());
    // Never a line feed or a carriage return: those are no part of a line.
    let byte = 32 + chance.below(224) as u8;
    match chance.below(6) {
        0 => line.truncate(at),
        1 => line[at] = byte,
        2 => line.insert(at, byte),
        3 => drop(line.remove(at)),
        4 => line = (0..at).map(|_| 32 + chance.below(224) as u8).collect(),
        _ => line.extend_from_within(at..),
    }
    line
}

#[tokio::test]
async fn z12_damaged_lines_are_dead_letters_with_their_bytes_and_stop_nothing() {
    for seed in seeds() {
        let mut chance = Chance::new(seed);
        let lines: Vec<Vec<u8>> = (0..2_000)
            .map(|n| if n % 2 == 0 { good(n) } else { damaged(good(n), &mut chance) })
            .collect();
        let (report, letters) = through(&lines).await;
        let blank = lines.iter().filter(|line| line.trim_ascii().is_empty()).count() as u64;
        assert_eq!(report.taken + blank, 2_000, "seed {seed}");
        assert!(report.handled >= 1_000, "seed {seed}: {report:?}");
        assert_eq!(report.handled + report.dead_lettered, report.taken, "seed {seed}");
        assert!(letters.iter().filter(|letter| letter.reason == Reason::Malformed).count() > 300);
        for letter in letters.iter().filter(|letter| letter.reason == Reason::Malformed) {
            let line = &lines[letter.position as usize - 1];
            assert_eq!(letter.raw.as_ref(), Some(line), "seed {seed}: {}", letter.error);
        }
    }
}

#[tokio::test]
async fn z12_each_kind_of_what_is_no_event_is_told_with_its_reason() {
    let no_key = br#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;
    let malformed: [&[u8]; 9] = [
        b"{\"specversion\":\"1.0\",\"id\":",
        b"null",
        b"\"\"",
        b"{}",
        b"[]",
        b"0",
        b"x\0\0\0",
        b"\xff\xfe",
        b"{\"specversion\":\"1.0\",\"id\":\"\xff\",\"source\":\"/s\",\"type\":\"t\"}",
    ];
    let lines: Vec<Vec<u8>> =
        malformed.iter().copied().chain([&no_key[..]]).map(<[u8]>::to_vec).collect();
    let (report, letters) = through(&lines).await;
    assert_eq!((report.taken, report.dead_lettered), (10, 10));
    let mut letters = letters;
    letters.sort_by_key(|letter| letter.position);
    for (letter, raw) in letters.iter().zip(malformed) {
        assert_eq!((letter.reason, letter.raw.as_deref()), (Reason::Malformed, Some(raw)));
        assert!(!letter.error.is_empty());
    }
    let no_key = &letters[9];
    assert_eq!((no_key.reason, no_key.event.as_ref().unwrap().id()), (Reason::KeyMissing, "1"));
}

#[test]
fn z12_headers_of_any_bytes_never_panic() {
    let names = ["ce-specversion", "ce-id", "ce-source", "ce-type", "ce-subject", "content-type"];
    for seed in seeds() {
        let mut chance = Chance::new(seed);
        let mut refused = 0;
        for _ in 0..5_000 {
            let values: Vec<Vec<u8>> = names
                .iter()
                .map(|name| {
                    let mut value =
                        if *name == "ce-specversion" { b"1.0".to_vec() } else { b"a%20b".to_vec() };
                    if chance.below(6) == 0 {
                        value.insert(chance.below(value.len()), chance.below(256) as u8);
                    }
                    value
                })
                .collect();
            let headers: Vec<(&str, &[u8])> =
                names.iter().copied().zip(values.iter().map(Vec::as_slice)).collect();
            let body = vec![b'{'; chance.below(3)].into();
            refused += usize::from(http::read(&headers, &body).is_err());
        }
        assert!(refused > 1_000, "seed {seed}: {refused} refused");
    }
}
