//! One file that grows.

use super::*;

#[tokio::test(start_paused = true)]
async fn b01_a_half_line_waits_until_it_is_finished() {
    let stage = Stage::new();
    let text = line(7).replace("\"7\"", "\"7\",\"subject\":\"grün\"");
    // In the middle of a character.
    let half = text.find('ü').unwrap() + 1;
    let write = |bytes: &[u8]| {
        let file = fs::File::options().append(true).create(true).open(stage.path("log"));
        file.unwrap().write_all(bytes).unwrap();
    };
    write(&text.as_bytes()[..half]);
    let mut source = stage.follow("log");
    assert!(rest(&mut source).await.is_empty());
    assert_eq!(source.behind(), Some(0));
    write(&text.as_bytes()[half..text.len() - 1]);
    assert!(rest(&mut source).await.is_empty());
    write(b"\n");
    let mut taken = Vec::new();
    assert_eq!(source.pull(&mut taken).await.unwrap(), Pull::More);
    let subject = taken[0].event.as_ref().unwrap().subject().map(|of| of.to_string());
    assert_eq!(subject.as_deref(), Some("grün"));
}

#[tokio::test(start_paused = true)]
async fn b01_what_is_written_is_taken_at_the_next_look() {
    let stage = Stage::new();
    stage.append("log", &some(1..=3));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1, 2, 3]);
    stage.append("log", &some(4..=4));
    let before = Instant::now();
    let mut taken = Vec::new();
    source.pull(&mut taken).await.unwrap();
    assert_eq!(ids(&taken), [4]);
    assert!(before.elapsed() <= POLL, "{:?}", before.elapsed());
    assert_eq!(source.places().unwrap().place(None, taken[0].position).position, 4);
}

#[tokio::test(start_paused = true)]
async fn b01_a_file_that_is_not_there_yet_is_waited_for() {
    let stage = Stage::new();
    let mut source = stage.follow("missing/log");
    assert!(rest(&mut source).await.is_empty());
    fs::create_dir(stage.path("missing")).unwrap();
    assert!(rest(&mut source).await.is_empty());
    stage.append("missing/log", &some(1..=2));
    assert_eq!(rest(&mut source).await, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn b01_looking_reads_what_is_there_and_ends() {
    let stage = Stage::new();
    stage.append("log", &some(1..=4));
    stage.append("log", "{\"half");
    let options = FileSourceOptions::default();
    let mut source = FollowSource::looking(stage.path("log"), None, options.clone()).unwrap();
    assert_eq!(rest(&mut source).await, [1, 2, 3, 4]);
    let mut missing = FollowSource::looking(stage.path("none"), None, options).unwrap();
    assert_eq!(missing.pull(&mut Vec::new()).await.unwrap(), Pull::End);
}

#[test]
fn b01_standard_input_and_what_is_no_file_are_refused() {
    let refused = |path: &str| {
        let source = FollowSource::open(path, POLL, FileSourceOptions::default());
        source.err().unwrap().to_string()
    };
    assert!(refused("-").contains("standard input cannot be followed"), "{}", refused("-"));
    let device = refused("/dev/null");
    assert!(device.contains("only such a file can be followed"), "{device}");
}

#[tokio::test(start_paused = true)]
async fn b01_a_file_that_may_not_be_read_is_tried_again() {
    let stage = Stage::new();
    // No user, not even root, can open a link to itself.
    std::os::unix::fs::symlink("log", stage.path("log")).unwrap();
    let refused = FollowSource::open(stage.path("log"), POLL, FileSourceOptions::default());
    assert!(refused.is_err(), "at the start, it is told");
    fs::remove_file(stage.path("log")).unwrap();
    stage.append("log", &some(1..=1));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1]);
    stage.rename("log", "log.1");
    std::os::unix::fs::symlink("log", stage.path("log")).unwrap();
    assert!(rest(&mut source).await.is_empty());
    fs::remove_file(stage.path("log")).unwrap();
    stage.append("log", &some(2..=2));
    assert_eq!(rest(&mut source).await, [2]);
    // The whole directory, as when a disk is gone.
    let gone = tempfile::tempdir().unwrap();
    fs::write(gone.path().join("log"), some(1..=1)).unwrap();
    let path = gone.path().join("log");
    let mut source = FollowSource::open(&path, POLL, FileSourceOptions::default()).unwrap();
    assert_eq!(rest(&mut source).await, [1]);
    drop(gone);
    assert!(rest(&mut source).await.is_empty());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, some(2..=2)).unwrap();
    assert_eq!(rest(&mut source).await, [2]);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}
