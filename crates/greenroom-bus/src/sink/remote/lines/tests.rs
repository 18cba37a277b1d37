use std::time::Duration;

use greenroom::Backoff;

use super::*;
use crate::settlement::Ack;

type Events = Vec<WaitingEvent<u32>>;

fn waiting(id: u32, line: Option<u64>) -> WaitingEvent<u32> {
    WaitingEvent::new(id, line, Ack::detached(), 10)
}

fn queue(lines: &[Option<u64>]) -> RequestLines<u32> {
    let mut queue = RequestLines::default();
    for (id, line) in lines.iter().enumerate() {
        assert!(queue.push(waiting(id as u32, *line)).is_none());
    }
    queue
}

fn ids(events: &Events) -> String {
    events.iter().map(|waiting| waiting.kept.to_string()).collect()
}

fn next(
    queue: &mut RequestLines<u32>,
    concurrency: usize,
    batching: Option<Batching>,
    now: Instant,
) -> NextRequest<u32> {
    let unused = Backoff::new(MOMENT, MOMENT);
    queue.next(&RequestPace { concurrency, batching, backoff: unused, probe: unused }, now)
}

fn sent(next: NextRequest<u32>) -> String {
    let NextRequest::Send(events) = next else { return format!("{next:?}") };
    ids(&events)
}

fn taken(next: NextRequest<u32>) -> Events {
    let NextRequest::Send(events) = next else { panic!("{next:?}") };
    events
}

fn over(queue: &mut RequestLines<u32>, line: Option<u64>) {
    assert!(queue.is_over(line.into_iter().collect(), Vec::new(), Instant::now()).is_empty());
}

/// The request of these events has failed: they are sent again then, in parts of so many.
fn fail(queue: &mut RequestLines<u32>, mut events: Events, due: Instant, parts_of: usize) {
    let mut lines: Vec<_> = events.iter().filter_map(|waiting| waiting.line).collect();
    lines.dedup();
    for waiting in &mut events {
        (waiting.attempt, waiting.due) = (1, due);
    }
    let mut parts = Vec::new();
    while !events.is_empty() {
        let rest = events.split_off(parts_of.min(events.len()));
        parts.push(std::mem::replace(&mut events, rest));
    }
    assert!(queue.is_over(lines, parts, Instant::now()).is_empty());
}

const A: Option<u64> = Some(1);
const B: Option<u64> = Some(2);
const MOMENT: Duration = Duration::from_millis(50);

fn batching(events: usize, bytes: usize) -> Option<Batching> {
    Some(Batching { events, bytes, within: MOMENT })
}

#[tokio::test]
async fn b06_n04_of_one_line_one_event_is_under_way() {
    let (mut queue, now) = (queue(&[A, A, B, None, None, A]), Instant::now());
    let turn = |queue: &mut RequestLines<u32>| sent(next(queue, 8, None, now));
    assert_eq!([turn(&mut queue), turn(&mut queue)], ["0", "2"]);
    assert_eq!([turn(&mut queue), turn(&mut queue)], ["3", "4"], "without order");
    assert_eq!(turn(&mut queue), "Wait");
    over(&mut queue, A);
    assert_eq!([turn(&mut queue), turn(&mut queue)], ["1", "Wait"]);
}

#[tokio::test]
async fn b06_n04_with_one_request_at_once_all_go_as_they_were_accepted() {
    let (mut queue, now) = (queue(&[A, B, None, A]), Instant::now());
    for (id, line) in [("0", A), ("1", B), ("2", None), ("3", A)] {
        assert_eq!(sent(next(&mut queue, 1, None, now)), id);
        assert_eq!(sent(next(&mut queue, 1, None, now)), "Wait");
        over(&mut queue, line);
    }
}

#[tokio::test(start_paused = true)]
async fn b06_a_batch_goes_when_it_is_full_or_has_waited() {
    let mut waits = queue(&[A, A, B]);
    let now = Instant::now();
    assert!(matches!(next(&mut waits, 8, batching(4, 1_000), now), NextRequest::WaitUntil(_)));
    assert_eq!(sent(next(&mut waits, 8, batching(4, 1_000), now + MOMENT)), "012");
    assert_eq!(sent(next(&mut queue(&[A, A, B]), 8, batching(2, 1_000), now)), "01");
    assert_eq!(sent(next(&mut queue(&[A, A, B]), 8, batching(9, 20), now)), "01");
    let mut ends = queue(&[A]);
    ends.finish();
    assert_eq!(sent(next(&mut ends, 8, batching(9, 99), now)), "0", "nothing else comes");
    over(&mut ends, A);
    assert!(matches!(next(&mut ends, 8, None, now), NextRequest::End));
}

#[tokio::test(start_paused = true)]
async fn d13_n04_what_is_sent_again_holds_up_its_line_and_nothing_else() {
    let (mut queue, now) = (queue(&[A, A, B, None]), Instant::now());
    let later = now + MOMENT;
    let first = taken(next(&mut queue, 2, None, now));
    fail(&mut queue, first, later, 1);
    // Of two at once both may go, though one event waits for its next attempt.
    assert_eq!(sent(next(&mut queue, 2, None, now)), "2");
    assert_eq!(sent(next(&mut queue, 2, None, now)), "3");
    over(&mut queue, B);
    over(&mut queue, None);
    assert!(matches!(next(&mut queue, 2, None, now), NextRequest::WaitUntil(at) if at == later));
    assert_eq!(sent(next(&mut queue, 2, None, later)), "0");
    assert_eq!(sent(next(&mut queue, 2, None, later)), "Wait");
    over(&mut queue, A);
    assert_eq!(sent(next(&mut queue, 2, None, later)), "1");
}

