use std::time::Duration;

use super::{
    super::{Appended, EventLog, LogOptions, sim_disk::SimDisk},
    support::*,
};

const fn counts(stored: u64, repeated: u64) -> Appended {
    Appended { stored, repeated }
}

#[tokio::test]
async fn d14_an_event_that_is_posted_again_is_stored_once() {
    let log = open(&SimDisk::new(1), small());
    assert_eq!(append(&log, 0..3).await, counts(3, 0));
    assert_eq!(append(&log, 2..5).await, counts(2, 1));
    let twice = vec![event("7"), event("7"), event("8")];
    assert_eq!(log.append(twice).await.unwrap(), counts(2, 1), "within one append, too");
    let ids: Vec<_> = read_all(&log).await.into_iter().map(|item| item.1).collect();
    assert_eq!(ids, ["0", "1", "2", "3", "4", "7", "8"]);
}

#[tokio::test]
async fn d14_the_same_id_of_another_source_is_another_event() {
    let log = open(&SimDisk::new(1), small());
    let of = |source: &'static str, id: &'static str| {
        crate::event::Event::builder(id, source, "test").build().unwrap()
    };
    let all = vec![of("/a", "1"), of("/b", "1"), of("/a1", "x"), of("/a", "1x")];
    assert_eq!(log.append(all).await.unwrap(), counts(4, 0));
}

#[tokio::test]
async fn d14_a_repeat_waits_until_the_first_is_durable() {
    let disk = SimDisk::new(1);
    let log = open(&disk, small());
    disk.hold_syncs();
    let first = tokio::spawn({
        let log = log.clone();
        async move { append(&log, 0..1).await }
    });
    tokio::task::spawn_blocking({
        let disk = disk.clone();
        move || disk.until_sync_is_held()
    })
    .await
    .unwrap();
    let mut repeat = tokio::spawn({
        let log = log.clone();
        async move { append(&log, 0..1).await }
    });
    let early = tokio::time::timeout(Duration::from_millis(20), &mut repeat).await;
    assert!(early.is_err(), "it was answered before anything was durable");
    disk.release_syncs();
    assert_eq!(first.await.unwrap(), counts(1, 0));
    assert_eq!(repeat.await.unwrap(), counts(0, 1));
}

#[tokio::test]
async fn d14_a_post_that_is_repeated_after_a_crash_is_one_event() {
    let disk = SimDisk::new(1);
    let log = open(&disk, small());
    for n in 0..10 {
        append(&log, n * 10..n * 10 + 10).await;
    }
    let log = open(&disk.crash(), small());
    assert_eq!(append(&log, 0..100).await, counts(0, 100));
}

#[tokio::test]
async fn d14_ids_are_remembered_after_their_segments_are_removed() {
    let (disk, hands) = (SimDisk::new(1), Hands::default());
    let options = || LogOptions { keep_for: Duration::ZERO, ..small() };
    let log = try_open(&disk, options(), &hands).unwrap();
    for n in 0..20 {
        append(&log, n * 10..n * 10 + 10).await;
    }
    consume(&log, "c").await;
    append(&log, 200..203).await;
    while log.standing().first == 1 {
        log.handle_for_tests().waiting.retain();
        tokio::task::yield_now().await;
    }
    assert_eq!(append(&log, 0..203).await, counts(0, 203));
    log.close().await;
    drop(log);
    let log = try_open(&disk.crash(), options(), &hands).unwrap();
    assert!(log.standing().first > 1);
    assert_eq!(append(&log, 0..203).await, counts(0, 203));
}

#[tokio::test]
async fn d14_ids_are_remembered_for_a_time_and_a_number() {
    let (disk, hands) = (SimDisk::new(1), Hands::default());
    let window = Duration::from_secs(60);
    let options = LogOptions { remember_for: window, remember_events: 5, ..small() };
    let log = try_open(&disk, options, &hands).unwrap();
    append(&log, 0..8).await;
    assert_eq!(append(&log, 3..8).await, counts(0, 5));
    assert_eq!(append(&log, 0..1).await, counts(1, 0), "the sixth is forgotten");
    hands.pass(window + Duration::from_secs(1));
    assert_eq!(append(&log, 7..8).await, counts(1, 0), "it is too long ago");
}

#[tokio::test]
async fn d14_without_a_window_every_event_is_stored() {
    let none = LogOptions { remember_for: Duration::ZERO, ..small() };
    let log = open(&SimDisk::new(1), none);
    assert_eq!(log.append(vec![event("1"), event("1")]).await.unwrap(), counts(2, 0));
}

#[tokio::test]
async fn d14_an_event_that_was_stored_again_after_its_window_is_remembered_after_a_restart() {
    let (disk, hands) = (SimDisk::new(1), Hands::default());
    let window = Duration::from_secs(60);
    let options = || LogOptions { remember_for: window, ..small() };
    let log = try_open(&disk, options(), &hands).unwrap();
    append(&log, 0..1).await;
    hands.pass(window + Duration::from_secs(1));
    assert_eq!(append(&log, 0..1).await, counts(1, 0), "it is too long ago");
    let log = try_open(&disk.crash(), options(), &hands).unwrap();
    assert_eq!(append(&log, 0..1).await, counts(0, 1), "the second of them is remembered");
    hands.pass(window + Duration::from_secs(1));
    assert_eq!(append(&log, 0..1).await, counts(1, 0), "and forgotten in its time");
}
