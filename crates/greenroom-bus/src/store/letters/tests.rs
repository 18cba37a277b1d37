use std::{
    path::{Path, PathBuf},
    sync::mpsc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use super::*;
use crate::{
    dead_letter::{
        DeadLetter, DeadLetterStore, OutputRejection, Reason,
        replay::{ReplayEnd, Replays},
    },
    event::{Event, TRACEPARENT},
    settlement::{Ack, Settle, Settled},
};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

struct Tell(mpsc::Sender<bool>);

impl Settle for Tell {
    fn settled(&self, how: Settled) {
        let _ = self.0.send(how.is_acknowledged());
    }
}

/// A directory, and who hears how letters were settled.
struct Desk {
    _directory: tempfile::TempDir,
    path: PathBuf,
    tell: mpsc::Sender<bool>,
    told: mpsc::Receiver<bool>,
}

impl Desk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (tell, told) = mpsc::channel();
        Self { path: directory.path().join("letters"), _directory: directory, tell, told }
    }

    fn open(&self) -> LetterStore {
        LetterStore::open(&self.path, LetterStoreOptions::default()).unwrap()
    }

    fn letters(&self) -> Letters {
        Letters::open(&self.path).unwrap()
    }

    fn letter(&self, id: &str, error: &str) -> DeadLetter {
        let event =
            Event::builder(id, "/shop", "order").subject("k").data_json(&json!({"card": 4}));
        DeadLetter {
            event: Some(event.build().unwrap()),
            raw: None,
            reason: Reason::RetriesExhausted,
            error: error.to_owned(),
            attempts: 5,
            first_at: UNIX_EPOCH,
            last_at: SystemTime::now(),
            input: "orders".into(),
            source: "file:in".into(),
            position: 7,
            pool: Some("erp".into()),
            handler: Some("prices".into()),
            key: Some("k".into()),
            share: Some("acme".into()),
            replayed: None,
            rejected: Vec::new(),
            ack: Ack::new(Tell(self.tell.clone())),
        }
    }

    fn malformed(&self, raw: Vec<u8>) -> DeadLetter {
        let (reason, event) = (Reason::Malformed, None);
        DeadLetter {
            event,
            raw: Some(raw),
            reason,
            handler: None,
            pool: None,
            key: None,
            share: None,
            ..self.letter("x", "no event")
        }
    }

    /// Stores it, and waits until it is.
    fn put(&self, store: &LetterStore, letter: DeadLetter) {
        store.store(letter);
        assert!(self.told.recv_timeout(PATIENCE).unwrap(), "it is confirmed");
    }
}

fn all(letters: &Letters) -> Vec<Summary> {
    letters.list(&Filter::default(), Order::Oldest, 0, 1_000).unwrap().0
}

