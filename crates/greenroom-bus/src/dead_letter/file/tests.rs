use std::{
    fs,
    sync::mpsc,
    time::{Duration, UNIX_EPOCH},
};

use super::*;
use crate::{
    dead_letter::Reason,
    event::{Event, TRACEPARENT},
    settlement::{Settle, Settled},
};

struct Tell(mpsc::Sender<bool>);

impl Settle for Tell {
    fn settled(&self, how: Settled) {
        let _ = self.0.send(how.is_acknowledged());
    }
}

fn letter(tell: &mpsc::Sender<bool>) -> DeadLetter {
    DeadLetter {
        event: Some(Event::builder("1", "s", "t").data_json(&1.5).build().unwrap()),
        raw: None,
        reason: Reason::RetriesExhausted,
        error: "503 \"busy\"\nlater".to_owned(),
        attempts: 5,
        first_at: UNIX_EPOCH,
        last_at: UNIX_EPOCH + Duration::from_millis(1_500),
        input: "orders".into(),
        source: "file:in".into(),
        position: 7,
        pool: Some("erp".into()),
        handler: Some("prices".into()),
        key: Some("sku 7".into()),
        share: Some("acme".into()),
        replayed: None,
        rejected: Vec::new(),
        ack: Ack::new(Tell(tell.clone())),
    }
}

fn malformed(raw: Vec<u8>, tell: &mpsc::Sender<bool>) -> DeadLetter {
    let reason = Reason::Malformed;
    let (pool, handler, key, share) = (None, None, None, None);
    DeadLetter { event: None, raw: Some(raw), reason, pool, handler, key, share, ..letter(tell) }
}

#[tokio::test]
async fn d06_letters_have_exactly_the_documented_fields() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dead.ndjson");
    let (tell, told) = mpsc::channel();
    let store = FileDeadLetterStore::open(&path).unwrap();
    store.store(letter(&tell));
    store.store(malformed(b"\xff\n".to_vec(), &tell));
    store.finish().await.unwrap();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [true, true]);
    let expected = concat!(
        r#"{"event":{"specversion":"1.0","id":"1","source":"s","type":"t","data":1.5},"raw_base64":null,"#,
        r#""reason":"retries_exhausted","error":"503 \"busy\"\nlater","attempts":5,"#,
        r#""first_at":"1970-01-01T00:00:00.000Z","last_at":"1970-01-01T00:00:01.500Z","#,
        r#""input":"orders","source":"file:in","position":7,"pool":"erp","handler":"prices","#,
        r#""key":"sku 7","share":"acme","trace_id":null,"rejected_by":null}"#,
        "\n",
        r#"{"event":null,"raw_base64":"/wo=","#,
        r#""reason":"malformed","error":"503 \"busy\"\nlater","attempts":5,"#,
        r#""first_at":"1970-01-01T00:00:00.000Z","last_at":"1970-01-01T00:00:01.500Z","#,
        r#""input":"orders","source":"file:in","position":7,"pool":null,"handler":null,"#,
        r#""key":null,"share":null,"trace_id":null,"rejected_by":null}"#,
        "\n",
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
}

#[test]
fn o06_a_letter_names_the_trace_of_its_event() {
    let (tell, _told) = mpsc::channel();
    let trace_id = |traceparent: &str| {
        let event = Event::builder("1", "s", "t").extension(TRACEPARENT, traceparent).build();
        let mut json = Vec::new();
        DeadLetter { event: Some(event.unwrap()), ..letter(&tell) }.write_json(&mut json);
        serde_json::from_slice::<serde_json::Value>(&json).unwrap()["trace_id"].take()
    };
    let named = trace_id("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    assert_eq!(named, "4bf92f3577b34da6a3ce929d0e0e4736");
    assert!(trace_id("00-ab-cd-01").is_null());
}

#[tokio::test]
async fn d06_large_raw_bytes_survive() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dead.ndjson");
    let (tell, _told) = mpsc::channel();
    let raw: Vec<u8> = (0..200_001_u32).map(|n| n as u8).collect();
    let store = FileDeadLetterStore::open(&path).unwrap();
    store.store(malformed(raw.clone(), &tell));
    store.finish().await.unwrap();
    let line: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let decoded = base64::Engine::decode(
        &base64::prelude::BASE64_STANDARD,
        line["raw_base64"].as_str().unwrap(),
    );
    assert_eq!(decoded.unwrap(), raw);
}

