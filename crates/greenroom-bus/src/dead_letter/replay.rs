//! Dead letters on their way back into an engine (C04, D06).
//!
//! ```text
//! marked ──take──▶ handed ──▶ the end of its key's line ──▶ settled: the letter is gone
//!    ▲               │                                  └─▶ fails again: the same letter, with its new error
//!    └─ given back ◀─┴─ refused: it stays, unmarked, with the reason
//! ```
//!
//! A letter leaves its store only once its replay is settled. So a crash in between repeats it, and
//! loses nothing.

use std::sync::Arc;

use crate::{BoxFuture, event::Event, sink::SinkError};

/// The letters of a store that are to be handled again.
pub trait Replays: Send + Sync + 'static {
    /// Takes the next letters that are marked, in the order in which they were stored: at most
    /// `most`, and few enough that they are at most `bytes` together, or one. That they were taken
    /// is stored before this returns. Empty if none is marked.
    ///
    /// # Errors
    /// It could not be stored: none was taken. An engine tries again soon.
    ///
    /// # Cancel safety
    /// Letters taken by a dropped future count as handed out until the store is opened again.
    fn take<'a>(
        &'a self,
        most: usize,
        bytes: usize,
    ) -> BoxFuture<'a, Result<TakenLetters, SinkError>>;

    /// Waits until letters may have been marked since this was called last.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    fn marked<'a>(&'a self) -> BoxFuture<'a, ()>;

    /// A replay has ended. Never waits.
    fn ended(&self, replayed: Replayed, how: ReplayEnd);
}

/// Letters to be handled again.
#[derive(Debug, Default)]
pub struct TakenLetters {
    /// In order.
    pub letters: Vec<Replay>,
    /// How many a second are wanted; `None`: as fast as they are handled.
    pub rate: Option<f64>,
}

/// A letter to be handled again.
#[derive(Debug)]
pub struct Replay {
    /// Which.
    pub replayed: Replayed,
    /// Its event.
    pub event: Event,
    /// The name of the input that it came from.
    pub input: Arc<str>,
    /// The handler that it is for; `None`: any that takes it.
    pub handler: Option<Arc<str>>,
}

/// Travels with an event that is replayed, as a [local value](Event::local): a letter that it
/// becomes again is the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// The number of the letter in its store.
    pub letter: u64,
    /// Which replay of it this is, from 1.
    pub round: u64,
}

/// How a replay has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayEnd {
    /// Its event is settled: handled and stored, or a dead letter again.
    Settled,
    /// It was not begun, or the run has ended before it was done: it stays marked.
    GivenBack,
    /// It cannot be replayed, and why: it stays, and is marked no more.
    Refused(String),
}