fn export(letters: &Letters, filter: &Filter) -> Vec<Value> {
    let mut out = Vec::new();
    letters.export(filter, &mut out).unwrap();
    String::from_utf8(out)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn shown(letters: &Letters, letter: u64) -> Value {
    let mut out = Vec::new();
    assert!(letters.write(letter, &mut out).unwrap());
    serde_json::from_slice(&out).unwrap()
}

#[tokio::test]
async fn d06_a_stored_letter_has_every_field_of_the_file_and_its_own() {
    let desk = Desk::new();
    let store = desk.open();
    let made = Event::builder("m", "/shop", "made").build().unwrap();
    let rejected =
        vec![OutputRejection { output: "erp".into(), event: Some(made), error: "413".to_owned() }];
    desk.put(&store, DeadLetter { rejected, ..desk.letter("1", "503 after 12 ms") });
    desk.put(&store, desk.malformed(b"\xff{nonsense".to_vec()));
    let found = export(&desk.letters(), &Filter::default());
    assert_eq!(found.len(), 2);
    let names: Vec<_> = found[0].as_object().unwrap().keys().cloned().collect();
    for name in [
        "event",
        "raw_base64",
        "reason",
        "error",
        "attempts",
        "first_at",
        "last_at",
        "input",
        "source",
        "position",
        "pool",
        "handler",
        "trace_id",
        "rejected_by",
        "number",
        "state",
        "key",
        "share",
        "group",
        "replays",
        "edited",
        "refused",
        "original",
    ] {
        assert!(names.contains(&name.to_owned()), "{name}");
    }
    assert_eq!(names.len(), 23);
    assert_eq!(found[0]["event"]["data"], json!({"card": 4}));
    assert_eq!(found[0]["rejected_by"][0]["event"]["id"], "m");
    assert_eq!(
        (&found[0]["key"], &found[0]["share"], &found[0]["first_at"]),
        (&json!("k"), &json!("acme"), &json!("1970-01-01T00:00:00.000Z"))
    );
    assert_eq!(
        (&found[1]["event"], &found[1]["raw_base64"]),
        (&json!(null), &json!("/3tub25zZW5zZQ=="))
    );
    let list = all(&desk.letters());
    assert_eq!(list[0].rejected_by[0].output, "erp");
    assert!(list[1].raw && !list[0].raw);
    store.finish().await.unwrap();
}

#[tokio::test]
async fn d06_letters_are_there_after_a_restart_and_their_numbers_are_not_used_again() {
    let desk = Desk::new();
    let store = desk.open();
    desk.put(&store, desk.letter("1", "x"));
    desk.put(&store, desk.letter("2", "x"));
    store.drop_letters(Filter::only([2])).await.unwrap();
    drop(store);
    let store = desk.open();
    desk.put(&store, desk.letter("3", "x"));
    let numbers: Vec<_> = all(&desk.letters()).iter().map(|letter| letter.number).collect();
    assert_eq!(numbers, [1, 3]);
}

#[test]
fn d06_a_second_daemon_is_refused_with_who_has_the_store() {
    let desk = Desk::new();
    let _store = desk.open();
    let Err(error) = LetterStore::open(&desk.path, LetterStoreOptions::default()) else {
        panic!("two have it")
    };
    let LetterError::NotOpened { is_held, reason, .. } = &error else { panic!("{error}") };
    assert!(*is_held && reason.contains("writes it"), "{error}");
    assert!(Letters::open(&desk.path).is_ok(), "who reads is let in");
}

#[tokio::test]
async fn d06_a_letter_of_any_size_is_stored_and_shown_whole() {
    let desk = Desk::new();
    let store = desk.open();
    let raw: Vec<u8> = (0..17 << 20).map(|at: u32| at as u8).collect();
    desk.put(&store, desk.malformed(raw.clone()));
    let text = "ü".repeat(9 << 20);
    let event = Event::builder("big", "/s", "t").data_json(&text).build().unwrap();
    desk.put(&store, DeadLetter { event: Some(event), ..desk.letter("x", &"e".repeat(1 << 20)) });
    let letters = desk.letters();
    let base64 = shown(&letters, 1)["raw_base64"].as_str().unwrap().to_owned();
    let mut whole = Vec::new();
    crate::event::write_bare_base64(&raw, &mut whole);
    assert!(base64.as_bytes() == whole);
    assert!(shown(&letters, 2)["event"]["data"] == json!(text));
    let list = serde_json::to_string(&all(&letters)).unwrap();
    assert!(list.len() < 5_000, "a list cuts long texts: {}", list.len());
    assert!(letters.totals(&Filter::default()).unwrap().bytes > 35 << 20);
    store.finish().await.unwrap();
}

#[test]
fn d06_texts_of_any_kind_are_kept_and_filters_are_no_sql() {
    let desk = Desk::new();
    let store = desk.open();
    let nasty =
        ["a'; DROP TABLE letters; --", "日本語", "\u{1b}[31mred", "nul\0nul", "%", "\"", ""];
    for text in nasty {
        let letter = desk.letter("1", text);
        desk.put(
            &store,
            DeadLetter {
                key: Some(text.into()),
                share: Some(text.into()),
                handler: Some(text.into()),
                ..letter
            },
        );
    }
    let letters = desk.letters();
    for text in nasty {
        let filter = Filter {
            key: Some(text.to_owned()),
            share: Some(text.to_owned()),
            handler: Some(text.to_owned()),
            ..Filter::default()
        };
        let found = letters.list(&filter, Order::Oldest, 0, 10).unwrap().0;
        assert_eq!((found.len(), &*found[0].error), (1, text));
    }
    for injected in ["' OR '1'='1", "1); DELETE FROM letters; --", "k' --"] {
        let texts = || Some(injected.to_owned());
        let filter = Filter {
            reason: texts(),
            pool: texts(),
            group: texts(),
            input: texts(),
            ..Filter::default()
        };
        assert_eq!(letters.totals(&filter).unwrap().letters, 0);
    }
    assert_eq!(letters.totals(&Filter::default()).unwrap().letters, nasty.len() as u64);
}

#[test]
fn d06_letters_are_grouped_by_error_reason_and_handler() {
    let desk = Desk::new();
    let store = desk.open();
    for n in 0..5 {
        desk.put(&store, desk.letter("1", &format!("503 after {n} ms")));
    }
    desk.put(
        &store,
        DeadLetter { handler: Some("other".into()), ..desk.letter("1", "404 after 3 ms") },
    );
    desk.put(&store, desk.malformed(b"x".to_vec()));
    let letters = desk.letters();
    let counts = |by| -> Vec<u64> {
        letters.groups(&Filter::default(), by).unwrap().iter().map(|group| group.letters).collect()
    };
    assert_eq!(counts(By::Group), [5, 1, 1]);
    assert_eq!(counts(By::Reason), [6, 1]);
    assert_eq!(counts(By::Handler), [5, 1, 1]);
    let first = &letters.groups(&Filter::default(), By::Group).unwrap()[0];
    assert_eq!((&*first.error, first.handler.as_deref()), ("503 after 4 ms", Some("prices")));
    let filter = Filter { group: first.name.clone(), ..Filter::default() };
    assert_eq!(letters.totals(&filter).unwrap().letters, 5);
    let (page, more) = letters.list(&filter, Order::Oldest, 2, 2).unwrap();
    assert_eq!((page[0].number, page.len(), more), (3, 2, true));
}

#[tokio::test]
async fn d06_retention_removes_the_oldest_and_never_what_is_to_be_replayed() {
    let desk = Desk::new();
    let store = desk.open();
    let day = Duration::from_secs(86_400);
    for _ in 0..2 {
        let last_at = SystemTime::now() - 3 * day;
        desk.put(&store, DeadLetter { last_at, ..desk.letter("old", "x") });
    }
    desk.put(&store, desk.letter("new", "x"));
    assert_eq!(store.mark(Filter::only([2]), None).await.unwrap().letters, 1);
    drop(store);
    let options = LetterStoreOptions { age: Some(day), ..LetterStoreOptions::default() };
    let store = LetterStore::open(&desk.path, options).unwrap();
    let _ = store.change_replay(99, JobChange::Stop).await;
    let left: Vec<_> = all(&desk.letters()).iter().map(|letter| letter.number).collect();
    assert_eq!((left, store.removed()), (vec![2, 3], 1));
    assert!(store.remark().unwrap().contains("1 letter removed"));
    drop(store);
    let options = LetterStoreOptions { size: Some(1_000), ..LetterStoreOptions::default() };
    let store = LetterStore::open(&desk.path, options).unwrap();
    for _ in 0..10 {
        desk.put(&store, desk.letter("more", &"e".repeat(200)));
    }
    let _ = store.change_replay(99, JobChange::Stop).await;
    let totals = desk.letters().totals(&Filter::default()).unwrap();
    assert!(totals.bytes <= 1_500 && totals.letters >= 2, "{totals:?}");
    assert_eq!(totals.removed, 1 + store.removed());
    assert_eq!(all(&desk.letters())[0].number, 2, "it is to be replayed");
}

#[tokio::test]
async fn d06_an_edit_keeps_the_original_and_malformed_bytes_become_an_event() {
    let desk = Desk::new();
    let store = desk.open();
    desk.put(&store, desk.letter("1", "x"));
    desk.put(&store, desk.malformed(b"{broken".to_vec()));
    let event = |id: &str| Event::builder(id, "/edited", "order").build().unwrap();
    assert_eq!(store.mark(Filter::default(), None).await.unwrap().without_event, 1);
    let job = store.mark(Filter::default(), None).await.unwrap();
    assert_eq!((job.replay, job.marked_before), (None, 1));
    for id in ["1a", "1b"] {
        store.edit(Edit { letter: 1, event: event(id) }).await.unwrap();
    }
    store.edit(Edit { letter: 2, event: event("2a") }).await.unwrap();
    let missing = store.edit(Edit { letter: 9, event: event("9") }).await;
    assert_eq!(missing, Err(LetterError::NoLetter(9)));
    let letters = desk.letters();
    let first = shown(&letters, 1);
    assert_eq!((&first["event"]["id"], &first["original"]["id"]), (&json!("1b"), &json!("1")));
    assert_eq!(first["edited"], 2);
    let second = shown(&letters, 2);
    assert_eq!(
        (&second["event"]["id"], &second["raw_base64"]),
        (&json!("2a"), &json!("e2Jyb2tlbg=="))
    );
    assert_eq!(
        store.mark(Filter::only([2]), None).await.unwrap().letters,
        1,
        "it has an event now"
    );
}

#[tokio::test]
async fn c04_a_replay_is_taken_ended_stopped_and_taken_up_by_the_next_start() {
    let desk = Desk::new();
    let store = desk.open();
    for id in ["1", "2", "3", "4"] {
        desk.put(&store, desk.letter(id, "x"));
    }
    let marked = store.mark(Filter::default(), Some(10.0)).await.unwrap();
    let job = marked.replay.unwrap();
    store.marked().await;
    let taken = store.take(10, 1 << 20).await.unwrap();
    assert_eq!((taken.letters.len(), taken.rate), (1, Some(10.0)), "a tenth of a second's");
    assert_eq!(taken.letters[0].event.id(), "1");
    store.change_replay(job, JobChange::Stop).await.unwrap();
    assert!(store.take(10, 1 << 20).await.unwrap().letters.is_empty(), "it is stopped");
    let in_replay = store.edit(Edit { letter: 1, event: taken.letters[0].event.clone() }).await;
    assert_eq!(in_replay, Err(LetterError::InReplay(1)));
    assert_eq!(
        store.drop_letters(Filter::only([1])).await.unwrap(),
        Dropped { letters: 0, in_replay: 1 }
    );
    drop(store);
    let store = desk.open();
    assert_eq!(store.recovered(), 1, "the replay of one may be repeated");
    assert!(store.take(10, 1 << 20).await.unwrap().letters.is_empty(), "it is stopped still");
    store.change_replay(job, JobChange::Resume).await.unwrap();
    let again = store.take(10, 1 << 20).await.unwrap().letters.remove(0);
    assert_eq!((again.replayed.letter, again.replayed.round), (1, 2));
    store.ended(taken.letters[0].replayed, ReplayEnd::Settled);
    store.ended(again.replayed, ReplayEnd::Refused("no handler".to_owned()));
    let second = store.take(1, 1).await.unwrap().letters.remove(0);
    store.ended(second.replayed, ReplayEnd::Settled);
    let third = store.take(1, 1).await.unwrap().letters.remove(0);
    store.ended(third.replayed, ReplayEnd::GivenBack);
    let found = store.change_replay(job, JobChange::Cancel).await.unwrap();
    assert_eq!((found.settled, found.refused, found.waiting, found.state), (1, 1, 0, "done"));
    let letters = all(&desk.letters());
    let states: Vec<_> = letters.iter().map(|letter| (letter.number, letter.state)).collect();
    assert_eq!(states, [(1, "stored"), (3, "stored"), (4, "stored")]);
    assert_eq!(
        letters[0].refused.as_deref(),
        Some("no handler"),
        "an end of an earlier round counts for nothing"
    );
}

#[tokio::test]
async fn c04_a_store_that_can_store_nothing_says_so_instead_of_having_no_letter() {
    let desk = Desk::new();
    let store = desk.open();
    desk.put(&store, desk.letter("1", "x"));
    store.mark(Filter::default(), None).await.unwrap();
    store.finish().await.unwrap();
    let error = store.take(10, 1 << 20).await.unwrap_err();
    assert!(error.sink.starts_with("letters:") && error.reason.contains("closed"), "{error}");
}

#[tokio::test]
async fn d06_a_replay_that_fails_is_the_same_letter_with_its_new_error() {
    let desk = Desk::new();
    let store = desk.open();
    desk.put(&store, desk.letter("1", "first"));
    store.mark(Filter::default(), None).await.unwrap();
    let taken = store.take(10, 1 << 20).await.unwrap().letters.remove(0);
    let replayed = Some(taken.replayed);
    desk.put(&store, DeadLetter { replayed, attempts: 3, ..desk.letter("1", "second") });
    store.ended(taken.replayed, ReplayEnd::Settled);
    // Another handler of the same event fails as well: that is a letter of its own.
    desk.put(&store, DeadLetter { replayed, ..desk.letter("1", "third") });
    let letters = all(&desk.letters());
    assert_eq!(letters.len(), 2);
    let first = &letters[0];
    assert_eq!((first.number, &*first.error, first.attempts, first.replays), (1, "second", 3, 1));
    assert_eq!(first.first_at, "1970-01-01T00:00:00.000Z", "when it failed first stays");
    let job = &desk.letters().replays().unwrap()[0];
    assert_eq!((job.failed, job.settled, job.state), (1, 0, "done"));
}

#[tokio::test]
async fn d06_masked_places_are_shown_nowhere_unless_somebody_asks() {
    let desk = Desk::new();
    let mask = Mask::new(&["/data/card", "/subject"]).unwrap();
    let options = LetterStoreOptions { mask, ..LetterStoreOptions::default() };
    let store = LetterStore::open(&desk.path, options).unwrap();
    desk.put(&store, desk.letter("1", "x"));
    desk.put(&store, desk.malformed(b"card=4".to_vec()));
    let event = Event::parse(
        br#"{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"card":5}}"#,
    );
    store.edit(Edit { letter: 1, event: event.unwrap() }).await.unwrap();
    let letters = desk.letters();
    let first = shown(&letters, 1);
    assert_eq!(first["event"]["data"], json!({"card": "***"}));
    assert_eq!(first["original"]["data"], json!({"card": "***"}));
    assert_eq!(shown(&letters, 2)["raw_base64"], "***");
    for letter in [1, 2] {
        assert_eq!(letters.content(letter), Err(LetterError::Masked(letter)));
    }
    assert!(letters.unmasked().content(2).is_ok_and(|letter| !letter.is_event));
    drop(store);
    let offline = LetterStore::open_offline(&desk.path).unwrap();
    assert_eq!(
        shown(&desk.letters(), 1)["event"]["data"]["card"],
        "***",
        "the store knows its mask"
    );
    assert_eq!(shown(&desk.letters().unmasked(), 1)["event"]["data"]["card"], 5);
    drop(offline);
}

#[test]
fn d06_errors_repeat_what_is_masked_unless_that_is_asked_for() {
    let mask = Mask::new(&["/data/card"]).unwrap();
    let event = Event::builder("1", "/s", "t").data_json(&json!({"card": "4711 0815"})).build();
    let (event, error) = (event.unwrap(), || "no card 4711 0815".to_owned());
    for (mask_errors, told) in [(false, "no card 4711 0815"), (true, "no card ***")] {
        let (desk, mask) = (Desk::new(), mask.clone());
        let options = LetterStoreOptions { mask, mask_errors, ..LetterStoreOptions::default() };
        let store = LetterStore::open(&desk.path, options).unwrap();
        assert_eq!(store.redact(&event, error()), told);
    }
}

#[tokio::test]
async fn o06_a_letter_names_the_trace_of_its_event_also_once_that_is_edited() {
    let desk = Desk::new();
    let mask = Mask::new(&["/traceparent"]).unwrap();
    let options = LetterStoreOptions { mask, ..LetterStoreOptions::default() };
    let store = LetterStore::open(&desk.path, options).unwrap();
    let traced = |digit: &str| {
        let parent = format!("00-{}-00f067aa0ba902b7-01", digit.repeat(32));
        Event::builder("1", "/s", "t").extension(TRACEPARENT, parent).build().unwrap()
    };
    desk.put(&store, DeadLetter { event: Some(traced("a")), ..desk.letter("1", "x") });
    desk.put(&store, desk.letter("2", "x"));
    let trace_ids = |letters: &Letters| {
        let ids = [1, 2].map(|letter| shown(letters, letter)["trace_id"].take());
        let listed = all(letters).into_iter().map(|letter| json!(letter.trace_id));
        assert!(listed.eq(ids.clone()), "a list and a letter say the same");
        ids
    };
    assert_eq!(trace_ids(&desk.letters().unmasked()), [json!("a".repeat(32)), json!(null)]);
    assert_eq!(trace_ids(&desk.letters()), [json!("***"), json!(null)]);
    store.edit(Edit { letter: 1, event: traced("b") }).await.unwrap();
    assert_eq!(trace_ids(&desk.letters().unmasked())[0], "b".repeat(32));
}

/// No page more than there are: what a full disk does to a database.
async fn fill(store: &LetterStore, full: bool) {
    store
        .ask(move |tables| {
            let pages: i64 = tables.pragma_query_value(None, "page_count", |row| row.get(0))?;
            let most = if full { pages } else { 1 << 30 };
            tables.pragma_update_and_check(None, "max_page_count", most, |row| {
                row.get::<_, i64>(0)
            })?;
            Ok(())
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn z03_letters_that_find_no_room_wait_and_their_events_stay_open() {
    let desk = Desk::new();
    let store = desk.open();
    desk.put(&store, desk.letter("1", "x"));
    fill(&store, true).await;
    store.store(desk.letter("2", &"e".repeat(50_000)));
    store.store(desk.malformed(vec![0; 1 << 20]));
    while store.trouble().is_none_or(|trouble| !trouble.paused) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let trouble = store.trouble().unwrap();
    assert!(
        trouble.error.contains("letters wait") && trouble.error.contains("disk is full"),
        "{trouble:?}"
    );
    assert!(!desk.path.join("reserve").exists(), "the reserve was given back first");
    assert!(desk.told.try_recv().is_err(), "nothing is settled");
    assert!(store.failure().is_none(), "it tries again");
    assert_eq!(all(&desk.letters()).len(), 1, "what is there can be read");
    fill(&store, false).await;
    for _ in 0..2 {
        assert!(desk.told.recv_timeout(PATIENCE).unwrap());
    }
    assert_eq!(all(&desk.letters()).len(), 3);
    store.finish().await.unwrap();
}

#[tokio::test]
async fn d06_letters_are_dropped_on_a_full_disk_with_the_room_that_was_kept() {
    let desk = Desk::new();
    let store = desk.open();
    desk.put(&store, desk.letter("1", "x"));
    fill(&store, true).await;
    // A change that needs room as long as the reserve takes it.
    let reserve = desk.path.join("reserve");
    let change = move |tables: &rusqlite::Transaction<'_>| {
        if reserve.exists() {
            tables.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(1000000))")?;
        }
        Ok(tables.execute("DELETE FROM letters", [])?)
    };
    assert_eq!(store.ask_with_reserve(change).await, Ok(1));
    let trouble = store.trouble().unwrap();
    assert!(!trouble.paused && trouble.error.contains("the disk is full"), "{trouble:?}");
    assert_eq!(all(&desk.letters()).len(), 0);
    // With nothing kept, it is said what is to be done.
    let large = |tables: &rusqlite::Transaction<'_>| {
        tables.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(1000000))")?;
        Ok(())
    };
    let full = store.ask_with_reserve(large).await.unwrap_err();
    assert!(matches!(&full, LetterError::Full(why) if why.contains("make room")), "{full}");
    store.finish().await.unwrap();
}

