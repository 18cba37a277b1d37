//! An event that was handled is not handled again (D07).

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;
use tower::Layer;

use super::{Around, Request, Surrounded};
use crate::{
    event::Event,
    handler::{Failure, FailureKind, HandlerResult, Outputs},
    settlement::{Settled, Watch},
};

/// Events that are remembered unless said otherwise: some 10 MB of ids and sources of usual length.
const REMEMBERED: usize = 100_000;

/// Acknowledges, without handling it, an event whose source and id are those of one that was settled within a window of time.
///
/// An event counts as seen when it is **acknowledged**: what it led to is stored, or it lies in the dead letters. One that was
/// refused is delivered again and handled again. While the first of two is not settled yet, the second is given back
/// unstarted and asks again soon. A retry is not a duplicate of itself.
///
/// The window lies in memory: a process that starts anew has seen nothing. How often an event is repeated is bounded by what its
/// source says of a restart; to shut that gap, the handler itself has to be idempotent.
///
/// Clones share their window. Put around two handlers that both get an event (`fan_out`), each needs one of its own.
#[derive(Debug, Clone)]
pub struct Deduplication {
    window: Arc<Window>,
}

#[derive(Debug)]
struct Window {
    within: Duration,
    most: usize,
    skipped: AtomicU64,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Events in hand, and those acknowledged within the window.
    events: HashMap<Key, Stand, foldhash::fast::RandomState>,
    /// The acknowledged ones, the oldest first.
    acknowledged: VecDeque<(Instant, Key)>,
}

/// Source and id: together they are what an event is known by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key(Arc<(Box<str>, Box<str>)>);

impl Key {
    fn of(event: &Event) -> Self {
        Self(Arc::new((event.source().into(), event.id().into())))
    }
}

#[derive(Debug)]
enum Stand {
    /// Left when its settlement fires: acknowledged, or forgotten where it was refused.
    InHand(Watch),
    /// Left when the window has passed it, or when there are too many.
    Acknowledged,
}

impl Deduplication {
    /// Remembers acknowledged events for so long, and at most 100,000 of them.
    pub fn within(window: Duration) -> Self {
        Self::of(window, REMEMBERED)
    }

    /// Remembers at most so many acknowledged events; the oldest is forgotten for a newer one. At least as many as come in a
    /// window. Forgets what it has seen so far, and is no clone of what it was.
    pub fn remember(self, most: usize) -> Self {
        Self::of(self.window.within, most)
    }

    fn of(within: Duration, most: usize) -> Self {
        let (skipped, seen) = (AtomicU64::new(0), Mutex::default());
        Self { window: Arc::new(Window { within, most, skipped, seen }) }
    }

    /// Events that were acknowledged without being handled.
    pub fn skipped(&self) -> u64 {
        self.window.skipped.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.window.seen.lock().events.len()
    }
}

impl<S> Layer<S> for Deduplication {
    type Service = Surrounded<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Surrounded::new(self.clone(), inner)
    }
}

impl Around for Deduplication {
    type Pass = ();

    fn before(&self, request: &mut Request) -> Result<(), HandlerResult> {
        let Some(watch) = request.event.local::<Watch>() else { return Ok(()) };
        let key = Key::of(&request.event);
        match self.window.meet(&key, watch) {
            Meets::Itself => Ok(()),
            Meets::Nobody => {
                let (window, this) = (self.window.clone(), key.clone());
                if !watch.when_settled(move |how| window.settled(this, how)) {
                    self.window.forget(&key);
                }
                Ok(())
            }
            Meets::InHand => {
                let why = "another event with its source and id is in hand";
                Err(Err(Failure::new(FailureKind::Released, why)))
            }
            Meets::Acknowledged => {
                self.window.skipped.fetch_add(1, Ordering::Relaxed);
                let (id, source) = (request.event.id(), request.event.source());
                tracing::debug!(
                    id,
                    source,
                    "an event that was settled before is not handled again"
                );
                Err(Ok(Outputs::None))
            }
        }
    }
}

/// What an event finds under its source and id.
enum Meets {
    Nobody,
    Itself,
    InHand,
    Acknowledged,
}

impl Window {
    fn meet(&self, key: &Key, watch: &Watch) -> Meets {
        let mut seen = self.seen.lock();
        seen.forget_before(self.within, self.most);
        match seen.events.get(key) {
            Some(Stand::Acknowledged) => Meets::Acknowledged,
            Some(Stand::InHand(other)) if other.is(watch) => Meets::Itself,
            Some(Stand::InHand(_)) => Meets::InHand,
            None => {
                seen.events.insert(key.clone(), Stand::InHand(watch.clone()));
                Meets::Nobody
            }
        }
    }

    fn settled(&self, key: Key, how: Settled) {
        let mut seen = self.seen.lock();
        if !how.is_acknowledged() {
            seen.events.remove(&key);
            return;
        }
        seen.events.insert(key.clone(), Stand::Acknowledged);
        seen.acknowledged.push_back((Instant::now(), key));
        seen.forget_before(self.within, self.most);
    }

    fn forget(&self, key: &Key) {
        self.seen.lock().events.remove(key);
    }
}

impl Seen {
    fn forget_before(&mut self, within: Duration, most: usize) {
        let now = Instant::now();
        while let Some((at, _)) = self.acknowledged.front()
            && (self.acknowledged.len() > most || now.duration_since(*at) >= within)
        {
            if let Some((_, key)) = self.acknowledged.pop_front() {
                self.events.remove(&key);
            }
        }
    }
}
