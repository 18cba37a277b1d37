//! What was accepted and is not settled: what waits, and which lines are under way.

use std::collections::{HashSet, VecDeque};

use tokio::time::Instant;

use super::{config::Batching, waiting::WaitingEvent};

type LineSet = HashSet<u64, foldhash::fast::RandomState>;

/// Events in the order of acceptance. One whose request has failed for now comes back to its place,
/// and is sent again from there. As the later events of its line stand behind it, they wait for it;
/// no request does.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<WaitingEvent>,
    /// How many of those that wait were sent before.
    returned: usize,
    /// How many were accepted.
    accepted: u64,
    /// Lines of which an event is under way. The others of these lines wait.
    busy: LineSet,
    /// Requests under way.
    requests: usize,
    pub(super) finishing: bool,
    /// Nothing is sent any more.
    given_up: bool,
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum NextRequest {
    /// Send these in one request.
    Send(Vec<WaitingEvent>),
    /// Wait until then: for more of a batch, or for one that is sent again.
    WaitUntil(Instant),
    /// Wait for what comes, or for what is under way.
    Wait,
    /// All is settled, and nothing comes any more.
    End,
}

/// What could be the next request.
struct NextChoice {
    places: Vec<usize>,
    /// It has waited for its turn since then.
    since: Instant,
    /// It may go from then on.
    ready: Instant,
}

impl Queue {
    /// Gives the event back once it is finishing.
    pub(super) fn push(&mut self, mut waiting: WaitingEvent) -> Option<WaitingEvent> {
        if self.finishing {
            return Some(waiting);
        }
        waiting.number = self.accepted;
        self.accepted += 1;
        self.waiting.push_back(waiting);
        None
    }

    /// Events of a request that are to be sent again: into their places. Called before the request
    /// [is over](Self::is_over). Gives them back once nothing is sent any more.
    pub(super) fn come_back(&mut self, events: Vec<WaitingEvent>) -> Vec<WaitingEvent> {
        if self.given_up {
            return events;
        }
        self.returned += events.len();
        for event in events {
            let place = self.waiting.partition_point(|waiting| waiting.number < event.number);
            self.waiting.insert(place, event);
        }
        Vec::new()
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
        // One at a time, nothing overtakes anything.
        let heads = match concurrency {
            1 => [(!self.waiting.is_empty()).then_some(0), None],
            _ => self.heads(),
        };
        let choices = heads.into_iter().flatten();
        let choices = choices.map(|head| self.choose(head, concurrency == 1, batching, now));
        // Of those that may go, the one that has waited longest: neither what is new nor what fails
        // again and again keeps the other from its turn.
        match choices.min_by_key(|choice| (choice.ready.max(now), choice.since)) {
            None => NextRequest::Wait,
            Some(choice) if choice.ready > now => NextRequest::WaitUntil(choice.ready),
            Some(choice) => NextRequest::Send(self.take(&choice.places)),
        }
    }

    /// The places of the event that is sent again soonest, and of the first that was never sent: of
    /// those that stand behind none of their line.
    fn heads(&self) -> [Option<usize>; 2] {
        let (mut again, mut fresh) = (None, None);
        let (mut met, mut returned) = (LineSet::default(), self.returned);
        for (place, waiting) in self.waiting.iter().enumerate() {
            if returned == 0 && fresh.is_some() {
                break;
            }
            let line = waiting.outgoing.line;
            let leads = line.is_none_or(|line| !self.busy.contains(&line) && met.insert(line));
            returned -= usize::from(waiting.past.resend.is_some());
            match waiting.past.resend {
                _ if !leads => {}
                None => fresh = fresh.or(Some(place)),
                Some(resend) if again.is_some_and(|(due, _)| due <= resend.due) => {}
                Some(resend) => again = Some((resend.due, place)),
            }
        }
        [again.map(|(_, place)| place), fresh]
    }

    /// The request that begins with the event of this place.
    fn choose(
        &self,
        first: usize,
        in_order: bool,
        batching: Option<Batching>,
        now: Instant,
    ) -> NextChoice {
        let head = &self.waiting[first];
        let (places, is_full) = match batching {
            Some(batching) => self.together(first, in_order, batching, now),
            None => (vec![first], true),
        };
        let since = head.past.resend.map_or(head.since, |resend| resend.due);
        let collects = head.past.resend.is_none() && !is_full && !self.finishing;
        let within = batching.filter(|_| collects).map(|batching| batching.within);
        NextChoice { places, since, ready: since + within.unwrap_or_default() }
    }

    /// The places of the events that go with the one of this place, and whether the request takes
    /// no more of them.
    fn together(
        &self,
        first: usize,
        in_order: bool,
        batching: Batching,
        now: Instant,
    ) -> (Vec<usize>, bool) {
        let (mut chosen, mut bytes, mut passed) = (Vec::new(), 0_usize, LineSet::default());
        for (place, waiting) in self.waiting.iter().enumerate() {
            let line = waiting.outgoing.line;
            let is_held = |line| self.busy.contains(&line) || passed.contains(&line);
            let goes = place >= first && waiting.goes_with(&self.waiting[first], now);
            if !goes || line.is_some_and(is_held) {
                if in_order {
                    break;
                }
                passed.extend(line);
                continue;
            }
            bytes = bytes.saturating_add(waiting.bytes);
            if !chosen.is_empty() && bytes > batching.bytes {
                return (chosen, true);
            }
            chosen.push(place);
            if chosen.len() == batching.events {
                return (chosen, true);
            }
        }
        (chosen, false)
    }

    fn take(&mut self, chosen: &[usize]) -> Vec<WaitingEvent> {
        let taken = chosen.iter().rev().filter_map(|place| self.waiting.remove(*place));
        let mut taken: Vec<_> = taken.collect();
        taken.reverse();
        self.returned -= taken.iter().filter(|taken| taken.past.resend.is_some()).count();
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

    /// What waits to be sent again need not wait any longer.
    pub(super) fn hurry(&mut self, now: Instant, anew: bool) {
        self.waiting.iter_mut().for_each(|waiting| waiting.hurry(now, anew));
    }

    /// Nothing is sent any more.
    pub(super) fn give_up(&mut self) -> VecDeque<WaitingEvent> {
        (self.finishing, self.given_up) = (true, true);
        self.returned = 0;
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests;
