//! What was accepted and not settled: of each line, one event is under way and the others wait.

use std::collections::{BTreeMap, HashMap, VecDeque};

use greenroom_bus::settlement::Ack;
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::message::Message;

/// An event that was accepted. It gives its room back when it is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Or why there is none: it is rejected in its turn.
    pub(super) message: Result<Message, String>,
    pub(super) line: Option<u64>,
    pub(super) ack: Ack,
    /// It waits for its turn since then: since it was accepted, or may be tried again.
    pub(super) due: Instant,
    /// Its own for as long as it is not settled. It gets one when it is pushed.
    pub(super) number: u64,
    pub(super) failures: u32,
    /// It was tried again early, because the server worked again. Only once: one that fails after
    /// that fails of something else.
    pub(super) hurried: bool,
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

impl Waiting {
    pub(super) fn new(
        message: Result<Message, String>,
        line: Option<u64>,
        ack: Ack,
        room: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let (due, number, failures, hurried) = (Instant::now(), 0, 0, false);
        Self { message, line, ack, due, number, failures, hurried, _room: room }
    }
}

#[derive(Debug, Default)]
pub(super) struct Lines {
    /// May be published now, in the order of acceptance.
    ready: VecDeque<Waiting>,
    /// Failed for now, by when they are due. Their lines wait for them; no publish does.
    failed: BTreeMap<(Instant, u64), Waiting>,
    /// Lines of which an event is ready, failed or under way, and those behind it.
    behind: HashMap<u64, VecDeque<Waiting>>,
    accepted: u64,
    under_way: usize,
    finishing: bool,
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum Next {
    Publish(Waiting),
    /// Wait until then for one that is tried again, for what comes, or for what is under way.
    WaitUntil(Instant),
    /// Wait for what comes, or for what is under way.
    Wait,
    /// All is settled, and nothing comes any more.
    End,
}

impl Lines {
    /// Gives the event back once nothing is to come any more.
    pub(super) fn push(&mut self, mut waiting: Waiting) -> Option<Waiting> {
        if self.finishing {
            return Some(waiting);
        }
        self.accepted += 1;
        waiting.number = self.accepted;
        let line = waiting.line.and_then(|line| {
            let is_busy = self.behind.contains_key(&line);
            let behind = self.behind.entry(line).or_default();
            is_busy.then_some(behind)
        });
        line.unwrap_or(&mut self.ready).push_back(waiting);
        None
    }

    /// What is next, with so many publishes at once.
    pub(super) fn next(&mut self, concurrency: usize, now: Instant) -> Next {
        if self.under_way >= concurrency {
            return Next::Wait;
        }
        let again = self.failed.first_key_value().map(|((due, _), _)| *due);
        // One at a time, nothing overtakes anything.
        let fresh = self.ready.front().filter(|_| concurrency > 1 || again.is_none());
        // Of those that may go, the one that has waited longest: neither what is new nor what fails
        // again and again keeps the other from its turn.
        let waiting = match (fresh.map(|fresh| fresh.due), again) {
            (None, None) if self.finishing && self.under_way == 0 => return Next::End,
            (None, None) => return Next::Wait,
            (None, Some(due)) if due > now => return Next::WaitUntil(due),
            (Some(since), Some(due)) if due > now.min(since) => self.ready.pop_front(),
            (_, Some(_)) => self.failed.pop_first().map(|(_, waiting)| waiting),
            (Some(_), None) => self.ready.pop_front(),
        };
        self.under_way += usize::from(waiting.is_some());
        waiting.map_or(Next::Wait, Next::Publish)
    }

    /// A publish has failed for now: it is made again once it is due, and its line waits for it.
    pub(super) fn fails(&mut self, waiting: Waiting) {
        self.under_way -= 1;
        self.failed.insert((waiting.due, waiting.number), waiting);
    }

    /// What has failed need not wait any longer: the server may be well again. Where an operator
    /// says so, also what was hurried before.
    pub(super) fn hurry(&mut self, now: Instant, anew: bool) {
        let goes = |of: &&Waiting| anew || !of.hurried;
        let keys = self.failed.values().filter(goes).map(|of| (of.due, of.number));
        for key in keys.collect::<Vec<_>>() {
            let Some(mut waiting) = self.failed.remove(&key) else { continue };
            waiting.due = waiting.due.min(now);
            waiting.hurried = !anew;
            self.failed.insert((waiting.due, waiting.number), waiting);
        }
    }

    /// An event of this line is settled: the next of it may go.
    pub(super) fn is_over(&mut self, line: Option<u64>) {
        self.under_way -= 1;
        let Some(line) = line else { return };
        match self.behind.get_mut(&line).and_then(VecDeque::pop_front) {
            Some(next) => self.ready.push_back(next),
            None => _ = self.behind.remove(&line),
        }
    }

    pub(super) fn finish(&mut self) {
        self.finishing = true;
    }

