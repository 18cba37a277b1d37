//! `greenroom store` on a log (B03).

use std::{fs, path::Path};

use greenroom_bus::{
    event::Event,
    store::log::{EventLog, LogOptions, SegmentLog},
};

use super::{code, greenroom, stderr, stdout};

fn log(path: &Path) -> (tokio::runtime::Runtime, SegmentLog) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let options = LogOptions { segment_bytes: 16 * 1024, ..LogOptions::default() };
    let log = SegmentLog::open(path, options).unwrap();
    for n in 0..100 {
        let event = Event::builder(n.to_string(), "/shop", "order").data_json(&[n]);
        runtime.block_on(log.append(vec![event.build().unwrap()])).unwrap();
    }
    drop(log.source("orders").unwrap());
    (runtime, log)
}

#[test]
fn b03_a_log_is_checked_copied_and_exported_while_it_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let (runtime, log) = log(&directory.path().join("log"));
    let checked = greenroom(directory.path(), &["store", "check", "log"]);
    let told = stdout(&checked);
    assert_eq!(code(&checked), 0, "{}", stderr(&checked));
    for part in
        ["100 events", "events 1 to 100", "consumer orders: done before event 1", "is using it"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    let copied = greenroom(directory.path(), &["store", "backup", "log", "copy"]);
    assert!(stdout(&copied).contains("up to event 100"), "{}", stderr(&copied));
    let compacted = greenroom(directory.path(), &["store", "compact", "log"]);
    assert_eq!(code(&compacted), 1);
    assert!(stderr(&compacted).contains("in use"), "{}", stderr(&compacted));
    let exported = greenroom(directory.path(), &["store", "export", "copy"]);
    let lines = stdout(&exported);
    assert_eq!(lines.lines().count(), 100);
    let event = Event::parse(lines.lines().nth(41).unwrap().as_bytes()).unwrap();
    assert_eq!(event.id(), "41");
    runtime.block_on(log.close());
}

#[test]
fn b03_a_damaged_log_is_told_with_its_place_and_what_is_whole_is_exported() {
    let directory = tempfile::tempdir().unwrap();
    let (runtime, log) = log(&directory.path().join("log"));
    runtime.block_on(log.close());
    drop(log);
    let segment = directory.path().join("log/00000000000000000001.segment");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[200] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let checked = greenroom(directory.path(), &["store", "check", "log"]);
    assert_eq!(code(&checked), 1);
    let told = stderr(&checked);
    for part in
        ["00000000000000000001.segment: damaged at byte ", "from event 2 on", "store export"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    let exported = greenroom(directory.path(), &["store", "export", "log"]);
    assert_eq!((code(&exported), stdout(&exported).lines().count()), (1, 99));
}

#[test]
fn b03_compaction_forgets_a_consumer_and_removes_what_only_it_needed() {
    let directory = tempfile::tempdir().unwrap();
    let (runtime, log) = log(&directory.path().join("log"));
    runtime.block_on(log.close());
    drop(log);
    let kept = greenroom(directory.path(), &["store", "compact", "log"]);
    assert!(stdout(&kept).contains("0 segments removed"), "{}", stdout(&kept));
    let unknown = greenroom(directory.path(), &["store", "compact", "log", "--forget", "nobody"]);
    assert!(stderr(&unknown).contains("is not known"), "{}", stderr(&unknown));
    let none = greenroom(directory.path(), &["store", "compact", "log", "--forget", "orders"]);
    assert!(stdout(&none).contains("no consumer has read it yet"), "{}", stdout(&none));
}

#[test]
fn b03_what_is_no_store_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let output = greenroom(directory.path(), &["store", "check", "."]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("not a store of greenroom"), "{}", stderr(&output));
}

#[test]
fn a_store_of_dead_letters_is_checked_copied_and_compacted() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("greenroom.yaml"),
        "inputs: { i: { generator: { count: 3 } } }\nhandlers: { h: { on: other, pass: } }\ndead_letters: { store: { path: letters } }\n",
    )
    .unwrap();
    let ran = greenroom(directory.path(), &["run", "greenroom.yaml"]);
    assert_eq!(code(&ran), 0, "{ran:?}");
    for words in [
        &["store", "check", "letters"][..],
        &["store", "backup", "letters", "copy"],
        &["store", "check", "copy"],
        &["store", "compact", "letters"],
    ] {
        let told = greenroom(directory.path(), words);
        assert_eq!(code(&told), 0, "{words:?}: {told:?}");
        let text = stdout(&told);
        assert!(words[1] != "check" || text.contains("3 dead letters"), "{text}");
    }
    let told = greenroom(directory.path(), &["store", "export", "letters"]);
    let text = stderr(&told);
    assert!(text.contains("greenroom dead-letters export --store letters"), "{text}");
}
