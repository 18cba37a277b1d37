//! Files of a directory or a pattern.

use super::*;

#[tokio::test(start_paused = true)]
async fn b01_new_files_of_a_directory_are_taken_in_the_order_of_their_last_write() {
    let stage = Stage::new();
    fs::create_dir(stage.path("in")).unwrap();
    let mut source = stage.follow("in");
    assert!(rest(&mut source).await.is_empty());
    end_steps(&mut source).await;
    let aged = |name: &str, seconds: u64, numbers| {
        stage.append(name, &some(numbers));
        let at = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        fs::File::options().append(true).open(stage.path(name)).unwrap().set_modified(at).unwrap();
    };
    aged("in/a.ndjson", 2_000, 3..=4);
    aged("in/b.ndjson", 1_000, 1..=2);
    aged("in/c.ndjson", 2_000, 5..=5);
    aged("in/other.txt", 500, 9..=9);
    assert_eq!(rest(&mut source).await, [1, 2, 3, 4, 5]);
    // All of them go on.
    stage.append("in/b.ndjson", &some(6..=6));
    stage.append("in/a.ndjson", &some(7..=7));
    stage.append("in/d.ndjson", &some(8..=8));
    assert_eq!(rest(&mut source).await, [6, 7, 8]);
}

#[tokio::test(start_paused = true)]
async fn b01_of_many_files_the_quiet_ones_are_closed_and_opened_when_they_grow() {
    let stage = Stage::new();
    fs::create_dir(stage.path("in")).unwrap();
    let count = 200;
    for number in 1..=count {
        stage.append(&format!("in/{number:04}.ndjson"), &line(number));
    }
    let mut run = stage.run("in");
    assert_eq!(run.handle().await.len() as u64, count);
    assert!(run.handle().await.is_empty());
    end_steps(&mut run.source).await;
    assert!(run.source.steps.reader.as_ref().unwrap().open_files() <= 64);
    assert!(run.source.keeper.as_ref().unwrap().held_open() <= 64 + 1);
    for number in 1..=count {
        stage.append(&format!("in/{number:04}.ndjson"), &line(1_000 + number));
    }
    assert_eq!(run.handle().await.len() as u64, count);
    run.end().await;
    assert!(stage.run("in").take().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn b01_the_last_line_of_a_closed_file_that_is_removed_is_taken_without_a_line_feed() {
    let stage = Stage::new();
    fs::create_dir(stage.path("in")).unwrap();
    stage.append("in/0000.ndjson", line(1).trim_end());
    let count = 100;
    for number in 2..=count {
        stage.append(&format!("in/{number:04}.ndjson"), &line(number));
    }
    let mut run = stage.run("in");
    assert_eq!(run.handle().await, (2..=count).collect::<Vec<_>>());
    end_steps(&mut run.source).await;
    assert!(run.source.steps.reader.as_ref().unwrap().open_files() <= 64);
    fs::remove_file(stage.path("in/0000.ndjson")).unwrap();
    assert_eq!(run.handle().await, [1]);
    run.end().await;
    assert!(stage.run("in").take().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn b01_an_entry_that_cannot_be_read_keeps_no_other_from_being_followed() {
    use std::os::unix::fs::symlink;
    let stage = Stage::new();
    fs::create_dir(stage.path("in")).unwrap();
    symlink("nowhere", stage.path("in/a.ndjson")).unwrap();
    stage.append("in/b.ndjson", &some(1..=2));
    let mut run = stage.run("in");
    assert_eq!(run.handle().await, [1, 2]);
    symlink("c.ndjson", stage.path("in/c.ndjson")).unwrap();
    symlink("/dev/null", stage.path("in/d.ndjson")).unwrap();
    stage.append("in/e.ndjson", &some(3..=3));
    assert_eq!(run.handle().await, [3]);
    stage.append("in/nowhere", &some(4..=4));
    fs::remove_file(stage.path("in/c.ndjson")).unwrap();
    assert_eq!(run.handle().await, [4], "what can be read again is read");
}
