//! Files that are renamed, and others that take their place.

use super::*;

#[tokio::test(start_paused = true)]
async fn b01_a_renamed_file_is_read_to_its_end_before_the_new_one() {
    let stage = Stage::new();
    stage.append("log", &some(1..=2));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1, 2]);
    stage.append("log", &some(3..=4));
    stage.rename("log", "log.1");
    // Its writer has it open still.
    stage.append("log.1", &some(5..=6));
    stage.append("log", &some(7..=8));
    assert_eq!(rest(&mut source).await, [3, 4, 5, 6, 7, 8]);
    // Two at once.
    stage.append("log", &some(9..=9));
    stage.rename("log", "log.2");
    stage.append("log", &some(10..=10));
    assert_eq!(rest(&mut source).await, [9, 10]);
}

#[tokio::test(start_paused = true)]
async fn b01_a_renamed_file_without_a_successor_is_still_followed() {
    let stage = Stage::new();
    stage.append("log", &some(1..=1));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1]);
    stage.rename("log", "log.1");
    assert!(rest(&mut source).await.is_empty());
    stage.append("log.1", &some(2..=2));
    // A new one that is empty says nothing of its writer.
    stage.append("log", "");
    assert_eq!(rest(&mut source).await, [2]);
    stage.append("log.1", line(3).trim_end());
    assert!(rest(&mut source).await.is_empty(), "its last line is not whole");
    stage.append("log", &some(4..=4));
    assert_eq!(rest(&mut source).await, [3, 4], "it has a successor: it is as whole as it will be");
}

#[tokio::test(start_paused = true)]
async fn b01_a_file_that_vanishes_and_comes_back_is_followed_again() {
    let stage = Stage::new();
    stage.append("log", &some(1..=1));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1]);
    stage.append("log", &some(2..=3));
    fs::remove_file(stage.path("log")).unwrap();
    assert_eq!(rest(&mut source).await, [2, 3]);
    stage.append("log", &some(4..=4));
    assert_eq!(rest(&mut source).await, [4]);
    // What is unfinished when it vanishes will never be finished.
    stage.append("log", line(5).trim_end());
    assert!(rest(&mut source).await.is_empty());
    fs::remove_file(stage.path("log")).unwrap();
    assert_eq!(rest(&mut source).await, [5]);
}

#[tokio::test(start_paused = true)]
async fn b01_a_file_that_is_replaced_several_times_between_two_looks_loses_nothing() {
    let stage = Stage::new();
    stage.append("log", &some(1..=1));
    stage.append("log.7", &some(100..=105));
    stage.append("log-errors.1", &some(200..=205));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1]);
    end_steps(&mut source).await;
    for number in 2..=5 {
        stage.append("log", &line(number));
        stage.rotate("log");
        // So that the clock of the file system tells them apart.
        thread::sleep(Duration::from_millis(12));
    }
    stage.append("log", &some(6..=6));
    assert_eq!(rest(&mut source).await, [2, 3, 4, 5, 6], "and nothing that was there before");
    end_steps(&mut source).await;
    // By other names, compressed, and in another directory.
    stage.append("log", &some(7..=7));
    stage.rename("log", "log-20260101");
    stage.append("log", &some(8..=8));
    stage.rename("log", "log-20260102");
    stage.compress("log-20260102");
    fs::create_dir(stage.path("old")).unwrap();
    stage.append("log", &some(9..=9));
    assert_eq!(rest(&mut source).await, [7, 8, 9]);
    end_steps(&mut source).await;
    stage.rename("log", "old/put-aside-1");
    stage.append("log", &some(10..=10));
    stage.rename("log", "old/put-aside-2");
    stage.append("log", &some(11..=11));
    assert_eq!(rest(&mut source).await, [10, 11]);
}

#[tokio::test(start_paused = true)]
async fn b01_what_is_replaced_and_removed_while_the_input_is_held_up_is_read() {
    let stage = Stage::new();
    stage.append("log", &some(1..=1));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1]);
    for number in 2..=6 {
        stage.append("log", &line(number));
        // Nobody pulls.
        assert!(timeout(LONG, source.held_up().unwrap()).await.is_err());
        end_steps(&mut source).await;
        stage.rename("log", "log.1");
    }
    stage.append("log", &some(7..=7));
    assert_eq!(rest(&mut source).await, [2, 3, 4, 5, 6, 7]);
}
