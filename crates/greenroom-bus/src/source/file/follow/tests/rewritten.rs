//! Files that are cut, or written anew.

use super::*;

#[tokio::test(start_paused = true)]
async fn b01_a_file_that_is_cut_is_read_from_its_start() {
    let stage = Stage::new();
    stage.append("log", &some(1..=5));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1, 2, 3, 4, 5]);
    fs::write(stage.path("log"), some(6..=7)).unwrap();
    assert_eq!(rest(&mut source).await, [6, 7]);
    // Longer than what was read, when it is looked at next.
    fs::write(stage.path("log"), some(8..=30)).unwrap();
    assert_eq!(rest(&mut source).await, (8..=30).collect::<Vec<_>>());
    // Cut while a line was at hand.
    stage.append("log", "{\"specv");
    assert!(rest(&mut source).await.is_empty());
    fs::write(stage.path("log"), "").unwrap();
    assert!(rest(&mut source).await.is_empty());
    stage.append("log", &some(31..=31));
    assert_eq!(rest(&mut source).await, [31]);
}

#[tokio::test(start_paused = true)]
async fn b01_a_file_that_is_written_anew_with_the_same_length_is_read_from_its_start() {
    let stage = Stage::new();
    stage.append("log", &some(1..=4));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1, 2, 3, 4]);
    stage.rewrite("log", &some(5..=8), 10);
    assert_eq!(rest(&mut source).await, [5, 6, 7, 8]);
    stage.touch("log", 20);
    assert!(rest(&mut source).await.is_empty(), "it has the same content");
    stage.rewrite("log", &some(1..=9), 30);
    assert_eq!(rest(&mut source).await.len(), 9);
    stage.rewrite("log", &(line(9) + &some(2..=9)), 40);
    assert_eq!(rest(&mut source).await, [9, 2, 3, 4, 5, 6, 7, 8, 9], "it ends as it did");
}

#[tokio::test(start_paused = true)]
async fn b01_a_closed_file_that_is_written_anew_with_the_same_length_is_read_from_its_start() {
    let stage = Stage::new();
    fs::create_dir(stage.path("in")).unwrap();
    for number in 1..=200 {
        stage.append(&format!("in/{number:04}.ndjson"), &line(number));
    }
    let mut source = stage.follow("in");
    assert_eq!(rest(&mut source).await.len(), 200);
    stage.touch("in/0001.ndjson", 10);
    stage.rewrite("in/0002.ndjson", &line(9), 10);
    assert_eq!(rest(&mut source).await, [9]);
    end_steps(&mut source).await;
    assert!(source.steps.reader.as_ref().unwrap().open_files() <= 64);
}

#[tokio::test(start_paused = true)]
async fn b01_a_file_that_is_written_anew_while_nobody_looks_is_not_taken_for_what_it_was() {
    let stage = Stage::new();
    stage.append("log", "");
    let mut first = stage.run("log");
    assert!(first.handle().await.is_empty());
    stage.append("log", &some(1..=3));
    assert_eq!(first.handle().await, [1, 2, 3]);
    first.end().await;
    // Longer than it was.
    fs::write(stage.path("log"), some(4..=9)).unwrap();
    let mut second = stage.run("log");
    assert_eq!(second.handle().await, [4, 5, 6, 7, 8, 9]);
    stage.append("log", &some(10..=11));
    assert_eq!(second.take().await, [10, 11]);
    second.settle();
    end_steps(&mut second.source).await;
    // Between the last look and the last commit.
    fs::write(stage.path("log"), some(20..=40)).unwrap();
    second.end().await;
    let mut third = stage.run("log");
    assert_eq!(third.handle().await, (20..=40).collect::<Vec<_>>());
    third.end().await;
    assert!(stage.run("log").take().await.is_empty());
}
