//! Accepted, unsettled events: one request of each line is under way and its other events wait.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    iter,
};

use tokio::time::Instant;

use super::{
    target::{Batching, RequestPace},
    waiting::WaitingEvent,
};

type ByLine<T> = HashMap<u64, T, foldhash::fast::RandomState>;
type LineSet = HashSet<u64, foldhash::fast::RandomState>;

/// Events, and which of them are next. While those of a request that failed wait for the next
/// attempt, the later ones of their lines wait for them; no request does.
#[derive(Debug)]
pub(super) struct RequestLines<K> {
    /// May be sent now, in the order of acceptance: of each line, only the first.
    ready: BTreeMap<u64, WaitingEvent<K>>,
    /// Failed for now, by due time and the number of the first: groups that are sent again
    /// together.
    again: BTreeMap<(Instant, u64), Vec<WaitingEvent<K>>>,
    /// The keys of those in `again` that were not hurried yet: each is moved once.
    unhurried: BTreeSet<(Instant, u64)>,
    /// The lines with an event that is ready, failed or under way, and the events behind it.
    behind: ByLine<VecDeque<WaitingEvent<K>>>,
    /// How many were accepted.
    accepted: u64,
    /// Requests under way.
    under_way: usize,
    finishing: bool,
    /// Nothing is sent any more.
    given_up: bool,
}

/// The next step.
#[derive(Debug)]
pub(super) enum NextRequest<K> {
    /// Send these in one request.
    Send(Vec<WaitingEvent<K>>),
    /// Wait until then: for more events of a batch, or for a retry.
    WaitUntil(Instant),
    /// Wait for new events, or for those under way.
    Wait,
    /// All is settled, and nothing comes any more.
    End,
}

/// A candidate for the next request.
struct RequestTurn {
    /// Its key among the retries; `None` if it was never sent.
    again: Option<(Instant, u64)>,
    /// The number of its first event.
    number: u64,
    /// It has waited for its turn since then.
    since: Instant,
    /// It may go from then on.
    ready: Instant,
}

impl<K> Default for RequestLines<K> {
    fn default() -> Self {
        Self {
            ready: BTreeMap::new(),
            again: BTreeMap::new(),
            unhurried: BTreeSet::new(),
            behind: ByLine::default(),
            accepted: 0,
            under_way: 0,
            finishing: false,
            given_up: false,
        }
    }
}

impl<K> RequestLines<K> {
    /// Gives the event back once it is finishing.
    pub(super) fn push(&mut self, mut waiting: WaitingEvent<K>) -> Option<WaitingEvent<K>> {
        if self.finishing {
            return Some(waiting);
        }
        waiting.number = self.accepted;
        self.accepted += 1;
        if let Some(line) = waiting.line {
            if let Some(behind) = self.behind.get_mut(&line) {
                behind.push_back(waiting);
                return None;
            }
            self.behind.insert(line, VecDeque::new());
        }
        self.ready.insert(waiting.number, waiting);
        None
    }

    /// The next step.
    pub(super) fn next(&mut self, pace: &RequestPace, now: Instant) -> NextRequest<K> {
        let is_empty = self.ready.is_empty() && self.again.is_empty();
        if self.finishing && is_empty && self.under_way == 0 {
            return NextRequest::End;
        }
        if self.under_way >= pace.concurrency {
            return NextRequest::Wait;
        }
        let in_order = pace.concurrency == 1;
        let turns = [self.turn_again(in_order), self.turn_new(pace.batching.as_ref())];
        let turns = turns.into_iter().flatten();
        let turn = match in_order {
            // One at a time, nothing overtakes anything.
            true => turns.min_by_key(|turn| turn.number),
            // Of those that may go, the one that has waited longest: neither new requests nor ones
            // that keep failing starve the other.
            false => turns.min_by_key(|turn| (turn.ready.max(now), turn.since)),
        };
        match turn {
            None => NextRequest::Wait,
            Some(turn) if turn.ready > now => NextRequest::WaitUntil(turn.ready),
            Some(turn) => {
                self.under_way += 1;
                NextRequest::Send(match turn.again {
                    Some(key) => {
                        self.unhurried.remove(&key);
                        self.again.remove(&key).unwrap_or_default()
                    }
                    None => self.take_new(pace.batching.as_ref()),
                })
            }
        }
    }

    /// The retry that is due first; in order, the one that was accepted first.
    fn turn_again(&self, in_order: bool) -> Option<RequestTurn> {
        let mut keys = self.again.keys();
        let key = if in_order { keys.min_by_key(|(_, number)| *number) } else { keys.next() };
        key.map(|&(due, number)| RequestTurn {
            again: Some((due, number)),
            number,
            since: due,
            ready: due,
        })
    }

    fn turn_new(&self, batching: Option<&Batching>) -> Option<RequestTurn> {
        let (number, first) = self.ready.first_key_value()?;
        let collects = batching.filter(|batching| !self.finishing && !self.fills(batching));
        let within = collects.map(|batching| batching.within).unwrap_or_default();
        let (number, since) = (*number, first.due);
        Some(RequestTurn { again: None, number, since, ready: since + within })
    }

