//! The actor of `demo` and `bench`. They share it, because each further type of actor compiles the
//! whole of a pool once more.

use std::{sync::Arc, time::Duration};

use greenroom::{PoolBuilder, PoolEvents, prelude::*};
use greenroom_bus::BoxFuture;

/// A message of both, of 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    /// When it arrives, from the start; zero if that is not asked.
    pub(super) due: Duration,
    /// Messages of one key are handled in order, those without a key in any order.
    pub(super) key: Option<u32>,
    /// Which one it is: of its key, for the demo.
    pub(super) number: u32,
}

/// An attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// Nothing has happened.
    Refused,
    /// It has happened, and the answer was lost on its way: the next attempt repeats it.
    Unheard,
}

/// What a message comes to.
pub(super) enum Taken<'a> {
    Done,
    Later(BoxFuture<'a, Result<(), Failed>>),
}

/// What all workers share, and where messages end.
pub(super) trait Takes: Send + Sync {
    fn take(&self, arrival: Arrival) -> Taken<'_>;
}

/// A worker.
pub(super) struct Trial(Arc<dyn Takes>);

impl Trial {
    /// A pool of them, ordered by key.
    pub(super) fn pool(takes: Arc<dyn Takes>) -> PoolBuilder<Self, u32> {
        let pool = Pool::new(move |_slot| Self(takes.clone()));
        let pool = pool.pool_events(PoolEvents::off()).quick_factory();
        pool.ordered_by_opt(|arrival: &Arrival| arrival.key)
    }
}

impl Actor for Trial {
    type Message = Arrival;
    type Reply = ();
    type Error = Failed;

    async fn handle(&mut self, arrival: Arrival, _: &mut Context<Self>) -> Result<(), Failed> {
        match self.0.take(arrival) {
            Taken::Done => Ok(()),
            Taken::Later(taken) => taken.await,
        }
    }
}
