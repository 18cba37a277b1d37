//! The actor of `demo` and `bench`. They share it, because each further type of actor compiles the
//! whole of a pool once more.

use std::{sync::Arc, time::Duration};

use greenroom::{PoolBuilder, PoolEvents, prelude::*};
use greenroom_bus::BoxFuture;

/// A message of both, of 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    /// When it arrives, from the start; zero if that is not measured.
    pub(super) due: Duration,
    /// Messages of one key are handled in order, and those without a key in any order.
    pub(super) key: Option<u32>,
    /// Its number: for the demo, within its key.
    pub(super) number: u32,
    /// Whose it is; the same for all if that does not matter.
    pub(super) share: u32,
}

/// An attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// Nothing was done.
    Refused,
    /// It was done, but the answer was lost: the next attempt repeats it.
    Unheard,
}

/// The result of a message.
pub(super) enum Taken<'a> {
    Done,
    Later(BoxFuture<'a, Result<(), Failed>>),
}

/// The state that all workers share, and the destination of messages.
pub(super) trait Takes: Send + Sync {
    /// `slot` is the place of the worker that takes it.
    fn take(&self, slot: usize, arrival: Arrival) -> Taken<'_>;
}

/// A worker.
pub(super) struct Trial(Arc<dyn Takes>);

impl Trial {
    /// A pool of them, ordered by key: any worker takes the next event of any key.
    pub(super) fn pool(takes: Arc<dyn Takes>) -> PoolBuilder<Self, u32> {
        Self::unordered(takes).ordered_by_opt(|arrival: &Arrival| arrival.key)
    }

    /// A pool of them in which the key's hash chooses the worker.
    pub(super) fn hashed(takes: Arc<dyn Takes>) -> PoolBuilder<Self> {
        Self::unordered(takes).sticky_by_opt(|arrival: &Arrival| arrival.key)
    }

    fn unordered(takes: Arc<dyn Takes>) -> PoolBuilder<Self> {
        let pool = Pool::new(move |_slot| Self(takes.clone()));
        pool.pool_events(PoolEvents::off()).quick_factory()
    }
}

impl Actor for Trial {
    type Message = Arrival;
    type Reply = ();
    type Error = Failed;

    async fn handle(&mut self, arrival: Arrival, cx: &mut Context<Self>) -> Result<(), Failed> {
        match self.0.take(cx.slot(), arrival) {
            Taken::Done => Ok(()),
            Taken::Later(taken) => taken.await,
        }
    }
}
