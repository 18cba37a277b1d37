use std::time::Duration;

use super::*;
use crate::{event::Event, settlement::Ack, sink::Outgoing};

fn waiting(id: u32, line: Option<u64>) -> WaitingEvent {
    let event = Event::builder(id.to_string(), "s", "t").build().unwrap();
    let ack = Ack::detached();
    let outgoing = Outgoing { event, pool: "p".into(), attempt: 1, line, fence: None, ack };
    let past = Default::default();
    WaitingEvent { outgoing, since: Instant::now(), bytes: 10, number: 0, past, _room: None }
}

fn queue(lines: &[Option<u64>]) -> Queue {
    let mut queue = Queue::default();
    for (id, line) in lines.iter().enumerate() {
        assert!(queue.push(waiting(id as u32, *line)).is_none());
    }
    queue
}

fn ids(events: &[WaitingEvent]) -> String {
    events.iter().map(|waiting| waiting.outgoing.event.id()).collect()
}

fn sent(next: NextRequest) -> String {
    let NextRequest::Send(events) = next else { return format!("{next:?}") };
    ids(&events)
}

fn taken(next: NextRequest) -> Vec<WaitingEvent> {
    let NextRequest::Send(events) = next else { panic!("{next:?}") };
    events
}

/// The request of these events has failed: they are sent again then, in parts of so many.
fn fail(queue: &mut Queue, mut events: Vec<WaitingEvent>, due: Instant, parts_of: usize) {
    for part in events.chunks_mut(parts_of) {
        let with = part[0].number;
        part.iter_mut().for_each(|waiting| waiting.comes_back(due, with));
    }
    let lines: Vec<_> = events.iter().filter_map(|waiting| waiting.outgoing.line).collect();
    assert!(queue.come_back(events).is_empty());
    queue.is_over(&lines);
}

const A: Option<u64> = Some(1);
const B: Option<u64> = Some(2);
const MOMENT: Duration = Duration::from_millis(50);

fn batching(events: usize, bytes: usize) -> Option<Batching> {
    Some(Batching { events, bytes, within: MOMENT })
}

#[tokio::test]
async fn b06_of_one_line_one_event_is_under_way() {
    let (mut queue, now) = (queue(&[A, A, B, None, None, A]), Instant::now());
    let next = |queue: &mut Queue| sent(queue.next(8, None, now));
    assert_eq!([next(&mut queue), next(&mut queue)], ["0", "2"]);
    assert_eq!([next(&mut queue), next(&mut queue)], ["3", "4"], "without order");
    assert_eq!(next(&mut queue), "Wait");
    queue.is_over(&[1]);
    assert_eq!([next(&mut queue), next(&mut queue)], ["1", "Wait"]);
}

#[tokio::test]
async fn b06_with_one_request_at_once_all_go_as_they_were_accepted() {
    let (mut queue, now) = (queue(&[A, B, None, A]), Instant::now());
    for (id, line) in [("0", &[1][..]), ("1", &[2]), ("2", &[]), ("3", &[1])] {
        assert_eq!(sent(queue.next(1, None, now)), id);
        assert_eq!(sent(queue.next(1, None, now)), "Wait");
        queue.is_over(line);
    }
}

#[tokio::test(start_paused = true)]
async fn b06_a_batch_goes_when_it_is_full_or_has_waited() {
    let mut waits = queue(&[A, A, B]);
    let now = Instant::now();
    assert!(matches!(waits.next(8, batching(4, 1_000), now), NextRequest::WaitUntil(_)));
    assert_eq!(sent(waits.next(8, batching(4, 1_000), now + MOMENT)), "012");
    assert_eq!(sent(queue(&[A, A, B]).next(8, batching(2, 1_000), now)), "01");
    assert_eq!(sent(queue(&[A, A, B]).next(8, batching(9, 20), now)), "01");
    let mut ends = queue(&[A]);
    ends.finishing = true;
    assert_eq!(sent(ends.next(8, batching(9, 99), now)), "0", "nothing else comes");
    ends.is_over(&[1]);
    assert!(matches!(ends.next(8, None, now), NextRequest::End));
}

