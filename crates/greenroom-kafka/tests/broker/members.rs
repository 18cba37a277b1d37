//! Several processes of one group, which come and go under load (Z02, F04, F11).

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io::{self, Write},
    thread,
    time::{Duration, Instant},
};

use super::{
    program::{Line, Process, Task, now},
    support::{PATIENCE, Publisher, create_topic, event, real_broker, unique},
};

const EVENTS: u64 = 12_000;
const KEYS: u64 = 200;
/// Between two changes of the group.
const BETWEEN: Duration = Duration::from_secs(3);

fn rebalances(broker: &str, protocol: &str) {
    let name = unique("z02");
    create_topic(broker, &name, 12);
    let publisher = Publisher::new(broker);
    for number in 0..EVENTS {
        let key = number * number % KEYS;
        publisher.event(&name, (key % 12) as i32, &event(number, &format!("k{key}")));
    }
    publisher.flush();
    let task = Task {
        topic: name.clone(),
        group: name,
        stuck: "none".to_owned(),
        remembers: true,
        latency: Duration::from_millis(15),
        workers: 8,
        protocol: protocol.to_owned(),
    };
    let (mut lines, mut members) = (Vec::<Line>::new(), vec![Process::start(&task)]);
    let mut done = HashSet::new();
    let begun = Instant::now();
    for change in 0.. {
        let next = Instant::now() + BETWEEN;
        while Instant::now() < next && done.len() < EVENTS as usize {
            for member in &members {
                for line in member.lines.try_iter() {
                    done.insert(line.id);
                    lines.push(line);
                }
            }
            thread::sleep(Duration::from_millis(20));
        }
        if done.len() == EVENTS as usize {
            break;
        }
        assert!(begun.elapsed() < PATIENCE * 3, "{} of {EVENTS} events are done", done.len());
        // Two join; then the first leaves and another one joins, and so on.
        if change >= 2 {
            lines.extend(members.remove(0).ended());
            done.extend(lines.iter().map(|line| line.id));
        }
        members.push(Process::start(&task));
    }
    members.iter_mut().for_each(Process::asks_to_end);
    lines.extend(members.into_iter().flat_map(Process::ended));
    judge(protocol, &lines);
}

fn judge(protocol: &str, lines: &[Line]) {
    let ids: HashSet<u64> = lines.iter().map(|line| line.id).collect();
    assert_eq!(ids.len() as u64, EVENTS, "none is lost");
    let mut by_key = BTreeMap::<&str, Vec<&Line>>::new();
    for line in lines {
        by_key.entry(&line.key).or_default().push(line);
    }
    for (key, lines) in &mut by_key {
        lines.sort_by_key(|line| line.from);
        for pair in lines.windows(2) {
            assert!(pair[0].until <= pair[1].from, "two at once of key {key}: {pair:?}");
        }
        let mut seen = HashSet::new();
        let first: Vec<u64> =
            lines.iter().map(|line| line.id).filter(|id| seen.insert(*id)).collect();
        assert!(first.is_sorted(), "key {key} is out of order: {first:?}");
    }
    let repeated = lines.len() as u64 - EVENTS;
    // Past the capture of test output: this is counted, and not judged.
    let _ = writeln!(io::stderr(), "Z02 {protocol}: {repeated} of {EVENTS} events were done twice");
}

#[test]
fn z02_members_come_and_go_and_nothing_is_lost_or_done_at_once_cooperative() {
    if let Some(broker) = real_broker() {
        rebalances(&broker, "cooperative-sticky");
    }
}

#[test]
fn z02_members_come_and_go_and_nothing_is_lost_or_done_at_once_eager() {
    if let Some(broker) = real_broker() {
        rebalances(&broker, "range");
    }
}

#[test]
fn z02_members_come_and_go_and_nothing_is_lost_or_done_at_once_consumer_protocol() {
    if let Some(broker) = real_broker() {
        rebalances(&broker, "consumer");
    }
}

/// So many lines that it says next.
fn next_lines(of: &Process, count: usize) -> Vec<Line> {
    let next = || of.lines.recv_timeout(PATIENCE).expect("it goes on");
    (0..count).map(|_| next()).collect()
}

/// A member that is stopped for longer than its session (6 s here) has lost its partitions, and
/// does not know it when it goes on.
#[test]
fn d12_a_member_that_was_paused_beyond_its_session_begins_nothing_that_its_next_owner_has_done() {
    let Some(broker) = real_broker() else { return };
    let name = unique("paused");
    create_topic(&broker, &name, 12);
    let publisher = Publisher::new(&broker);
    for number in 0..EVENTS {
        let key = number % KEYS;
        publisher.event(&name, (key % 12) as i32, &event(number, &format!("k{key}")));
    }
    publisher.flush();
    let task = Task {
        topic: name.clone(),
        group: name,
        stuck: "none".to_owned(),
        remembers: true,
        latency: Duration::from_millis(20),
        workers: 8,
        protocol: "cooperative-sticky".to_owned(),
    };
    let (paused, other) = (Process::start(&task), Process::start(&task));
    let mut before = next_lines(&paused, 200);
    let mut others = next_lines(&other, 200);
    paused.signal("STOP");
    let stopped = now();
    thread::sleep(Duration::from_secs(14));
    others.extend(other.lines.try_iter());
    let went_on = now();
    paused.signal("CONT");
    others.extend(next_lines(&other, 500));
    others.extend(other.kill());
    before.extend(paused.kill());
    let done: HashMap<u64, u64> = others.iter().map(|line| (line.id, line.from)).collect();
    let taken_over = others.iter().filter(|line| line.from > stopped).count();
    assert!(taken_over > 1_000, "the other one has gone on alone: {taken_over}");
    let again: Vec<_> = before
        .iter()
        .filter(|line| line.from > went_on && done.get(&line.id).is_some_and(|at| *at < went_on))
        .collect();
    assert_eq!(again.len(), 0, "begun after it went on, and done by then: {again:?}");
}
