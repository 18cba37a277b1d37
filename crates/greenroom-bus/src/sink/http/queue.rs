//! What was accepted and is not settled: what waits, and which lines are under way.

use std::collections::{HashSet, VecDeque};

use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::config::Batching;
use crate::sink::Outgoing;

/// An event that was accepted. It gives its room back when it is dropped.
#[derive(Debug)]
pub(super) struct WaitingEvent {
    pub(super) outgoing: Outgoing,
    pub(super) since: Instant,
    pub(super) bytes: usize,
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

/// In the order of acceptance.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<WaitingEvent>,
    /// Lines of which an event is under way. The others of these lines wait.
    busy: HashSet<u64, foldhash::fast::RandomState>,
    /// Requests under way.
    requests: usize,
    pub(super) finishing: bool,
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum NextRequest {
    /// Send these in one request.
    Send(Vec<WaitingEvent>),
    /// Wait until then for more of them.
    Collect(Instant),
    /// Wait for what comes, or for what is under way.
    Wait,
    /// All is settled, and nothing comes any more.
    End,
}

impl Queue {
    /// Gives the event back once it is finishing.
    pub(super) fn push(&mut self, waiting: WaitingEvent) -> Option<WaitingEvent> {
        if self.finishing {
            return Some(waiting);
        }
        self.waiting.push_back(waiting);
        None
    }

    /// What is next, with so many requests at once.
    pub(super) fn next(
        &mut self,
        concurrency: usize,
        batching: Option<Batching>,
        now: Instant,
    ) -> NextRequest {
        if self.finishing && self.waiting.is_empty() && self.requests == 0 {
            return NextRequest::End;
        }
        if self.requests >= concurrency {
            return NextRequest::Wait;
        }
        let (chosen, is_full) = self.choose(batching);
        let Some(first) = chosen.first() else { return NextRequest::Wait };
        if let Some(batching) = batching.filter(|_| !is_full && !self.finishing) {
            let until = self.waiting[*first].since + batching.within;
            if now < until {
                return NextRequest::Collect(until);
            }
        }
        NextRequest::Send(self.take(&chosen))
    }

    /// The places of the events of the next request, and whether it takes no more of them.
    fn choose(&self, batching: Option<Batching>) -> (Vec<usize>, bool) {
        let (most, most_bytes) = batching.map_or((1, usize::MAX), |of| (of.events, of.bytes));
        let (mut chosen, mut bytes) = (Vec::new(), 0_usize);
        for (place, waiting) in self.waiting.iter().enumerate() {
            if waiting.outgoing.line.is_some_and(|line| self.busy.contains(&line)) {
                continue;
            }
            bytes = bytes.saturating_add(waiting.bytes);
            if !chosen.is_empty() && bytes > most_bytes {
                return (chosen, true);
            }
            chosen.push(place);
            if chosen.len() == most {
                return (chosen, true);
            }
        }
        (chosen, false)
    }

    fn take(&mut self, chosen: &[usize]) -> Vec<WaitingEvent> {
        let taken = chosen.iter().rev().filter_map(|place| self.waiting.remove(*place));
        let mut taken: Vec<_> = taken.collect();
        taken.reverse();
        self.busy.extend(taken.iter().filter_map(|waiting| waiting.outgoing.line));
        self.requests += 1;
        taken
    }

    /// A request of these lines is over.
    pub(super) fn is_over(&mut self, lines: &[u64]) {
        self.requests -= 1;
        for line in lines {
            self.busy.remove(line);
        }
    }

    /// Nothing is sent any more.
    pub(super) fn give_up(&mut self) -> VecDeque<WaitingEvent> {
        self.finishing = true;
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{event::Event, settlement::Ack};

    fn waiting(id: u32, line: Option<u64>) -> WaitingEvent {
        let event = Event::builder(id.to_string(), "s", "t").build().unwrap();
        let ack = Ack::detached();
        let outgoing = Outgoing { event, pool: "p".into(), attempt: 1, line, ack };
        WaitingEvent { outgoing, since: Instant::now(), bytes: 10, _room: None }
    }

    fn queue(lines: &[Option<u64>]) -> Queue {
        let mut queue = Queue::default();
        for (id, line) in lines.iter().enumerate() {
            assert!(queue.push(waiting(id as u32, *line)).is_none());
        }
        queue
    }

    fn sent(next: NextRequest) -> String {
        let NextRequest::Send(events) = next else { return format!("{next:?}") };
        events.iter().map(|waiting| waiting.outgoing.event.id()).collect()
    }

    const A: Option<u64> = Some(1);
    const B: Option<u64> = Some(2);

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
        let batching =
            |events, bytes| Some(Batching { events, bytes, within: Duration::from_millis(50) });
        let mut waits = queue(&[A, A, B]);
        let now = Instant::now();
        assert!(matches!(waits.next(8, batching(4, 1_000), now), NextRequest::Collect(_)));
        assert_eq!(sent(waits.next(8, batching(4, 1_000), now + Duration::from_millis(50))), "012");
        assert_eq!(sent(queue(&[A, A, B]).next(8, batching(2, 1_000), now)), "01");
        assert_eq!(sent(queue(&[A, A, B]).next(8, batching(9, 20), now)), "01");
        let mut ends = queue(&[A]);
        ends.finishing = true;
        assert_eq!(sent(ends.next(8, batching(9, 99), now)), "0", "nothing else comes");
        ends.is_over(&[1]);
        assert!(matches!(ends.next(8, None, now), NextRequest::End));
    }
}
