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
#[cfg(feature = "store")]
use crate::store::seen::{SeenEvent, SeenStore};
use crate::{
    dead_letter::replay::Replayed,
    event::Event,
    handler::{Failure, FailureKind, HandlerResult, Outputs},
    settlement::{Following, Settled, Watch},
};

/// Events that are remembered by default: some 10 MB of ids and sources of usual length.
const REMEMBERED: usize = 100_000;

/// Acknowledges an event without handling it if an event with the same source and id was settled
/// within a time window.
///
/// An event counts as seen when it is **acknowledged**: its results are stored, or it is in the
/// dead letters. A refused event is delivered again and handled again. While the first of two is
/// not settled yet, the second is given back unstarted and asks again soon. A retry is not a
/// duplicate of itself. Neither is a result of the event that comes back in under its source and id
/// ([`LoopbackConfig`](crate::engine::LoopbackConfig)) while the event is not settled, because the
/// event is settled after it.
///
/// Once a result of the first event has come back in, the second stops asking, because it might
/// block events that the first waits for: it leaves its key and its pool, and is settled like the
/// first: acknowledged with it, or refused for the same reason.
///
/// The window is kept in memory: a restarted process has seen nothing, unless the window is
/// `stored` (cargo feature `store`). How often an event is repeated depends on how its source
/// behaves across a restart; to close that gap, the handler itself has to be idempotent.
///
/// A dead letter that is [replayed](crate::dead_letter::replay) is handled although it counts as
/// seen.
///
/// Clones share their window. Put around two handlers that both get an event (`fan_out`),
/// each needs one of its own.
#[derive(Debug, Clone)]
pub struct Deduplication {
    window: Arc<Window>,
}

#[derive(Debug)]
struct Window {
    within: Duration,
    most: usize,
    skipped: AtomicU64,
    seen: Mutex<SeenEvents>,
    /// The entries that survive a restart.
    #[cfg(feature = "store")]
    stored: Option<SeenStore>,
}

#[derive(Debug, Default)]
struct SeenEvents {
    /// Events in hand, and those acknowledged within the window.
    events: HashMap<Key, Stand, foldhash::fast::RandomState>,
    /// The acknowledged ones, the oldest first.
    acknowledged: VecDeque<(Instant, Key)>,
}

/// Source and id, which together identify an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key(Arc<(Box<str>, Box<str>)>);

impl Key {
    fn from_event(event: &Event) -> Self {
        Self(Arc::new((event.source().into(), event.id().into())))
    }
}

#[derive(Debug)]
enum Stand {
    /// Left when its settlement fires: acknowledged, or forgotten if it was refused.
    InHand(Watch),
    /// Left when the window has passed it, or when there are too many.
    Acknowledged,
}

impl Deduplication {
    /// Remembers acknowledged events for this time, at most 100,000 of them.
    pub fn within(window: Duration) -> Self {
        Self::new(window, REMEMBERED)
    }

    /// Remembers at most this many acknowledged events; the oldest is dropped for a newer one.
    /// Should be at least the number of events within a window. Starts empty, and is no clone of
    /// the layer that it was made from.
    pub fn remember(self, most: usize) -> Self {
        Self::new(self.window.within, most)
    }

    fn new(within: Duration, most: usize) -> Self {
        let (skipped, seen) = (AtomicU64::new(0), Mutex::default());
        Self {
            window: Arc::new(Window {
                within,
                most,
                skipped,
                seen,
                #[cfg(feature = "store")]
                stored: None,
            }),
        }
    }

    /// Stores the window in this directory, across restarts, with the same bounds on number and
    /// age. It is written in the background, ten times a second: no event waits for it, and a crash
    /// loses the latest entries. A source and an id of more than 4 KiB together are remembered in
    /// memory only. Starts empty, and is no clone of the layer that it was made from.
    ///
    /// # Errors
    /// Another process or another layer writes there, or it cannot be read or written.
    #[cfg(feature = "store")]
    pub fn stored(self, directory: &std::path::Path) -> Result<Self, crate::sink::SinkError> {
        let (within, most) = (self.window.within, self.window.most);
        let (store, known) = SeenStore::open(directory, within, most)?;
        let (mut seen, now) = (SeenEvents::default(), Instant::now());
        for SeenEvent { source, id, age } in known {
            let key = Key(Arc::new((source.into(), id.into())));
            seen.events.insert(key.clone(), Stand::Acknowledged);
            seen.acknowledged.push_back((now.checked_sub(age).unwrap_or(now), key));
        }
        let (skipped, seen) = (AtomicU64::new(0), Mutex::new(seen));
        Ok(Self { window: Arc::new(Window { within, most, skipped, seen, stored: Some(store) }) })
    }

