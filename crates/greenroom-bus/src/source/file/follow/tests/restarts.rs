//! What a restart, or another kind of input, goes on with.

use std::os::unix::fs::MetadataExt;

use super::*;

#[tokio::test(start_paused = true)]
async fn b01_a_restart_goes_on_behind_what_is_done_also_after_rotations() {
    let stage = Stage::new();
    stage.append("log", &some(1..=4));
    let mut first = stage.run("log");
    assert_eq!(first.handle().await, [1, 2, 3, 4]);
    stage.append("log", &some(5..=6));
    assert_eq!(first.take().await, [5, 6]);
    first.committer.commit().await.unwrap();
    first.crash();
    // Nobody looks.
    stage.append("log", &some(7..=7));
    stage.rename("log", "log.old");
    stage.append("log", &some(8..=9));
    let mut second = stage.run("log");
    let resumed = second.committer.standing().resumed.unwrap();
    assert_eq!((resumed.partitions, resumed.files, resumed.again_at_most), (1, 1, 2));
    assert_eq!(second.handle().await, [5, 6, 7, 8, 9]);
    second.end().await;
    let mut third = stage.run("log");
    stage.append("log", &some(10..=10));
    assert_eq!(third.handle().await, [10]);
}

/// What a source that ends gives; of that it settles what has these ids.
async fn settled(mut source: Box<dyn Source>, done: &[u64]) -> Vec<u64> {
    let committer = source.committer().unwrap();
    let mut all = Vec::new();
    loop {
        let mut taken = Vec::new();
        let commits = async {
            loop {
                committer.due().await;
                committer.commit().await.unwrap();
            }
        };
        let pulled = tokio::select! {
            pulled = source.pull(&mut taken) => pulled.unwrap(),
            () = commits => unreachable!("it never ends"),
        };
        let receipts = source.receipts();
        for (item, id) in taken.iter().zip(ids(&taken)) {
            if done.contains(&id) {
                let settled = Settled::Acknowledged(Outcome::Handled);
                receipts.as_ref().unwrap().settled(item.position, settled);
            }
            all.push(id);
        }
        if pulled == Pull::End {
            break;
        }
    }
    drop(source);
    committer.commit().await.unwrap();
    committer.end();
    all
}