#[tokio::test]
async fn d06_the_reserve_of_a_store_that_somebody_has_is_left_alone() {
    let desk = Desk::new();
    let store = desk.open();
    let reserve = desk.path.join("reserve");
    assert!(!give_reserve_back(&desk.path) && reserve.exists());
    store.finish().await.unwrap();
    drop(store);
    assert!(give_reserve_back(&desk.path) && !reserve.exists());
    assert!(!give_reserve_back(&desk.path), "there is none any more");
    drop(LetterStore::open_offline(&desk.path).unwrap());
    assert!(reserve.exists(), "it is kept again");
}

#[tokio::test]
async fn z03_what_found_no_room_by_the_end_is_refused() {
    let desk = Desk::new();
    let store = desk.open();
    fill(&store, true).await;
    store.store(desk.malformed(vec![0; 1 << 20]));
    let error = store.finish().await.unwrap_err().to_string();
    assert!(error.contains("1 letter not stored") && error.contains("make room"), "{error}");
    assert!(!desk.told.recv_timeout(PATIENCE).unwrap(), "its event is delivered again");
    drop(store);
    assert!(all(&desk.letters()).is_empty());
}

#[test]
fn d06_a_store_that_cannot_be_made_is_refused_in_words() {
    let desk = Desk::new();
    let nowhere = desk.path.join("no").join("such");
    let Err(error) = LetterStore::open(&nowhere, LetterStoreOptions::default()) else { panic!() };
    assert!(error.to_string().contains("No such file"), "{error}");
    let Err(error) = Letters::open(Path::new("/nonexistent")).map(|_| ()) else { panic!() };
    assert!(error.to_string().contains("there is no store"), "{error}");
}

