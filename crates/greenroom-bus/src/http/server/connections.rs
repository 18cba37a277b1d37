//! The connections of a listener: how many there may be, and which one goes when another comes.
//!
//! A connection *waits* while the client has to act: send a request, send the rest of one, take an
//! answer. It is *answering* while greenroom works on a request. When the limit of open connections
//! is reached, a new one replaces the one that has waited longest. So a client that holds
//! connections open with incomplete requests loses only those, and a complete request is answered.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Fewer would keep a probe and an operator from asking at the same time.
const FEWEST: usize = 4;

/// The open connections.
pub struct Connections {
    most: AtomicUsize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// Counts up with each connection, and each time that one begins to wait.
    turn: u64,
    open: BTreeMap<u64, OpenConnection>,
}

struct OpenConnection {
    /// The turn since which it waits; `None` while it is answered.
    waiting: Option<u64>,
    close: Arc<Notify>,
}

/// One connection's place among them, given up when this is dropped.
pub struct Place {
    all: Arc<Connections>,
    id: u64,
    close: Arc<Notify>,
}

/// A request of a connection is being answered until this is dropped.
#[derive(Debug)]
pub struct Answering<'a>(&'a Place);

impl Connections {
    /// Empty, with at most this many at once.
    pub fn up_to(most: usize) -> Arc<Self> {
        Arc::new(Self { most: AtomicUsize::new(most), table: Mutex::default() })
    }

    /// At most this many from now on. Open ones stay.
    pub fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Takes a place for a new connection. `None` while every other one is being answered.
    pub fn enter(self: &Arc<Self>) -> Option<Place> {
        let mut table = self.table.lock();
        if table.open.len() >= self.most.load(Ordering::Relaxed) && !table.close_longest_waiting() {
            return None;
        }
        let id = table.next_turn();
        let close = Arc::new(Notify::new());
        table.open.insert(id, OpenConnection { waiting: Some(id), close: close.clone() });
        Some(Place { all: self.clone(), id, close })
    }

    /// Gives up the connection that has waited longest.
    pub fn close_longest_waiting(&self) {
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
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub async fn taken_over(&self) {
        self.close.notified().await;
    }

    /// It is answering until the returned guard is dropped: until then it is not replaced.
    pub fn answering(&self) -> Answering<'_> {
        self.all.table.lock().is_answering(self.id, true);
        Answering(self)
    }

    /// Whether a request of it is being answered.
    pub fn is_answering(&self) -> bool {
        self.all.table.lock().open.get(&self.id).is_some_and(|open| open.waiting.is_none())
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("open", &self.table.lock().open.len()).finish()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("id", &self.id).finish_non_exhaustive()
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

/// How many there may be in this process: as many as wanted, but no more than this part (`share`
/// of 8 is an eighth) of the descriptors that it may open.
pub fn within_descriptors(wanted: usize, share: usize) -> usize {
    descriptors().map_or(wanted, |all| wanted.min((all / share).max(FEWEST)))
}

fn descriptors() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    usize::try_from(limit.current?).ok()
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    fn is_closed(place: &Place) -> bool {
        let mut polled = pin!(place.taken_over());
        polled.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
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