#[tokio::test(start_paused = true)]
async fn d13_n04_what_is_sent_again_and_what_is_new_take_turns() {
    let (mut queue, now) = (queue(&[A, B]), Instant::now());
    let first = taken(next(&mut queue, 2, None, now));
    fail(&mut queue, first, now + MOMENT, 1);
    tokio::time::advance(2 * MOMENT).await;
    assert!(queue.push(waiting(2, None)).is_none());
    let now = Instant::now();
    let order = [(); 3].map(|()| sent(next(&mut queue, 8, None, now)));
    assert_eq!(order, ["1", "0", "2"], "by the time from which each may go");
}

#[tokio::test(start_paused = true)]
async fn b06_n04_with_one_request_at_once_nothing_overtakes_what_is_sent_again() {
    for batching in [None, batching(1, 1_000)] {
        let (mut queue, now) = (queue(&[A, B, None]), Instant::now());
        let first = taken(next(&mut queue, 1, batching, now));
        fail(&mut queue, first, now + MOMENT, 1);
        assert!(matches!(next(&mut queue, 1, batching, now), NextRequest::WaitUntil(_)));
        assert_eq!(sent(next(&mut queue, 1, batching, now + MOMENT)), "0");
        over(&mut queue, A);
        assert_eq!(sent(next(&mut queue, 1, batching, now + MOMENT)), "1");
    }
}

#[tokio::test(start_paused = true)]
async fn d13_a_batch_is_sent_again_as_it_was_and_in_halves_once_it_is_split() {
    let (mut queue, now, four) = (queue(&[A, A, B, B, A]), Instant::now(), batching(4, 1_000));
    let first = taken(next(&mut queue, 8, four, now));
    fail(&mut queue, first, now + MOMENT, 4);
    assert!(matches!(next(&mut queue, 8, four, now), NextRequest::WaitUntil(_)), "A is in it");
    let again = taken(next(&mut queue, 8, four, now + MOMENT));
    assert_eq!(ids(&again), "0123", "and no other comes with it");
    fail(&mut queue, again, now + MOMENT, 2);
    assert_eq!(sent(next(&mut queue, 8, four, now + MOMENT)), "01");
    assert_eq!(sent(next(&mut queue, 8, four, now + MOMENT)), "23");
}

#[tokio::test(start_paused = true)]
async fn d13_parts_of_a_batch_keep_the_order_of_a_line_that_they_share() {
    let (mut queue, now, all) = (queue(&[A, A, A, B]), Instant::now(), batching(4, 1_000));
    let first = taken(next(&mut queue, 8, all, now));
    fail(&mut queue, first, now, 2);
    assert_eq!(sent(next(&mut queue, 8, all, now)), "01");
    assert_eq!(sent(next(&mut queue, 8, all, now)), "3", "the other waits for its line");
    assert_eq!(sent(next(&mut queue, 8, all, now)), "Wait");
    over(&mut queue, A);
    assert_eq!(sent(next(&mut queue, 8, all, now)), "2");
}

#[tokio::test(start_paused = true)]
async fn d13_n04_a_target_that_works_again_hurries_each_event_once() {
    let (mut queue, now) = (queue(&[A]), Instant::now());
    let later = now + MOMENT;
    let first = taken(next(&mut queue, 8, None, now));
    fail(&mut queue, first, later, 1);
    queue.hurry(now, false);
    let again = taken(next(&mut queue, 8, None, now));
    fail(&mut queue, again, later, 1);
    queue.hurry(now, false);
    assert!(matches!(next(&mut queue, 8, None, now), NextRequest::WaitUntil(_)));
    queue.hurry(now, true);
    assert_eq!(sent(next(&mut queue, 8, None, now)), "0", "by another configuration in any case");
}

#[tokio::test(start_paused = true)]
async fn d13_n04_what_stands_behind_its_line_is_sent_again_at_once_when_the_target_works() {
    let (mut queue, now, both) = (queue(&[A, A]), Instant::now(), batching(2, 1_000));
    let first = taken(next(&mut queue, 8, both, now));
    fail(&mut queue, first, now + MOMENT, 1);
    queue.hurry(now, false);
    assert_eq!(sent(next(&mut queue, 8, both, now)), "0");
    over(&mut queue, A);
    assert_eq!(sent(next(&mut queue, 8, both, now)), "1", "not after its own wait");
}

#[tokio::test(start_paused = true)]
async fn d13_n04_an_event_that_was_hurried_is_not_looked_at_again() {
    let (mut queue, now) = (queue(&[None, None]), Instant::now());
    let later = now + MOMENT;
    for _ in 0..2 {
        let event = taken(next(&mut queue, 8, None, now));
        fail(&mut queue, event, later, 1);
    }
    assert_eq!(queue.unhurried.len(), 2);
    queue.hurry(now, false);
    assert!(queue.unhurried.is_empty());
    let again = taken(next(&mut queue, 8, None, now));
    fail(&mut queue, again, later, 1);
    assert!(queue.unhurried.is_empty(), "it fails of something else");
    queue.hurry(now, true);
    assert_eq!(queue.unhurried.len(), 2, "another configuration may hurry it once more");
    while let NextRequest::Send(_) = next(&mut queue, 8, None, now) {}
    assert!(queue.unhurried.is_empty());
}

#[tokio::test]
async fn b06_n04_nothing_comes_back_once_it_is_given_up() {
    let (mut queue, now) = (queue(&[A]), Instant::now());
    let first = taken(next(&mut queue, 8, None, now));
    assert_eq!(queue.give_up().count(), 0);
    assert_eq!(queue.is_over(vec![1], vec![first], now).len(), 1);
}