#[tokio::test]
async fn d06_a_file_without_a_letter_is_removed_also_if_a_process_that_was_killed_has_left_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dead.ndjson");
    FileDeadLetterStore::open(&path).unwrap().finish().await.unwrap();
    assert!(!path.exists());
    fs::write(&path, "").unwrap();
    FileDeadLetterStore::open(&path).unwrap().finish().await.unwrap();
    assert!(!path.exists());
    fs::write(&path, "{}\n").unwrap();
    FileDeadLetterStore::open(&path).unwrap().finish().await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"{}\n");
}

#[tokio::test]
async fn two_stores_on_one_file_are_refused_before_either_has_a_letter() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dead.ndjson");
    let first = FileDeadLetterStore::open(&path).unwrap();
    let error = FileDeadLetterStore::open(&path).err().unwrap().to_string();
    assert!(error.contains("writes it; wait for its end"), "{error}");
    let (tell, told) = mpsc::channel();
    first.store(letter(&tell));
    first.finish().await.unwrap();
    assert_eq!(told.recv(), Ok(true));
    FileDeadLetterStore::open(&path).unwrap().finish().await.unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn letters_go_on_in_a_new_file_where_theirs_was_renamed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (dir.path().join("dead.ndjson"), dir.path().join("dead.1"));
    let (tell, told) = mpsc::channel();
    let store = FileDeadLetterStore::open(&path).unwrap();
    store.store(letter(&tell));
    assert_eq!(told.recv(), Ok(true));
    fs::rename(&path, &old).unwrap();
    store.reopen();
    store.finish().await.unwrap();
    assert_eq!(fs::read_to_string(&old).unwrap().lines().count(), 1);
    assert!(!path.exists(), "none came since");
}

#[test]
fn a_missing_directory_is_an_error_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("none/dead.ndjson");
    let error = FileDeadLetterStore::open(&path).err().unwrap().to_string();
    assert!(error.contains("none/dead.ndjson: cannot be opened"), "{error}");
}

#[tokio::test]
async fn d06_letters_are_appended_after_a_torn_one_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dead.ndjson");
    fs::write(&path, "{}\n{\"event\":nu").unwrap();
    let (tell, _told) = mpsc::channel();
    let store = FileDeadLetterStore::open(&path).unwrap();
    store.store(letter(&tell));
    store.finish().await.unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("{}\n{\"event\":{"), "{text}");
    assert_eq!(text.lines().count(), 2);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn d06_what_cannot_be_stored_is_refused() {
    let (tell, told) = mpsc::channel();
    let store = FileDeadLetterStore::open("/dev/full").unwrap();
    store.store(letter(&tell));
    assert!(store.finish().await.is_err());
    assert!(store.failure().is_some());
    assert_eq!(told.recv_timeout(Duration::from_secs(10)), Ok(false));
}

#[tokio::test]
async fn d13_what_outputs_rejected_is_in_the_letter() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dead.ndjson");
    let (tell, told) = mpsc::channel();
    let store = FileDeadLetterStore::open(&path).unwrap();
    let made = Event::builder("1-made", "s", "t").build().unwrap();
    let by = |output: &str, event| OutputRejection {
        output: output.into(),
        event,
        error: "422 \"no\"".to_owned(),
    };
    let rejected = vec![by("api", Some(made)), by("log", None)];
    store.store(DeadLetter { rejected, reason: Reason::OutputRejected, ..letter(&tell) });
    store.finish().await.unwrap();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [true]);
    let line: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!((&line["reason"], &line["event"]["id"]), (&"output_rejected".into(), &"1".into()));
    let expected = serde_json::json!([
        {
            "output": "api",
            "error": "422 \"no\"",
            "event": { "specversion": "1.0", "id": "1-made", "source": "s", "type": "t" },
        },
        { "output": "log", "error": "422 \"no\"", "event": null },
    ]);
    assert_eq!(line["rejected_by"], expected);
}

#[tokio::test]
async fn c12_a_rotated_file_of_letters_holds_each_in_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dead.ndjson");
    let (tell, told) = mpsc::channel();
    let rotate = Rotate { size: Some(1 << 20), ..Rotate::default() };
    let store = FileDeadLetterStore::rotating(&path, rotate).unwrap();
    for _ in 0..3 {
        // Written in pieces, of which each is above what the file may have.
        store.store(malformed(vec![b'x'; 3 << 20], &tell));
    }
    store.finish().await.unwrap();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [true, true, true]);
    for number in 1..=3 {
        let aside =
            fs::read_to_string(dir.path().join(format!("dead.{number:06}.ndjson"))).unwrap();
        assert_eq!((aside.matches('\n').count(), aside.ends_with("}\n")), (1, true));
    }
    assert!(!path.exists(), "it has no letter");
}