    /// Nothing is published any more: what waited.
    pub(super) fn give_up(&mut self) -> Vec<Waiting> {
        self.finishing = true;
        let ready = std::mem::take(&mut self.ready).into_iter();
        let failed = std::mem::take(&mut self.failed).into_values();
        let behind = std::mem::take(&mut self.behind).into_values().flatten();
        ready.chain(failed).chain(behind).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn waiting(id: u32, line: Option<u64>) -> Waiting {
        Waiting::new(Err(id.to_string()), line, Ack::detached(), None)
    }

    fn lines(lines: &[Option<u64>]) -> Lines {
        let mut all = Lines::default();
        for (id, line) in lines.iter().enumerate() {
            assert!(all.push(waiting(id as u32, *line)).is_none());
        }
        all
    }

    fn next(lines: &mut Lines, concurrency: usize) -> String {
        match lines.next(concurrency, Instant::now()) {
            Next::Publish(waiting) => waiting.message.unwrap_err(),
            Next::WaitUntil(_) => "WaitUntil".to_owned(),
            other => format!("{other:?}"),
        }
    }

    const A: Option<u64> = Some(1);
    const B: Option<u64> = Some(2);

    #[test]
    fn n04_of_one_line_one_event_is_under_way() {
        let mut lines = lines(&[A, A, B, None, None, A]);
        let first: Vec<_> = (0..5).map(|_| next(&mut lines, 9)).collect();
        assert_eq!(first, ["0", "2", "3", "4", "Wait"]);
        lines.is_over(A);
        lines.is_over(B);
        assert_eq!([next(&mut lines, 9), next(&mut lines, 9)], ["1", "Wait"]);
        assert!(lines.push(waiting(6, A)).is_none() && lines.push(waiting(7, B)).is_none());
        assert_eq!([next(&mut lines, 9), next(&mut lines, 9)], ["7", "Wait"], "B had ended");
        lines.is_over(A);
        assert_eq!([next(&mut lines, 9), next(&mut lines, 9)], ["5", "Wait"]);
        lines.is_over(A);
        assert_eq!([next(&mut lines, 9), next(&mut lines, 9)], ["6", "Wait"]);
    }

    #[test]
    fn n04_so_many_are_under_way_at_most() {
        let mut lines = lines(&[None, None, A]);
        assert_eq!(
            [next(&mut lines, 2), next(&mut lines, 2), next(&mut lines, 2)],
            ["0", "1", "Wait"]
        );
        lines.is_over(None);
        assert_eq!(next(&mut lines, 2), "2");
    }

    #[test]
    fn n04_what_is_told_to_finish_ends_when_all_is_settled() {
        let mut lines = lines(&[A, A]);
        lines.finish();
        assert!(lines.push(waiting(3, None)).is_some(), "it comes too late");
        assert_eq!([next(&mut lines, 9), next(&mut lines, 9)], ["0", "Wait"]);
        lines.is_over(A);
        assert_eq!([next(&mut lines, 9), next(&mut lines, 9)], ["1", "Wait"]);
        lines.is_over(A);
        assert_eq!(next(&mut lines, 9), "End");
    }

    /// Its publish, which fails for so long.
    fn fails(lines: &mut Lines, concurrency: usize, wait: Duration) -> String {
        let Next::Publish(mut waiting) = lines.next(concurrency, Instant::now()) else {
            panic!("nothing may be published")
        };
        let name = waiting.message.clone().unwrap_err();
        waiting.due = Instant::now() + wait;
        lines.fails(waiting);
        name
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn n04_what_fails_takes_no_place_from_others_and_holds_its_line() {
        let mut lines = lines(&[A, A, B, None]);
        assert_eq!(fails(&mut lines, 2, SECOND), "0");
        assert_eq!([next(&mut lines, 2), next(&mut lines, 2)], ["2", "3"]);
        assert_eq!(next(&mut lines, 2), "Wait", "two are under way");
        lines.is_over(B);
        lines.is_over(None);
        assert_eq!(next(&mut lines, 2), "WaitUntil");
        tokio::time::advance(SECOND).await;
        assert_eq!([next(&mut lines, 2), next(&mut lines, 2)], ["0", "Wait"]);
        lines.is_over(A);
        assert_eq!(next(&mut lines, 2), "1");
        lines.finish();
        lines.is_over(A);
        assert_eq!(next(&mut lines, 2), "End");
    }

    #[tokio::test(start_paused = true)]
    async fn n04_what_has_waited_longest_goes_first_be_it_new_or_tried_again() {
        let mut lines = lines(&[None, None]);
        assert_eq!(fails(&mut lines, 2, SECOND), "0");
        tokio::time::advance(2 * SECOND).await;
        assert!(lines.push(waiting(2, None)).is_none());
        let order = [next(&mut lines, 9), next(&mut lines, 9), next(&mut lines, 9)];
        assert_eq!(order, ["1", "0", "2"]);
    }

    #[tokio::test(start_paused = true)]
    async fn n04_one_at_a_time_nothing_overtakes_what_fails() {
        let mut lines = lines(&[None, None]);
        assert_eq!(fails(&mut lines, 1, SECOND), "0");
        assert_eq!(next(&mut lines, 1), "WaitUntil");
        tokio::time::advance(SECOND).await;
        assert_eq!(next(&mut lines, 1), "0");
    }

    #[tokio::test(start_paused = true)]
    async fn n04_what_failed_is_hurried_once_and_by_an_operator_each_time() {
        let mut lines = lines(&[None]);
        for (anew, expected) in [(false, "0"), (false, "WaitUntil"), (true, "0"), (false, "0")] {
            if lines.failed.is_empty() {
                fails(&mut lines, 9, SECOND);
            }
            lines.hurry(Instant::now(), anew);
            let is_expected = match lines.next(9, Instant::now()) {
                Next::Publish(mut waiting) => {
                    waiting.due = Instant::now() + SECOND;
                    lines.fails(waiting);
                    "0" == expected
                }
                _ => expected == "WaitUntil",
            };
            assert!(is_expected, "{anew} {expected}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn n04_what_is_given_up_gives_all_back() {
        let mut lines = lines(&[A, A, B]);
        fails(&mut lines, 9, SECOND);
        let given = lines.give_up();
        assert_eq!(given.len(), 3);
        assert!(matches!(lines.next(9, Instant::now()), Next::End));
    }
}
