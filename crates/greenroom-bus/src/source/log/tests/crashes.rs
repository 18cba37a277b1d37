use super::{
    super::{EventLog, sim_disk::SimDisk},
    support::*,
};

#[tokio::test]
async fn b03_a_crash_in_the_middle_of_a_block_leaves_all_of_an_append_or_nothing() {
    for seed in 0..200 {
        let disk = SimDisk::new(seed);
        let log = open(&disk, small());
        append(&log, 0..5).await;
        disk.hold_syncs();
        let append = tokio::spawn({
            let log = log.clone();
            async move { log.append(events(5..12)).await }
        });
        tokio::task::spawn_blocking({
            let disk = disk.clone();
            move || disk.until_sync_is_held()
        })
        .await
        .unwrap();
        let after = disk.crash();
        assert!(append.await.unwrap().is_err());
        let log = open(&after, small());
        let next = log.standing().next;
        assert!(next == 6 || next == 13, "seed {seed}: {next}");
        assert_eq!(read_all(&log).await.len() as u64, next - 1);
    }
}

#[tokio::test]
async fn b03_what_a_failed_sync_left_in_memory_is_written_again_before_it_is_trusted() {
    for seed in 0..100 {
        let disk = SimDisk::new(seed);
        let log = open(&disk, small());
        append(&log, 0..5).await;
        disk.fails_in(Some(2));
        let refused = log.append(events(5..12)).await;
        disk.fails_in(None);
        let killed = disk.kill();
        let log = open(&killed, small());
        let next = log.standing().next;
        consume(&log, "c").await;
        // What was given to a consumer is there after a crash, or the log would be damaged.
        let log = open(&killed.crash(), small());
        assert_eq!(log.standing().next, next, "seed {seed}: {refused:?}");
    }
}
