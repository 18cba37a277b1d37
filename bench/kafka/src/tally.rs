//! What was handled: how many, from when to when, and how long the busiest key took by itself.

use std::{
    collections::HashMap,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use measure::processor_time;

use crate::run::Run;

pub struct Tally {
    events: u64,
    count: AtomicU64,
    /// When the first began, and the processor time that was used by then.
    began: OnceLock<(Instant, f64)>,
    ended: OnceLock<(Instant, f64)>,
    /// Of each key, where handlers take their time.
    busy: Mutex<HashMap<String, Duration>>,
}

impl Tally {
    pub fn new(events: u64) -> Self {
        Self {
            events,
            count: AtomicU64::new(0),
            began: OnceLock::new(),
            ended: OnceLock::new(),
            busy: Mutex::default(),
        }
    }

    /// The clock starts before the first is handled.
    pub fn begins(&self) {
        self.began.get_or_init(now);
    }

    pub fn was_busy(&self, key: &str, time: Duration) {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        match busy.get_mut(key) {
            Some(sum) => *sum += time,
            None => drop(busy.insert(key.to_owned(), time)),
        }
    }

    /// True for the last one, which stops the clock.
    pub fn handled(&self) -> bool {
        let is_last = self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.events;
        if is_last {
            self.ended.get_or_init(now);
        }
        is_last
    }

    pub fn run(&self) -> Run {
        let now = now();
        let (began, used_before) = *self.began.get().unwrap_or(&now);
        let (ended, used) = *self.ended.get().unwrap_or(&now);
        let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        Run {
            seconds: (ended - began).as_secs_f64(),
            events: self.count.load(Ordering::Relaxed),
            processor: used - used_before,
            busiest: busy.values().max().copied().unwrap_or_default().as_secs_f64(),
        }
    }
}

fn now() -> (Instant, f64) {
    (Instant::now(), processor_time())
}
