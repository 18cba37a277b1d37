//! Whatever happens to files, in random order. `GREENROOM_PROGRAMS` says how often each is tried.

use super::*;

fn programs(otherwise: u64) -> u64 {
    std::env::var("GREENROOM_PROGRAMS").map_or(otherwise, |count| count.parse().unwrap())
}

/// A log that changes in every way between two looks: lines, rotations by number and by date, any
/// number of them, compression of what was put aside, a copy and a cut, and restarts.
#[tokio::test(start_paused = true)]
async fn b01_a_file_that_changes_in_every_way_between_two_looks_loses_nothing() {
    for seed in 0..programs(12) {
        let mut random = StdRng::seed_from_u64(seed);
        let stage = Stage::new();
        let (mut written, mut dated) = (0, 0);
        let mut done = Vec::new();
        let mut run = stage.run("log");
        for _ in 0..40 {
            match random.random_range(0..12) {
                0..4 => {
                    let count = random.random_range(1..20);
                    stage.append("log", &some(written + 1..=written + count));
                    written += count;
                }
                4 | 5 if stage.path("log").exists() => stage.rotate("log"),
                6 if stage.path("log").exists() => {
                    dated += 1;
                    stage.rename("log", &format!("log-{dated:03}"));
                }
                7 if stage.path("log.2").exists() => stage.compress("log.2"),
                8 if stage.path("log").exists() => {
                    // What was read is cut: the copy is nothing new.
                    done.extend(run.handle().await);
                    let size = stage.path("log").metadata().unwrap().len();
                    let copy = stage.path(&format!("log.{}", 900 + dated));
                    fs::copy(stage.path("log"), &copy).unwrap();
                    // So that the clock of the file system tells what was written before.
                    thread::sleep(Duration::from_millis(12));
                    let mut file = fs::File::create(stage.path("log")).unwrap();
                    // With O_APPEND, or without.
                    let at = if random.random_bool(0.5) { size } else { 0 };
                    file.seek(SeekFrom::Start(at)).unwrap();
                    written += 1;
                    file.write_all(line(written).as_bytes()).unwrap();
                }
                9 => {
                    run.take().await;
                    run.crash();
                    run = stage.run("log");
                }
                10 => {
                    done.extend(run.handle().await);
                    run.end().await;
                    run = stage.run("log");
                }
                _ => done.extend(run.handle().await),
            }
            end_steps(&mut run.source).await;
        }
        stage.append("log", &some(written + 1..=written + 1));
        done.extend(run.handle().await);
        let first = done.iter().zip(1..).find(|(id, number)| **id != *number);
        assert!(
            first.is_none() && done.len() as u64 == written + 1,
            "seed {seed}: {first:?} {done:?}"
        );
    }
}

#[tokio::test]
async fn b01_nothing_is_lost_doubled_or_overtaken_by_rotations_under_load() {
    for seed in 0..4 {
        let stage = Stage::new();
        let (path, total) = (stage.path("log*"), 3_000);
        stage.append("log", "");
        let (sender, ended) = mpsc::channel();
        let directory = stage.0.path().to_owned();
        let writer = thread::spawn(move || {
            let mut random = StdRng::seed_from_u64(seed);
            let log = directory.join("log");
            let open = || fs::File::options().append(true).create(true).open(&log).unwrap();
            let (mut file, mut turn) = (open(), 0);
            for number in 1..=total {
                let text = line(number);
                let cut = random.random_range(0..text.len());
                file.write_all(&text.as_bytes()[..cut]).unwrap();
                if random.random_bool(0.02) {
                    // So that the clock of the file system tells them apart.
                    thread::sleep(Duration::from_millis(12));
                    fs::rename(&log, directory.join(format!("log.{turn:03}"))).unwrap();
                    turn += 1;
                    file.write_all(&text.as_bytes()[cut..]).unwrap();
                    file = open();
                } else {
                    file.write_all(&text.as_bytes()[cut..]).unwrap();
                }
            }
            sender.send(()).unwrap();
        });
        let poll = Duration::from_millis(1);
        let mut source = FollowSource::open(&path, poll, FileSourceOptions::default()).unwrap();
        let mut taken = Vec::new();
        while (taken.len() as u64) < total {
            let pulled = timeout(Duration::from_secs(60), source.pull(&mut taken)).await;
            assert_eq!(pulled.expect("something is lost").unwrap(), Pull::More);
        }
        ended.recv().unwrap();
        writer.join().unwrap();
        let taken = ids(&taken);
        let first = taken.iter().zip(1..).find(|(id, number)| **id != *number);
        assert!(first.is_none() && taken.len() as u64 == total, "seed {seed}: {first:?}");
    }
}

/// Random writes, rotations, cuts, restarts and crashes, one step after the other.
#[tokio::test(start_paused = true)]
async fn b01_random_rotations_and_restarts_lose_nothing_and_repeat_only_what_was_open() {
    for seed in 0..programs(4) {
        let mut random = StdRng::seed_from_u64(seed);
        let stage = Stage::new();
        let (mut written, mut turn) = (0, 0);
        let mut done = std::collections::BTreeSet::new();
        let mut run = stage.run("log*");
        for _ in 0..30 {
            match random.random_range(0..6) {
                0 | 1 => {
                    let count = random.random_range(1..40);
                    stage.append("log", &some(written + 1..=written + count));
                    written += count;
                }
                2 if stage.path("log").exists() => {
                    stage.rename("log", &format!("log.{turn:03}"));
                    turn += 1;
                }
                3 => {
                    for number in run.handle().await {
                        assert!(done.insert(number), "seed {seed}: {number} came twice");
                    }
                }
                4 => {
                    // Not stored: it comes again.
                    run.take().await;
                    run.crash();
                    run = stage.run("log*");
                }
                _ => {
                    for number in run.handle().await {
                        assert!(done.insert(number), "seed {seed}: {number} came twice");
                    }
                    run.end().await;
                    run = stage.run("log*");
                }
            }
        }
        for number in run.handle().await {
            assert!(done.insert(number), "seed {seed}: {number} came twice");
        }
        assert!(done.iter().copied().eq(1..=written), "seed {seed}: something is lost");
    }
}