    /// Whether the ready events, and those behind them, fill a batch.
    fn fills(&self, batching: &Batching) -> bool {
        let (mut events, mut bytes) = (0, 0_usize);
        let with_line =
            |first| iter::once(first).chain(self.line_behind(first).into_iter().flatten());
        self.ready.values().flat_map(with_line).any(|waiting| {
            events += 1;
            bytes = bytes.saturating_add(waiting.bytes);
            events >= batching.events || (events > 1 && bytes > batching.bytes)
        })
    }

    fn line_behind(&self, first: &WaitingEvent<K>) -> Option<&VecDeque<WaitingEvent<K>>> {
        self.behind.get(&first.line?)
    }

    /// Those that were accepted first. Several of one line may be among them.
    fn take_new(&mut self, batching: Option<&Batching>) -> Vec<WaitingEvent<K>> {
        let (most, most_bytes) =
            batching.map_or((1, usize::MAX), |batching| (batching.events, batching.bytes));
        let (mut taken, mut bytes, mut followers) = (Vec::new(), 0_usize, Vec::new());
        while taken.len() < most
            && let Some(first) = self.ready.first_entry()
        {
            bytes = bytes.saturating_add(first.get().bytes);
            if !taken.is_empty() && bytes > most_bytes {
                break;
            }
            let first = first.remove();
            let behind =
                first.line.filter(|_| most > 1).and_then(|line| self.behind.get_mut(&line));
            if let Some(next) = behind.and_then(VecDeque::pop_front) {
                followers.push(next.number);
                self.ready.insert(next.number, next);
            }
            taken.push(first);
        }
        // Those that do not go along with the first of their line wait for it.
        for number in followers {
            let follower = self.ready.remove(&number);
            follower.into_iter().for_each(|follower| self.stands_back(follower));
        }
        taken
    }

    /// To the head of those behind their line's first.
    fn stands_back(&mut self, waiting: WaitingEvent<K>) {
        if let Some(line) = waiting.line {
            self.behind.entry(line).or_default().push_front(waiting);
        }
    }

    /// A request of these lines is over. Its events are settled, except for those that are sent
    /// again: the events of each part together, before all others of their lines. Returns these if
    /// nothing is sent any more.
    pub(super) fn is_over(
        &mut self,
        lines: Vec<u64>,
        parts: Vec<Vec<WaitingEvent<K>>>,
        now: Instant,
    ) -> Vec<Vec<WaitingEvent<K>>> {
        self.under_way -= 1;
        if self.given_up {
            return parts;
        }
        let held = self.come_back(parts);
        for line in lines {
            if !held.contains(&line) {
                self.goes_on(line, now);
            }
        }
        Vec::new()
    }

    /// The lines that events come back to. An event waits for those of earlier parts in its line.
    fn come_back(&mut self, parts: Vec<Vec<WaitingEvent<K>>>) -> LineSet {
        let (mut held, mut waits) = (LineSet::default(), Vec::new());
        for part in parts {
            let (go, wait): (Vec<_>, Vec<_>) = part
                .into_iter()
                .partition(|waiting| waiting.line.is_none_or(|line| !held.contains(&line)));
            held.extend(go.iter().filter_map(|waiting| waiting.line));
            waits.extend(wait);
            self.send_again(go);
        }
        waits.into_iter().rev().for_each(|waiting| self.stands_back(waiting));
        held
    }

    /// These are sent again together once the first of them is due.
    fn send_again(&mut self, part: Vec<WaitingEvent<K>>) {
        let Some(first) = part.first() else { return };
        let key = (first.due, first.number);
        if !first.hurried {
            self.unhurried.insert(key);
        }
        self.again.insert(key, part);
    }

    /// The first event of a line is settled, so the next one may go. If that was sent before, it
    /// goes alone, and at once: its target works.
    fn goes_on(&mut self, line: u64, now: Instant) {
        match self.behind.get_mut(&line).map(VecDeque::pop_front) {
            Some(Some(mut next)) if next.attempt > 0 => {
                next.due = next.due.min(now);
                self.send_again(vec![next]);
            }
            Some(Some(next)) => _ = self.ready.insert(next.number, next),
            Some(None) => _ = self.behind.remove(&line),
            None => {}
        }
    }

    /// Retries need not wait any longer. If `anew`, that includes those that were hurried before.
    pub(super) fn hurry(&mut self, now: Instant, anew: bool) {
        let unhurried = std::mem::take(&mut self.unhurried);
        let keys = if anew { self.again.keys().copied().collect() } else { unhurried };
        for key in keys {
            let Some(mut part) = self.again.remove(&key) else { continue };
            for waiting in &mut part {
                (waiting.due, waiting.hurried) = (waiting.due.min(now), !anew);
            }
            self.send_again(part);
        }
    }

    pub(super) fn finish(&mut self) {
        self.finishing = true;
    }

    /// Nothing is sent any more: returns the waiting events.
    pub(super) fn give_up(&mut self) -> impl Iterator<Item = WaitingEvent<K>> + use<K> {
        let (ready, again, behind) = (
            std::mem::take(&mut self.ready),
            std::mem::take(&mut self.again),
            std::mem::take(&mut self.behind),
        );
        (self.finishing, self.given_up) = (true, true);
        let again = again.into_values().flatten();
        ready.into_values().chain(again).chain(behind.into_values().flatten())
    }
}

#[cfg(test)]
mod tests;
