//! The events that a process has in hand, and those that wait for it.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::{
    blame::AttemptBlame,
    message::{Answer, WorkerJob},
    process::Process,
};
use crate::handler::HandlerResult;

/// An event on its way through the process.
#[derive(Debug)]
pub(super) struct Entry {
    job: WorkerJob,
    pub(super) blame: AttemptBlame,
    /// A process has ended that may have read it and others: the next one gets it alone, so that it
    /// is known which of them it was.
    pub(super) is_alone: bool,
    /// If it is in hand: its token, and the offset of its line in everything written.
    token: u64,
    begins: u64,
}

impl Entry {
    fn is_cancelled(&self) -> bool {
        self.job.answer.is_closed()
    }

    /// Whether a process that has read `read` bytes has read anything of it.
    pub(super) fn was_read(&self, read: u64) -> bool {
        read > self.begins
    }

    pub(super) fn job(&self) -> &WorkerJob {
        &self.job
    }

    /// Sends the worker the result. If its attempt was cancelled, the result is lost.
    pub(super) fn answer(self, result: HandlerResult) {
        let WorkerJob { answer, line, .. } = self.job;
        let _ = answer.send(Answer { result, line });
    }
}

/// The events in hand and the waiting ones, each in order of arrival.
#[derive(Debug)]
pub(super) struct InHand {
    /// How many may be in hand at a time.
    most: usize,
    waiting: VecDeque<Entry>,
    sent: VecDeque<Entry>,
    /// Since when the oldest of those in hand is the oldest.
    since: Instant,
}

impl InHand {
    pub(super) fn new(most: usize) -> Self {
        let (waiting, sent) = (VecDeque::new(), VecDeque::new());
        Self { most, waiting, sent, since: Instant::now() }
    }

    pub(super) fn add(&mut self, job: WorkerJob) {
        let blame = AttemptBlame::default();
        self.waiting.push_back(Entry { job, blame, is_alone: false, token: 0, begins: 0 });
    }

    /// The first that waits and is not cancelled.
    pub(super) fn first_waiting(&mut self) -> Option<&mut WorkerJob> {
        while self.waiting.front().is_some_and(Entry::is_cancelled) {
            self.waiting.pop_front();
        }
        self.waiting.front_mut().map(|entry| &mut entry.job)
    }

    /// Takes that one out.
    pub(super) fn pop_waiting(&mut self) -> Option<Entry> {
        self.first_waiting()?;
        self.waiting.pop_front()
    }

    /// Hands the process as many as it may have.
    pub(super) fn send(&mut self, process: &mut Process) {
        while self.has_room() {
            let Some(mut entry) = self.pop_waiting() else { return };
            (entry.token, entry.begins) = process.send(&entry.job.line);
            if self.sent.is_empty() {
                self.since = Instant::now();
            }
            self.sent.push_back(entry);
        }
    }

    fn has_room(&mut self) -> bool {
        // Cancelled ones are gone from the front then.
        let _ = self.first_waiting();
        let next_is_alone = self.waiting.front().is_some_and(|entry| entry.is_alone);
        match self.sent.front() {
            None => true,
            Some(oldest) => !oldest.is_alone && !next_is_alone && self.sent.len() < self.most,
        }
    }

    /// The tokens in hand, oldest first.
    pub(super) fn tokens(&self) -> impl Iterator<Item = u64> + Clone {
        self.sent.iter().map(|entry| entry.token)
    }

    /// Removes the one that has been answered.
    pub(super) fn pop_sent(&mut self, place: usize) -> Option<Entry> {
        let entry = self.sent.remove(place);
        if place == 0 && !self.sent.is_empty() {
            self.since = Instant::now();
        }
        entry
    }

    pub(super) fn is_idle(&self) -> bool {
        self.sent.is_empty()
    }

    /// Whether one is in hand and no other.
    pub(super) fn is_one(&self) -> bool {
        self.sent.len() == 1
    }

    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Where the line of the oldest begins.
    pub(super) fn begins(&self) -> u64 {
        self.sent.front().map_or(0, |entry| entry.begins)
    }

    /// Whether an attempt was cancelled whose event is in hand.
    pub(super) fn has_cancelled(&self) -> bool {
        self.sent.iter().any(Entry::is_cancelled)
    }

    /// Takes all out that are in hand and not cancelled.
    pub(super) fn take_sent(&mut self) -> Vec<Entry> {
        self.sent.drain(..).filter(|entry| !entry.is_cancelled()).collect()
    }

    /// Puts events for the next process back, before the waiting ones.
    pub(super) fn put_back(&mut self, entries: Vec<Entry>) {
        for entry in entries.into_iter().rev() {
            self.waiting.push_front(entry);
        }
    }
}
