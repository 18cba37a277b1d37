//! Files that are compressed.

use super::*;

#[tokio::test(start_paused = true)]
async fn b01_what_is_compressed_is_read_once_in_a_set_and_refused_by_itself() {
    let stage = Stage::new();
    fs::write(stage.path("one.gz"), gzip(some(1..=2).as_bytes())).unwrap();
    let refused = FollowSource::open(stage.path("one.gz"), POLL, FileSourceOptions::default());
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("it is compressed, and such a file cannot be followed"), "{refused}");
    let mut source = stage.follow("*.gz");
    assert_eq!(rest(&mut source).await, [1, 2]);
    assert!(rest(&mut source).await.is_empty());
    let mut file = fs::File::options().append(true).open(stage.path("one.gz")).unwrap();
    file.write_all(&gzip(some(3..=3).as_bytes())).unwrap();
    let grown = source.pull(&mut Vec::new()).await.unwrap_err().to_string();
    assert!(grown.contains("a compressed file that grows cannot be followed"), "{grown}");
}

#[tokio::test(start_paused = true)]
async fn b01_a_compressed_copy_of_what_was_read_is_not_read_again() {
    let stage = Stage::new();
    stage.append("log", &some(1..=400));
    let mut run = stage.run("log*");
    assert_eq!(run.handle().await.len(), 400);
    stage.rename("log", "log.1");
    stage.append("log", &some(401..=402));
    assert_eq!(run.handle().await, [401, 402]);
    let content = fs::read(stage.path("log.1")).unwrap();
    fs::write(stage.path("log.1.gz"), gzip(&content)).unwrap();
    fs::remove_file(stage.path("log.1")).unwrap();
    assert!(run.handle().await.is_empty());
    run.end().await;
    let mut again = stage.run("log*");
    assert!(again.handle().await.is_empty());
    // Another content is another file.
    fs::write(stage.path("log.2.gz"), gzip(some(500..=501).as_bytes())).unwrap();
    assert_eq!(again.handle().await, [500, 501]);
}

#[tokio::test(start_paused = true)]
async fn b01_an_older_compressed_file_is_read_before_the_one_that_took_its_place() {
    let stage = Stage::new();
    stage.append("log", &some(1..=3));
    stage.rename("log", "log.1");
    stage.compress("log.1");
    stage.append("log", &some(4..=5));
    let mut source = stage.follow("log*");
    assert_eq!(rest(&mut source).await, [1, 2, 3, 4, 5]);
}
