//! The actor of `demo` and `bench`. They share it, because each further type of actor compiles the
//! whole of a pool once more.

use std::{sync::Arc, time::Duration};

use greenroom::{PoolBuilder, PoolEvents, prelude::*};

use super::{
    bench::Bench,
    demo::{Failed, Target},
};

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

/// A worker of a demo or of a benchmark.
pub(super) enum Trial {
    Demo(Arc<Target>),
    Bench(Arc<Bench>),
}

impl Trial {
    /// A pool of them, ordered by key.
    pub(super) fn pool(
        worker: impl Fn() -> Self + Send + Sync + 'static,
    ) -> PoolBuilder<Self, u32> {
        let pool = Pool::new(move |_slot| worker()).pool_events(PoolEvents::off()).quick_factory();
        pool.ordered_by_opt(|arrival: &Arrival| arrival.key)
    }
}

impl Actor for Trial {
    type Message = Arrival;
    type Reply = ();
    type Error = Failed;

    async fn handle(&mut self, arrival: Arrival, _: &mut Context<Self>) -> Result<(), Failed> {
        match self {
            Self::Demo(target) => target.take(arrival).await,
            Self::Bench(bench) => {
                bench.take(arrival);
                Ok(())
            }
        }
    }
}