#[tokio::test(start_paused = true)]
async fn d13_what_is_sent_again_holds_up_its_line_and_nothing_else() {
    let (mut queue, now) = (queue(&[A, A, B, None]), Instant::now());
    let later = now + MOMENT;
    let first = taken(queue.next(2, None, now));
    fail(&mut queue, first, later, 1);
    // Of two at once both may go, though one event waits for its next attempt.
    assert_eq!(sent(queue.next(2, None, now)), "2");
    assert_eq!(sent(queue.next(2, None, now)), "3");
    queue.is_over(&[2]);
    queue.is_over(&[]);
    assert!(matches!(queue.next(2, None, now), NextRequest::WaitUntil(at) if at == later));
    assert_eq!(sent(queue.next(2, None, later)), "0");
    assert_eq!(sent(queue.next(2, None, later)), "Wait");
    queue.is_over(&[1]);
    assert_eq!(sent(queue.next(2, None, later)), "1");
}

#[tokio::test(start_paused = true)]
async fn d13_what_is_sent_again_and_what_is_new_take_turns() {
    let (mut queue, now) = (queue(&[A, B]), Instant::now());
    let first = taken(queue.next(2, None, now));
    fail(&mut queue, first, now + MOMENT, 1);
    tokio::time::advance(2 * MOMENT).await;
    assert!(queue.push(waiting(2, None)).is_none());
    let now = Instant::now();
    let order = [(); 3].map(|()| sent(queue.next(8, None, now)));
    assert_eq!(order, ["1", "0", "2"], "by the time from which each may go");
}

#[tokio::test(start_paused = true)]
async fn b06_with_one_request_at_once_nothing_overtakes_what_is_sent_again() {
    for batching in [None, batching(1, 1_000)] {
        let (mut queue, now) = (queue(&[A, B, None]), Instant::now());
        let first = taken(queue.next(1, batching, now));
        fail(&mut queue, first, now + MOMENT, 1);
        assert!(matches!(queue.next(1, batching, now), NextRequest::WaitUntil(_)));
        assert_eq!(sent(queue.next(1, batching, now + MOMENT)), "0");
        queue.is_over(&[1]);
        assert_eq!(sent(queue.next(1, batching, now + MOMENT)), "1");
    }
}

#[tokio::test(start_paused = true)]
async fn d13_a_batch_is_sent_again_as_it_was_and_in_halves_once_it_is_split() {
    let (mut queue, now, four) = (queue(&[A, A, B, B, A]), Instant::now(), batching(4, 1_000));
    let first = taken(queue.next(8, four, now));
    fail(&mut queue, first, now + MOMENT, 4);
    assert!(matches!(queue.next(8, four, now), NextRequest::WaitUntil(_)), "A is in it");
    let again = taken(queue.next(8, four, now + MOMENT));
    assert_eq!(ids(&again), "0123", "and no other comes with it");
    fail(&mut queue, again, now + MOMENT, 2);
    assert_eq!(sent(queue.next(8, four, now + MOMENT)), "01");
    assert_eq!(sent(queue.next(8, four, now + MOMENT)), "23");
}

#[tokio::test(start_paused = true)]
async fn d13_parts_of_a_batch_keep_the_order_of_a_line_that_they_share() {
    let (mut queue, now, all) = (queue(&[A, A, A, B]), Instant::now(), batching(4, 1_000));
    let first = taken(queue.next(8, all, now));
    fail(&mut queue, first, now, 2);
    assert_eq!(sent(queue.next(8, all, now)), "01");
    assert_eq!(sent(queue.next(8, all, now)), "3", "the other waits for its line");
    assert_eq!(sent(queue.next(8, all, now)), "Wait");
    queue.is_over(&[1]);
    assert_eq!(sent(queue.next(8, all, now)), "2");
}

#[tokio::test(start_paused = true)]
async fn d13_a_target_that_works_again_hurries_each_event_once() {
    let (mut queue, now) = (queue(&[A]), Instant::now());
    let later = now + MOMENT;
    let first = taken(queue.next(8, None, now));
    fail(&mut queue, first, later, 1);
    queue.hurry(now, false);
    let again = taken(queue.next(8, None, now));
    fail(&mut queue, again, later, 1);
    queue.hurry(now, false);
    assert!(matches!(queue.next(8, None, now), NextRequest::WaitUntil(_)));
    queue.hurry(now, true);
    assert_eq!(sent(queue.next(8, None, now)), "0", "by another configuration in any case");
}

#[tokio::test]
async fn b06_nothing_comes_back_once_it_is_given_up() {
    let (mut queue, now) = (queue(&[A]), Instant::now());
    let first = taken(queue.next(8, None, now));
    assert!(queue.give_up().is_empty());
    assert_eq!(queue.come_back(first).len(), 1);
}
