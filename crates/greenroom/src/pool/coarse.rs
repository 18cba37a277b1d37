//! A clock that costs a load: it stands still until somebody looks at the real one.
//!
//! | on | looked at by | so it is late by |
//! |---|---|---|
//! | several threads | the watch, each tick, while a worker is awake or work is ready; whoever comes when it does not look | a tick, or what the watch is late |
//! | one thread | a sender that finds no worker awake, a worker that is woken for a queue | what a handler or a sender computes without a pause |
//!
//! On one thread time passes unseen only while somebody computes: as long as a worker is awake, the runtime does not rest
//! before that worker has had its turn.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    stamp::{SAMPLED_OF_QUICK, Stamp},
    wake::QUICK,
    watch::TICK,
};

/// The time since a pool was made, in nanoseconds.
pub(crate) struct CoarseClock {
    start: Instant,
    /// What it shows, as a stamp.
    now: AtomicU64,
    /// A message is measured where its number has none of these bits.
    unmeasured: AtomicU64,
    /// Measured messages in a row that took long, while few are measured.
    slow: AtomicU32,
    /// No message before this one is measured.
    first: u64,
    /// The watch looks after it.
    pub(crate) is_watched: bool,
}

/// So many measured messages in a row have to take long before every one is measured.
const SLOW_IN_A_ROW: u32 = 4;

/// Where the watch is later than this, senders that read the real clock set this one.
const LATE: u64 = 2 * TICK.as_nanos() as u64;

impl CoarseClock {
    pub(crate) fn new(is_watched: bool, first: u64) -> Self {
        let (now, unmeasured) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { start: Instant::now(), now, unmeasured, slow: AtomicU32::new(0), first, is_watched }
    }

    /// When it began.
    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// The moment that a stamp tells.
    pub(crate) fn at(&self, stamp: Stamp) -> Instant {
        self.start + Duration::from_nanos(stamp.nanos())
    }

    /// What it shows.
    #[inline]
    pub(crate) fn shown(&self) -> u64 {
        self.coarse_stamp().nanos()
    }

    /// The real time.
    pub(crate) fn real(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Sets it by the real time, and returns that.
    pub(crate) fn set(&self) -> u64 {
        let real = self.real();
        self.show(real);
        real
    }

    /// The stamp for the message with this number. `is_late` where nobody has looked at the real time for a while.
    #[inline]
    pub(crate) fn stamp(&self, number: u64, is_late: bool) -> Stamp {
        if number & self.unmeasured.load(Ordering::Relaxed) == 0 && number >= self.first {
            return self.sample();
        }
        self.timely_stamp(is_late)
    }

    /// The stamp for a message that is not measured.
    #[inline]
    pub(crate) fn timely_stamp(&self, is_late: bool) -> Stamp {
        if is_late {
            self.set();
        }
        self.coarse_stamp()
    }

    /// The stamp for a message that is not measured, where the clock is not late.
    #[inline(always)]
    pub(crate) fn coarse_stamp(&self) -> Stamp {
        Stamp::from_bits(self.now.load(Ordering::Relaxed))
    }

    fn show(&self, nanos: u64) {
        self.now.store(Stamp::coarse(nanos).bits(), Ordering::Relaxed);
    }

    /// How many messages from this number on are not measured.
    pub(crate) fn unmeasured_from(&self, number: u64) -> u64 {
        let unmeasured = self.unmeasured.load(Ordering::Relaxed);
        number.wrapping_neg() & unmeasured
    }

    #[cold]
    fn sample(&self) -> Stamp {
        let stands_for = self.unmeasured.load(Ordering::Relaxed) + 1;
        let real = self.real();
        if !self.is_watched || real > self.shown() + LATE {
            self.show(real);
        }
        Stamp::sampled(real, stands_for)
    }

    /// True where handlers are so quick that few messages are measured.
    pub(crate) fn measures_few(&self) -> bool {
        self.unmeasured.load(Ordering::Relaxed) != 0
    }

    /// Every message is measured where handlers take long enough for that to make no difference. One that takes long among
    /// quick ones was put aside by the operating system.
    pub(crate) fn tell_pace(&self, took: Duration) {
        let quick = took < QUICK;
        let slow = if quick { 0 } else { self.slow.load(Ordering::Relaxed).saturating_add(1) };
        self.slow.store(slow, Ordering::Relaxed);
        let few = self.unmeasured.load(Ordering::Relaxed) != 0;
        if quick && !few {
            self.unmeasured.store(SAMPLED_OF_QUICK - 1, Ordering::Relaxed);
        } else if few && slow >= SLOW_IN_A_ROW {
            self.unmeasured.store(0, Ordering::Relaxed);
        }
    }
}
