//! The connections of the listener: how many there may be, and which one goes when another comes.
//!
//! A connection *waits* while its client is the one to do something: send a request, send the rest
//! of one, take an answer. It is *answering* while greenroom works on a request. When as many are
//! open as there may be, a new one takes the place of the one that has waited longest. So whoever
//! holds connections open with half requests only ever loses them, and a request that arrives
//! whole is answered.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// More than operators and probes need at once.
const MOST: usize = 64;

/// Fewer would keep a probe and an operator from asking at the same time.
const FEWEST: usize = 4;

/// The listener takes at most this part of the descriptors that the process may open: the others
/// are for inputs, outputs and handlers.
const SHARE: usize = 8;

/// The open connections.
pub(super) struct Connections {
    most: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// Counts up with each connection, and each time that one begins to wait.
    turn: u64,
    open: BTreeMap<u64, Open>,
}

struct Open {
    /// The turn since which it waits; `None` while it is answered.
    waiting: Option<u64>,
    close: Arc<Notify>,
}

/// One connection's place among them, given up when this is dropped.
pub(super) struct Place {
    all: Arc<Connections>,
    id: u64,
    close: Arc<Notify>,
}

/// A request of a connection is being answered until this is dropped.
pub(super) struct Answering<'a>(&'a Place);

impl Connections {
    pub(super) fn up_to(most: usize) -> Arc<Self> {
        Arc::new(Self { most, table: Mutex::default() })
    }

    /// Takes a place for a new connection. `None` while every other one is being answered.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Place> {
        let mut table = self.table.lock();
        if table.open.len() >= self.most && !table.close_longest_waiting() {
            return None;
        }
        let id = table.next_turn();
        let close = Arc::new(Notify::new());
        table.open.insert(id, Open { waiting: Some(id), close: close.clone() });
        Some(Place { all: self.clone(), id, close })
    }

    /// Gives up the connection that has waited longest.
    pub(super) fn close_longest_waiting(&self) {
        self.table.lock().close_longest_waiting();
    }
}

impl Table {
    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    fn close_longest_waiting(&mut self) -> bool {
        let waiting = self.open.iter().filter_map(|(id, open)| Some((open.waiting?, *id)));
        let Some((_, id)) = waiting.min() else { return false };
        if let Some(open) = self.open.remove(&id) {
            open.close.notify_one();
        }
        true
    }

    fn is_answering(&mut self, id: u64, answering: bool) {
        let turn = self.next_turn();
        if let Some(open) = self.open.get_mut(&id) {
            open.waiting = (!answering).then_some(turn);
        }
    }
}

impl Place {
    /// Waits until another connection needs the place.
    pub(super) async fn taken_over(&self) {
        self.close.notified().await;
    }

    pub(super) fn answering(&self) -> Answering<'_> {
        self.all.table.lock().is_answering(self.id, true);
        Answering(self)
    }

    pub(super) fn is_answering(&self) -> bool {
        self.all.table.lock().open.get(&self.id).is_some_and(|open| open.waiting.is_none())
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.all.table.lock().is_answering(self.0.id, false);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.table.lock().open.remove(&self.id);
    }
}

/// How many there may be in this process.
pub(super) fn most() -> usize {
    descriptors().map_or(MOST, |all| (all / SHARE).clamp(FEWEST, MOST))
}

#[cfg(unix)]
fn descriptors() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    usize::try_from(limit.current?).ok()
}

#[cfg(not(unix))]
fn descriptors() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn is_closed(place: &Place) -> bool {
        place.taken_over().now_or_never().is_some()
    }

    #[test]
    fn a_new_connection_takes_the_place_of_the_one_that_waited_longest() {
        let all = Connections::up_to(2);
        let (first, second) = (all.enter().unwrap(), all.enter().unwrap());
        drop(first.answering());
        let third = all.enter().unwrap();
        assert!(is_closed(&second) && !is_closed(&first) && !is_closed(&third));
        drop(third);
        let _fourth = all.enter().unwrap();
        assert!(!is_closed(&first), "a place was free");
    }

    #[test]
    fn a_connection_that_is_being_answered_keeps_its_place() {
        let all = Connections::up_to(1);
        let first = all.enter().unwrap();
        let answering = first.answering();
        assert!(all.enter().is_none() && !is_closed(&first));
        drop(answering);
        assert!(all.enter().is_some() && is_closed(&first));
    }
}