    /// Waits until all entries are stored, if they are stored at all, for at most this time. Blocks
    /// its thread.
    #[cfg(feature = "store")]
    pub fn flush(&self, patience: Duration) {
        if let Some(stored) = &self.window.stored {
            stored.flush(patience);
        }
    }

    /// Why entries cannot be stored at present, if so.
    #[cfg(feature = "store")]
    pub fn store_error(&self) -> Option<String> {
        self.window.stored.as_ref().and_then(SeenStore::error)
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
        let key = Key::from_event(&request.event);
        match self.window.meet(&key, watch) {
            Meets::Itself => Ok(()),
            Meets::Nobody => {
                let (window, this) = (self.window.clone(), key.clone());
                if !watch.when_settled(move |how| window.settled(this, how)) {
                    self.window.forget(&key);
                }
                Ok(())
            }
            // A dead letter counts as seen. An operator who replays it wants it to be handled
            // again.
            _ if request.event.local::<Replayed>().is_some() => Ok(()),
            Meets::InHand(first) => match watch.follow(&first) {
                Following::Waits => {
                    self.window.skips_with(watch);
                    Err(Ok(Outputs::None))
                }
                // The first is settled only after this one.
                Following::IsPart => Ok(()),
                Following::Not => {
                    let why = "another event with its source and id is in hand";
                    Err(Err(Failure::new(FailureKind::Released, why)))
                }
            },
            Meets::Acknowledged => {
                self.window.skipped.fetch_add(1, Ordering::Relaxed);
                let (id, source) = (request.event.id(), request.event.source());
                tracing::debug!(
                    id,
                    source,
                    trace_id = request.event.trace_id(),
                    "an event that was settled before is not handled again"
                );
                Err(Ok(Outputs::None))
            }
        }
    }
}

/// The entry that an event finds for its source and id.
enum Meets {
    Nobody,
    Itself,
    InHand(Watch),
    Acknowledged,
}

impl Window {
    fn meet(&self, key: &Key, watch: &Watch) -> Meets {
        let mut seen = self.seen.lock();
        seen.forget_before(self.within, self.most);
        match seen.events.get(key) {
            Some(Stand::Acknowledged) => Meets::Acknowledged,
            Some(Stand::InHand(other)) if other.is(watch) => Meets::Itself,
            Some(Stand::InHand(other)) => Meets::InHand(other.clone()),
            None => {
                seen.events.insert(key.clone(), Stand::InHand(watch.clone()));
                Meets::Nobody
            }
        }
    }

    fn settled(&self, key: Key, how: Settled) {
        #[cfg(feature = "store")]
        if let Some(stored) = self.stored.as_ref().filter(|_| how.is_acknowledged()) {
            stored.add(&key.0.0, &key.0.1);
        }
        let mut seen = self.seen.lock();
        if !how.is_acknowledged() {
            seen.events.remove(&key);
            return;
        }
        seen.events.insert(key.clone(), Stand::Acknowledged);
        seen.acknowledged.push_back((Instant::now(), key));
        seen.forget_before(self.within, self.most);
    }

    /// Counts an event that follows another once it is acknowledged.
    fn skips_with(self: &Arc<Self>, watch: &Watch) {
        let window = self.clone();
        watch.when_settled(move |how| {
            let skipped = u64::from(how.is_acknowledged());
            window.skipped.fetch_add(skipped, Ordering::Relaxed);
        });
    }

    fn forget(&self, key: &Key) {
        self.seen.lock().events.remove(key);
    }
}

impl SeenEvents {
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