#[tokio::test(start_paused = true)]
async fn b01_follow_is_switched_off_and_on_again_and_each_goes_on_behind_what_is_done() {
    let stage = Stage::new();
    stage.append("log", &some(1..=4));
    let mut followed = stage.run("log");
    assert_eq!(followed.handle().await, [1, 2, 3, 4]);
    followed.end().await;
    stage.append("log", &some(5..=7));
    assert_eq!(settled(stage.once("log"), &[5, 7]).await, [5, 6, 7]);
    let mut source = stage.once("log");
    let resumed = source.committer().unwrap().standing().resumed.unwrap();
    assert_eq!((resumed.files, resumed.done, resumed.again_at_most), (1, 1, 1));
    assert_eq!(settled(source, &[]).await, [6]);
    let mut followed = stage.run("log");
    assert_eq!(followed.handle().await, [6]);
    stage.append("log", &some(8..=8));
    assert_eq!(followed.handle().await, [8]);
    followed.end().await;
    assert!(settled(stage.once("log"), &[]).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn b01_what_is_open_of_a_file_that_was_replaced_waits_until_it_is_followed_again() {
    let stage = Stage::new();
    stage.append("log", &some(1..=2));
    let mut followed = stage.run("log");
    assert_eq!(followed.handle().await, [1, 2]);
    stage.append("log", &some(3..=4));
    assert_eq!(followed.take().await, [3, 4]);
    followed.end().await;
    stage.rename("log", "log.1");
    stage.append("log", &some(5..=6));
    assert_eq!(settled(stage.once("log"), &[5]).await, [5, 6]);
    stage.append("log.1", &some(10..=10));
    stage.append("log", &some(7..=7));
    assert_eq!(settled(stage.once("log"), &[6]).await, [6, 7]);
    let mut followed = stage.run("log");
    assert_eq!(followed.handle().await, [3, 4, 10, 7], "in the order in which they were begun");
    followed.end().await;
}

#[tokio::test(start_paused = true)]
async fn b01_follow_is_switched_off_and_on_again_for_several_files() {
    let stage = Stage::new();
    stage.append("log.1", &some(1..=2));
    stage.append("log.2", &some(11..=12));
    let mut followed = stage.run("log*");
    let mut all = followed.handle().await;
    all.sort_unstable();
    assert_eq!(all, [1, 2, 11, 12]);
    followed.end().await;
    stage.append("log.1", &some(3..=4));
    stage.append("log.3", &some(21..=21));
    assert_eq!(settled(stage.set_once("log*"), &[4, 21]).await, [3, 4, 21]);
    let mut followed = stage.run("log*");
    assert_eq!(followed.handle().await, [3]);
    followed.end().await;
}

#[tokio::test(start_paused = true)]
async fn b01_a_checkpoint_of_a_file_goes_on_when_it_is_followed() {
    let stage = Stage::new();
    stage.append("log", &some(1..=4));
    let (path, checkpoint) = (stage.path("log"), stage.path("checkpoint"));
    let options = FileSourceOptions::default();
    let source =
        super::super::super::FileSource::with_checkpoint(&path, &checkpoint, options.clone())
            .unwrap();
    let mut source: Box<dyn Source> = Box::new(source);
    let committer = source.committer().unwrap();
    committer.commit().await.unwrap();
    let mut taken = Vec::new();
    while source.pull(&mut taken).await.unwrap() == Pull::More {}
    let receipts = source.receipts().unwrap();
    taken[..3].iter().for_each(|item| {
        receipts.settled(item.position, Settled::Acknowledged(Outcome::Handled));
    });
    drop(source);
    committer.commit().await.unwrap();
    committer.end();
    let mut run = stage.run("log");
    assert_eq!(run.take().await, [4]);
    run.crash();
    let other = stage.path("other");
    fs::write(&other, some(1..=1)).unwrap();
    let refused = FollowSource::with_checkpoint(&other, &checkpoint, POLL, options);
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("it is of another input"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn b01_what_was_replaced_several_times_before_a_restart_is_read() {
    let stage = Stage::new();
    stage.append("log", &some(1..=2));
    let mut run = stage.run("log");
    assert_eq!(run.handle().await, [1, 2]);
    run.end().await;
    for number in 3..=5 {
        stage.append("log", &line(number));
        stage.rotate("log");
    }
    stage.append("log", &some(6..=6));
    let mut run = stage.run("log");
    assert_eq!(run.handle().await, [3, 4, 5, 6]);
    run.end().await;
    // Compressed, or copied and cut, before it was read to its end.
    stage.append("log", &some(7..=7));
    stage.rename("log", "log-1");
    stage.compress("log-1");
    stage.append("log", &some(8..=8));
    let mut run = stage.run("log");
    assert_eq!(run.handle().await, [7, 8]);
    run.end().await;
    stage.append("log", &some(9..=9));
    fs::copy(stage.path("log"), stage.path("log-2")).unwrap();
    fs::write(stage.path("log"), some(10..=10)).unwrap();
    let mut run = stage.run("log");
    assert_eq!(run.handle().await, [9, 10]);
    run.end().await;
    assert!(stage.run("log").handle().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn b01_a_copy_that_has_the_inode_of_a_file_that_was_compressed_is_not_read() {
    let stage = Stage::new();
    let mut run = stage.run("log");
    stage.append("log", &some(1..=3));
    assert_eq!(run.handle().await, [1, 2, 3]);
    stage.rename("log", "log.1");
    stage.append("log", &some(4..=6));
    assert_eq!(run.handle().await, [4, 5, 6]);
    end_steps(&mut run.source).await;
    // As if the file system gave the inode of the one to the other.
    fs::copy(stage.path("log.1"), stage.path("log.2")).unwrap();
    stage.compress("log.2");
    stage.rename("log.1", "log.900");
    fs::write(stage.path("log.900"), some(4..=6)).unwrap();
    thread::sleep(Duration::from_millis(12));
    fs::write(stage.path("log"), line(7)).unwrap();
    assert_eq!(run.handle().await, [7]);
    run.end().await;
    let mut run = stage.run("log");
    assert!(run.handle().await.is_empty());
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn b01_a_read_copy_that_has_the_inode_of_a_removed_file_is_not_read_again() {
    let stage = Stage::new();
    stage.append("log", &some(1..=3));
    let mut run = stage.run("log");
    assert_eq!(run.handle().await, [1, 2, 3]);
    stage.rename("log", "log.1");
    stage.append("log", &some(4..=6));
    assert_eq!(run.handle().await, [4, 5, 6]);
    let inode = |name: &str| stage.path(name).metadata().unwrap().ino();
    let freed = inode("log.1");
    run.end().await;
    fs::remove_file(stage.path("log.1")).unwrap();
    let mut run = stage.run("log");
    assert!(run.handle().await.is_empty());
    // A file system that uses inodes again does so soon.
    let copy = (0..200).map(|n| format!("log.{n}00")).find(|copy| {
        fs::write(stage.path(copy), "").unwrap();
        inode(copy) == freed
    });
    let copy = copy.unwrap_or_else(|| "log.99".to_owned());
    fs::copy(stage.path("log"), stage.path(&copy)).unwrap();
    thread::sleep(Duration::from_millis(12));
    fs::write(stage.path("log"), some(7..=7)).unwrap();
    assert_eq!(run.handle().await, [7]);
    run.end().await;
    let mut run = stage.run("log");
    stage.append("log", &some(8..=8));
    assert_eq!(run.handle().await, [8]);
}
