//! One message's way to several workers and back.

use std::{pin::Pin, time::Duration};

use tokio::time::Sleep;

use super::{
    attempt::{Attempt, attempt},
    gathered::Gathered,
    together::Together,
};
use crate::{CallError, Envelope, pool::Worker};

/// Calls to several workers, of which some have been answered. Dropping it abandons the others.
pub(super) struct Round<R, E> {
    calls: Together<Attempt<R, E>>,
    /// By the index of the call.
    slots: Vec<usize>,
    /// By the index of the call; `None` while there is no answer, and once it was taken.
    answers: Vec<Option<Result<R, CallError<E>>>>,
    /// How many replies there were.
    successes: usize,
    /// How many errors there were.
    failures: usize,
    /// When no more answers are waited for.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<R: Send + 'static, E: Send + 'static> Round<R, E> {
    /// Nothing is sent before the first [`next`](Self::next); the deadline counts from now.
    pub(super) fn new<M: Send + 'static>(
        parts: impl IntoIterator<Item = (Worker<M, R, E>, M)>,
        envelope: &Envelope,
        within: Option<Duration>,
    ) -> Self {
        let mut slots = Vec::new();
        let calls = Together::new(parts.into_iter().map(|(member, message)| {
            slots.push(member.slot());
            attempt(member.address, message, envelope.clone())
        }));
        let answers = slots.iter().map(|_| None).collect();
        let deadline = within.map(|within| Box::pin(tokio::time::sleep(within)));
        Self { calls, slots, answers, successes: 0, failures: 0, deadline }
    }

    /// Waits for one more answer, and returns the index of its call. `None` if all have answered or
    /// the time is over; answers that arrived by then are returned first.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<usize> {
        let next = match &mut self.deadline {
            None => self.calls.next().await,
            Some(deadline) => tokio::select! {
                biased;
                next = self.calls.next() => next,
                () = deadline => None,
            },
        };
        let (index, answer) = next?;
        self.successes += usize::from(answer.is_ok());
        self.failures += usize::from(answer.is_err());
        self.answers[index] = Some(answer);
        Some(index)
    }

    /// Waits for answers until there are enough, all are there, or the time is over.
    pub(super) async fn run(&mut self, enough: impl Fn(&Self) -> bool) {
        while !enough(self) && self.next().await.is_some() {}
    }

    pub(super) fn successes(&self) -> usize {
        self.successes
    }

    pub(super) fn failures(&self) -> usize {
        self.failures
    }

    pub(super) fn slot(&self, call: usize) -> usize {
        self.slots[call]
    }

    pub(super) fn take(&mut self, call: usize) -> Option<Result<R, CallError<E>>> {
        self.answers.get_mut(call)?.take()
    }

    /// Takes the answer, if it is an error.
    pub(super) fn error(&mut self, call: usize) -> Option<CallError<E>> {
        self.answers[call].take_if(|answer| answer.is_err())?.err()
    }

    /// The slots without an answer, from this call on, if no answer has been taken.
    pub(super) fn unanswered(&self, from: usize) -> Vec<usize> {
        let calls = self.slots.iter().zip(&self.answers).skip(from);
        calls.filter(|(_, answer)| answer.is_none()).map(|(slot, _)| *slot).collect()
    }

    /// The answers that were not taken, and the workers without an answer.
    pub(super) fn gathered(self) -> Gathered<R, E> {
        Gathered::new(self.slots.into_iter().zip(self.answers))
    }
}
