//! `kill -9` (Z01).

use std::{collections::HashSet, time::Duration};

use super::{
    program::{Process, Task},
    support::{PATIENCE, Publisher, create_topic, event, real_broker, unique},
};

const EVENTS: u64 = 200_000;
/// Never done, at the beginning of the only partition.
const STUCK: u64 = 100;

/// Kills a consumer half-way, with one event stuck, and says how many of those that it had done are
/// done again, in percent.
fn repeats(broker: &str, remembers: bool) -> u64 {
    let name = unique("z01");
    create_topic(broker, &name, 1);
    let publisher = Publisher::new(broker);
    for number in 0..EVENTS {
        publisher.event(&name, 0, &event(number, &number.to_string()));
    }
    publisher.flush();
    let task = Task {
        topic: name.clone(),
        group: name,
        stuck: STUCK.to_string(),
        remembers,
        latency: Duration::ZERO,
        workers: 64,
        protocol: "cooperative-sticky".to_owned(),
    };
    let first = Process::start(&task);
    let mut done = HashSet::new();
    let take = |process: &Process, until: usize, done: &mut HashSet<u64>| {
        let mut again = 0;
        while done.len() < until {
            let line = process.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| {
                panic!("{} events are done, and no more come", done.len());
            });
            again += u64::from(!done.insert(line.id));
        }
        again
    };
    let again = take(&first, EVENTS as usize / 2, &mut done);
    assert_eq!(again, 0, "nothing is done twice in one run");
    done.extend(first.kill().into_iter().map(|line| line.id));
    let before = done.len() as u64;
    let second = Process::start(&task);
    let mut again = take(&second, EVENTS as usize - 1, &mut done);
    again += second.kill().len() as u64;
    assert!(!done.contains(&STUCK));
    again * 100 / before
}

#[test]
fn z01_a_crash_repeats_little_of_what_was_done_behind_an_event_that_is_stuck() {
    let Some(broker) = real_broker() else { return };
    let repeated = repeats(&broker, true);
    assert!(repeated < 10, "{repeated} % are done again");
}

/// The same without the set: it is that which makes the difference.
#[test]
fn z01_without_the_set_of_done_offsets_nearly_all_are_repeated() {
    let Some(broker) = real_broker() else { return };
    let repeated = repeats(&broker, false);
    assert!(repeated > 90, "{repeated} % are done again");
}
