//! A message together with what the runtime knows of it, lent to the actor that handles it.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{AnyAddress, CancellationToken, Class, ReplyPort, pool::Stamp};

/// A message on loan: the runtime owns it until its outcome is settled.
#[derive(Debug)]
pub struct Delivery<M, R, E> {
    pub(crate) message: Option<M>,
    /// Allocated only for calls, for messages that have failed before, and for those that carry more than themselves.
    pub(crate) extra: Option<Box<Extra<R, E>>>,
    pub(crate) class: Class,
    /// When it was queued, by the clock of its pool.
    pub(crate) stamp: Stamp,
    /// It was handed to another address whole.
    pub(crate) forwarded: bool,
    /// Whoever did the work for the handler has died of it.
    pub(crate) crashed: bool,
    /// It was not this worker's to handle: another is to have it.
    pub(crate) put_back: bool,
}

/// What a plain send does not have.
#[derive(Debug)]
pub(crate) struct Extra<R, E> {
    /// Present while the call is unanswered.
    pub(crate) port: Option<ReplyPort<R, E>>,
    /// Attempts that have failed so far and count.
    pub(crate) failures: u32,
    /// Attempts so far, counted or not.
    pub(crate) attempts: u32,
    /// Workers that died with this message in hand.
    pub(crate) kills: u32,
    /// It waits for another attempt, and is counted as waiting.
    pub(crate) parked: bool,
    pub(crate) about: About,
}

/// What a sender has said of a message.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    pub(crate) sender: Option<AnyAddress>,
    /// Not to be handled after this moment.
    pub(crate) deadline: Option<Instant>,
    pub(crate) trace: Option<Arc<str>>,
    pub(crate) token: Option<CancellationToken>,
}

impl About {
    pub(crate) fn is_empty(&self) -> bool {
        self.sender.is_none()
            && self.deadline.is_none()
            && self.trace.is_none()
            && self.token.is_none()
    }
}

impl<R, E> Extra<R, E> {
    pub(crate) fn new(port: Option<ReplyPort<R, E>>) -> Box<Self> {
        Self::with(port, About::default())
    }

    pub(crate) fn with(port: Option<ReplyPort<R, E>>, about: About) -> Box<Self> {
        Box::new(Self { port, failures: 0, attempts: 0, kills: 0, parked: false, about })
    }

    pub(crate) fn sender(&self) -> Option<&AnyAddress> {
        self.about.sender.as_ref()
    }

    pub(crate) fn has_expired(&self) -> bool {
        self.about.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl<M, R, E> Delivery<M, R, E> {
    /// Takes the message out.
    ///
    /// # Panics
    /// When it has been taken before.
    #[track_caller]
    #[expect(
        clippy::expect_used,
        reason = "a documented panic: taking twice is a bug of the handler"
    )]
    pub fn take(&mut self) -> M {
        self.message.take().expect("the message of this delivery was taken before")
    }

    /// The message, where it has not been taken.
    pub fn message(&self) -> Option<&M> {
        self.message.as_ref()
    }

    /// The message, to be changed in place. What is changed is what a further attempt sees, unless the pool keeps a
    /// spare copy.
    pub fn message_mut(&mut self) -> Option<&mut M> {
        self.message.as_mut()
    }

    /// Takes the reply port of a call out, to be answered later from anywhere; the handler then returns
    /// [`Answer::Elsewhere`](crate::Answer::Elsewhere). `None` for a send.
    pub fn take_reply_port(&mut self) -> Option<ReplyPort<R, E>> {
        self.extra.as_mut().and_then(|extra| extra.port.take())
    }

    /// Says, before the handler returns an error, that whoever did the work for it has died: a process, a connection. The
    /// failure policy is asked with [`Cause::Crash`](crate::Cause::Crash) then, and the message counts as one that kills.
    pub fn crashed(&mut self) {
        self.crashed = true;
    }

    /// Who sent it, where that was said.
    pub fn sender(&self) -> Option<&AnyAddress> {
        self.extra.as_ref()?.sender()
    }

    /// Says when nobody wants the result any more, where the sender has given a token along: the loser of a
    /// [hedged](crate::Hedged) or gathered call, for instance.
    pub fn cancellation(&self) -> Option<&CancellationToken> {
        self.extra.as_ref()?.about.token.as_ref()
    }

    /// The class it was sent in.
    pub fn class(&self) -> Class {
        self.class
    }

    /// How long there is until its deadline, where it has one; zero when that has passed.
    pub fn time_left(&self) -> Option<Duration> {
        let deadline = self.extra.as_ref()?.about.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// The trace context that came with it, as text: what it means is the sender's and the receiver's affair.
    pub fn trace(&self) -> Option<&str> {
        self.extra.as_ref()?.about.trace.as_deref()
    }

    /// True when somebody waits for the reply.
    pub fn is_call(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.port.is_some())
    }

    /// Which attempt this is; 1 for the first. Attempts that do not count towards a limit are included.
    pub fn attempt(&self) -> u32 {
        self.extra.as_ref().map_or(1, |extra| extra.attempts + 1)
    }

    /// How many attempts have failed and count towards the limit.
    pub fn failures(&self) -> u32 {
        self.extra.as_ref().map_or(0, |extra| extra.failures)
    }
}
