//! The target of one pool: it takes time and fails at random. It records the event in the hand of
//! each worker, and the number of queued events of each key.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use greenroom_bus::source::generator::zipf::Chance;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::{
    load::{self, KEYS, MOST_OF_KEY, SLOW, WORK},
    settings::PlaySettings,
    window::{Window, WindowFigures},
};
use crate::commands::{
    demo::ledger::{Ledger, LedgerCounts},
    trial::{Arrival, Failed, Taken, Takes},
};

/// The event in the hand of a worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct InHand {
    pub(super) key: u32,
    pub(super) since: Instant,
    /// Its attempt has failed, and the worker waits for the next one.
    pub(super) waits: bool,
}

/// The line of a key.
#[derive(Default)]
struct KeyLine {
    /// Events accepted and not handled yet.
    length: AtomicU32,
    /// Events accepted so far: the number of the next one.
    accepted: AtomicU32,
    /// Its first event has been started, and not finished.
    begun: AtomicBool,
}

/// The end of one pool.
pub(super) struct PlayTarget {
    settings: Mutex<PlaySettings>,
    lines: Box<[KeyLine]>,
    /// By slot.
    hands: Mutex<BTreeMap<usize, InHand>>,
    window: Mutex<Window>,
    ledger: Ledger,
    chance: Mutex<Chance>,
    /// A failed event stays with its worker.
    keeps_worker: bool,
    failed: AtomicU64,
    turned_away: AtomicU64,
    started: Instant,
}

/// How much waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Events in all lines.
    pub(super) events: u32,
    /// Events of keys of which none has been started: nothing of their own is in their way.
    pub(super) held_up: u32,
    /// Keys with the longest lines, and the lines' lengths.
    pub(super) longest: Vec<(u32, u32)>,
}

impl PlayTarget {
    pub(super) fn new(
        settings: PlaySettings,
        keeps_worker: bool,
        seed: u64,
        started: Instant,
    ) -> Arc<Self> {
        Arc::new(Self {
            settings: Mutex::new(settings),
            lines: (0..KEYS).map(|_| KeyLine::default()).collect(),
            hands: Mutex::default(),
            window: Mutex::new(Window::new()),
            ledger: Ledger::new(KEYS as usize),
            chance: Mutex::new(Chance::new(seed)),
            keeps_worker,
            failed: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            started,
        })
    }

    pub(super) fn change(&self, settings: PlaySettings) {
        *self.settings.lock() = settings;
    }

    /// The number of the key's next event, with a place in its line; `None` if the line is full.
    /// There is one sender.
    pub(super) fn enter(&self, key: u32) -> Option<u32> {
        let line = &self.lines[key as usize];
        if line.length.load(Relaxed) >= MOST_OF_KEY {
            self.turned_away.fetch_add(1, Relaxed);
            return None;
        }
        line.length.fetch_add(1, Relaxed);
        Some(line.accepted.fetch_add(1, Relaxed))
    }

    /// Undoes [`enter`](Self::enter): the pool refused the event.
    pub(super) fn leave(&self, key: u32) {
        let line = &self.lines[key as usize];
        line.length.fetch_sub(1, Relaxed);
        line.accepted.fetch_sub(1, Relaxed);
        self.turned_away.fetch_add(1, Relaxed);
    }

    async fn handle(&self, slot: usize, arrival: Arrival) -> Result<(), Failed> {
        let key = arrival.key.unwrap_or(SLOW);
        let line = &self.lines[key as usize];
        let settings = *self.settings.lock();
        line.begun.store(true, Relaxed);
        let in_hand = InHand { key, since: Instant::now(), waits: false };
        self.hands.lock().insert(slot, in_hand);
        let slow = Duration::from_secs_f64(settings.slow_ms / 1e3);
        sleep(if key == SLOW { slow } else { WORK }).await;
        if self.chance.lock().unit() * 100.0 < settings.failure_percent {
            self.failed.fetch_add(1, Relaxed);
            self.put_down(slot, self.keeps_worker);
            return Err(Failed::Refused);
        }
        self.put_down(slot, false);
        line.begun.store(false, Relaxed);
        line.length.fetch_sub(1, Relaxed);
        self.ledger.saw(key, arrival.number);
        let now = self.started.elapsed();
        let time = load::is_cold(key).then(|| now.saturating_sub(arrival.due));
        self.window.lock().record(now, time);
        Ok(())
    }

    fn put_down(&self, slot: usize, waits: bool) {
        let mut hands = self.hands.lock();
        match hands.get_mut(&slot).filter(|_| waits) {
            Some(hand) => hand.waits = true,
            None => drop(hands.remove(&slot)),
        }
    }

    /// By slot.
    pub(super) fn hands(&self) -> BTreeMap<usize, InHand> {
        self.hands.lock().clone()
    }

    /// The figures of the last seconds.
    pub(super) fn figures(&self) -> WindowFigures {
        self.window.lock().figures(self.started.elapsed())
    }

    /// How much waits, with this many of the longest lines.
    pub(super) fn waiting(&self, most: usize) -> Waiting {
        let mut waiting = Waiting::default();
        for (key, line) in (0..).zip(&self.lines) {
            let length = line.length.load(Relaxed);
            waiting.events += length;
            if !line.begun.load(Relaxed) {
                waiting.held_up += length;
            }
            if length > 1 {
                waiting.longest.push((key, length));
            }
        }
        waiting.longest.sort_by_key(|(key, length)| (std::cmp::Reverse(*length), *key));
        waiting.longest.truncate(most);
        waiting
    }

    pub(super) fn counts(&self) -> LedgerCounts {
        self.ledger.counts()
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    pub(super) fn turned_away(&self) -> u64 {
        self.turned_away.load(Relaxed)
    }
}

impl Takes for PlayTarget {
    fn take(&self, slot: usize, arrival: Arrival) -> Taken<'_> {
        Taken::Later(Box::pin(self.handle(slot, arrival)))
    }
}
