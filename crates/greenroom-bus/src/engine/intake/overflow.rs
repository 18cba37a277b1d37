//! The pools as one input sees them, each with what waits beside it.

use std::{future::poll_fn, sync::Arc, task::Poll};

use super::waiting::{Room, Waiting};
use crate::{
    BoxFuture,
    engine::{
        process::job::{Job, JobAddress},
        shared::Shared,
    },
};

/// Every pool, and which of them are behind. An input looks at those again and again, at the others never: hundreds of pools
/// that take what they are given cost it nothing.
pub(crate) struct BesidePools {
    shared: Arc<Shared>,
    pools: Vec<JobAddress>,
    /// Beside each pool.
    beside: Vec<Beside>,
    /// The places of those pools beside which something waits, and perhaps of some beside which nothing waits any more.
    behind: Vec<usize>,
}

#[derive(Default)]
struct Beside {
    /// In order.
    waiting: Waiting,
    /// Its pool is among those that are behind.
    is_listed: bool,
}

impl BesidePools {
    pub(crate) fn new(shared: Arc<Shared>, pools: Vec<JobAddress>) -> Self {
        let beside = pools.iter().map(|_| Beside::default()).collect();
        Self { shared, pools, beside, behind: Vec::new() }
    }

    /// The way to the pool at this place, past what waits beside it.
    pub(crate) fn address(&self, place: usize) -> &JobAddress {
        &self.pools[place]
    }

    /// Events that wait beside pools.
    pub(crate) fn held_back(&self) -> usize {
        self.behind.iter().map(|place| self.beside[*place].waiting.len()).sum()
    }

    /// Puts an event behind what waits beside this pool, until it is fed.
    pub(crate) fn wait(&mut self, place: usize, job: Job) {
        let beside = &mut self.beside[place];
        beside.waiting.push(job);
        if !beside.is_listed {
            beside.is_listed = true;
            self.behind.push(place);
        }
    }

    /// Hands over what there is room for.
    pub(crate) fn feed(&mut self) {
        let Self { shared, pools, beside, behind } = self;
        behind.retain(|place| {
            let beside = &mut beside[*place];
            beside.waiting.feed(shared, &pools[*place]);
            beside.is_listed = !beside.waiting.is_empty();
            beside.is_listed
        });
    }

    /// Waits until one of the pools beside which events wait has room, or has stopped, and hands it the first of them; or until
    /// something that waited behind its key was handed over. Never returns where nothing waits.
    ///
    /// # Cancel safety
    /// A dropped future has lost nothing.
    pub(crate) async fn hand_one_over(&mut self) {
        let Self { shared, pools, beside, behind } = self;
        let wants_room = |place: &&usize| beside[**place].waiting.wants_room();
        let mut rooms: Vec<(usize, BoxFuture<'_, Room<'_>>)> = behind
            .iter()
            .filter(wants_room)
            .map(|place| (*place, Box::pin(pools[*place].reserve()) as BoxFuture<'_, _>))
            .collect();
        let room = poll_fn(|task| {
            let ready =
                |(place, room): &mut (usize, BoxFuture<'_, _>)| match room.as_mut().poll(task) {
                    Poll::Ready(room) => Some((*place, room)),
                    Poll::Pending => None,
                };
            if let Some(room) = rooms.iter_mut().find_map(ready) {
                return Poll::Ready(Some(room));
            }
            // All of them, also behind one that has moved: each keeps this task to be woken.
            let mut moved = false;
            for place in behind.iter() {
                moved |= beside[*place].waiting.advance(shared, &pools[*place], task);
            }
            if moved { Poll::Ready(None) } else { Poll::Pending }
        });
        if let Some((place, room)) = room.await {
            beside[place].waiting.hand_over(shared, &pools[place], room);
        }
    }
}
