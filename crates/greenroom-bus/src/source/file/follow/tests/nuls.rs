//! NULs in files.

use super::*;

#[tokio::test(start_paused = true)]
async fn b01_nuls_at_the_head_of_a_line_are_passed_over() {
    let stage = Stage::new();
    stage.append("log", &some(1..=3));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1, 2, 3]);
    // Cut, by a writer that goes on at its own place; and more than an event may have.
    for (size, number) in [(1_000, 4), (20 << 20, 5)] {
        let mut file = fs::File::create(stage.path("log")).unwrap();
        file.seek(SeekFrom::Start(size)).unwrap();
        file.write_all(line(number).as_bytes()).unwrap();
        assert_eq!(rest(&mut source).await, [number]);
    }
    stage.append("log", &format!("\0\0\0{}", line(6)));
    assert_eq!(rest(&mut source).await, [6]);
}

#[tokio::test(start_paused = true)]
async fn b01_a_log_that_was_allocated_before_it_is_written_is_read_once_in_order() {
    let stage = Stage::new();
    let mut file = fs::File::create(stage.path("log")).unwrap();
    file.write_all(&[0; 4_096]).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut run = stage.run("log");
    assert!(run.handle().await.is_empty());
    for number in 1..=8 {
        file.write_all(line(number).as_bytes()).unwrap();
        stage.touch("log", number);
        assert_eq!(run.handle().await, [number]);
        if number % 3 == 0 {
            run.end().await;
            run = stage.run("log");
        }
    }
    assert_eq!(run.source.behind(), Some(0));
    run.end().await;
    assert!(stage.run("log").handle().await.is_empty());
}
