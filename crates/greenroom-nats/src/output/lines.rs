//! What was accepted and not settled: of each line, one event is under way and the others wait.

use std::collections::{HashMap, VecDeque};

use greenroom_bus::settlement::Ack;
use tokio::sync::OwnedSemaphorePermit;

use super::message::Message;

/// An event that was accepted. It gives its room back when it is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Or why there is none: it is rejected in its turn.
    pub(super) message: Result<Message, String>,
    pub(super) line: Option<u64>,
    pub(super) ack: Ack,
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

#[derive(Debug, Default)]
pub(super) struct Lines {
    /// May be published now, in the order of acceptance.
    ready: VecDeque<Waiting>,
    /// Lines of which an event is ready or under way, and those behind it.
    behind: HashMap<u64, VecDeque<Waiting>>,
    under_way: usize,
    finishing: bool,
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum Next {
    Publish(Waiting),
    /// Wait for what comes, or for what is under way.
    Wait,
    /// All is settled, and nothing comes any more.
    End,
}

impl Lines {
    /// Gives the event back once nothing is to come any more.
    pub(super) fn push(&mut self, waiting: Waiting) -> Option<Waiting> {
        if self.finishing {
            return Some(waiting);
        }
        let line = waiting.line.and_then(|line| {
            let is_busy = self.behind.contains_key(&line);
            let behind = self.behind.entry(line).or_default();
            is_busy.then_some(behind)
        });
        line.unwrap_or(&mut self.ready).push_back(waiting);
        None
    }

    /// What is next, with so many publishes at once.
    pub(super) fn next(&mut self, concurrency: usize) -> Next {
        if self.under_way >= concurrency {
            return Next::Wait;
        }
        match self.ready.pop_front() {
            Some(waiting) => {
                self.under_way += 1;
                Next::Publish(waiting)
            }
            None if self.finishing && self.under_way == 0 => Next::End,
            None => Next::Wait,
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
        let ready = std::mem::take(&mut self.ready);
        let behind = std::mem::take(&mut self.behind);
        ready.into_iter().chain(behind.into_values().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(id: u32, line: Option<u64>) -> Waiting {
        Waiting { message: Err(id.to_string()), line, ack: Ack::detached(), _room: None }
    }

    fn lines(lines: &[Option<u64>]) -> Lines {
        let mut all = Lines::default();
        for (id, line) in lines.iter().enumerate() {
            assert!(all.push(waiting(id as u32, *line)).is_none());
        }
        all
    }

    fn next(lines: &mut Lines, concurrency: usize) -> String {
        match lines.next(concurrency) {
            Next::Publish(waiting) => waiting.message.unwrap_err(),
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

    #[test]
    fn n04_what_is_given_up_gives_all_back() {
        let mut lines = lines(&[A, A, B]);
        let given = lines.give_up();
        assert_eq!(given.len(), 3);
        assert!(matches!(lines.next(9), Next::End));
    }
}