#[tokio::test]
async fn b03_a_store_is_checked_copied_and_compacted() {
    let desk = Desk::new();
    let store = desk.open();
    for _ in 0..20 {
        desk.put(&store, desk.malformed(vec![7; 100_000]));
    }
    let copy = desk.path.with_file_name("copy");
    backup(&desk.path, &copy).unwrap();
    let there = backup(&desk.path, &copy).unwrap_err().to_string();
    assert!(there.contains("name a directory that does not exist yet"), "{there}");
    assert_eq!(check(&desk.path).unwrap(), Checked { letters: 20, damage: Vec::new() });
    assert!(matches!(compact(&desk.path), Err(LetterError::NotOpened { is_held: true, .. })));
    store.drop_letters(Filter { upto: Some(19), ..Filter::default() }).await.unwrap();
    store.finish().await.unwrap();
    drop(store);
    let (before, after) = compact(&desk.path).unwrap();
    assert!(after < before / 5, "{before} {after}");
    assert_eq!(check(&desk.path).unwrap().letters, 1);
    let store = LetterStore::open(&copy, LetterStoreOptions::default()).unwrap();
    assert_eq!(Letters::open(&copy).unwrap().totals(&Filter::default()).unwrap().letters, 20);
    assert!(is_letter_store(&copy) && !is_letter_store(copy.parent().unwrap()));
    drop(store);
    let database = copy.join("letters.db");
    let mut bytes = std::fs::read(&database).unwrap();
    bytes[40_000..120_000].fill(0xff);
    std::fs::write(&database, bytes).unwrap();
    assert!(check(&copy).is_err() || !check(&copy).unwrap().damage.is_empty());
    assert!(check(&desk.path.with_file_name("none")).is_err());
}
