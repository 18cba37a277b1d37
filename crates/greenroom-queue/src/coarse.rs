//! A clock that costs one load to read: its time stays the same until the real clock is read.
//!
//! | runtime | read by | lag at most |
//! |---|---|---|
//! | several threads | the watchdog at each tick; a sender or a worker while it does not look | a tick (10 ms if handlers usually wait), or longer if the watchdog is late |
//! | one thread | a sender that finds no worker awake or the clock stopped, a worker that is woken for a queue, a handler that suspends or resumes | as long as a handler or a sender computes without a pause |
//!
//! On one thread, time passes unseen only while a task computes: while a worker is awake, the
//! runtime does not rest before that worker has had its turn. So if handlers are quick, a message
//! that goes to an idle worker through its [handoff slot](super::handoff) gets no real time there:
//! most are settled before anyone asks for their age. The first to ask (an observer or the handler)
//! reads the real clock, and so does a worker whose handler suspends. Until then this clock [is
//! stopped](CoarseClock::stands), and senders know it.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use super::{
    stamp::{SAMPLED_OF_BRISK, SAMPLED_OF_QUICK, Stamp},
    sync::Instant,
    wake::QUICK,
    watchdog::TICK,
};

/// The time since a pool was made, in nanoseconds.
pub struct CoarseClock {
    start: Instant,
    /// The time shown, as a stamp.
    now: AtomicU64,
    /// One message in this many plus one is measured: a power of two, minus one.
    unmeasured: AtomicU64,
    /// The number of measured messages in a row that were slow enough to measure more often.
    slow: AtomicU32,
    /// The clock is on time while this many workers are awake: [`WATCHED`], [`TENDED`] or
    /// [`STANDS`].
    care: AtomicUsize,
    /// No message before this one is measured.
    first: u64,
}

/// The watchdog sets the clock.
const WATCHED: usize = 0;

/// On one thread: a caller that arrives while no worker is awake sets the clock.
const TENDED: usize = 1;

/// Like `TENDED`, but the clock was not set for a message that was given to an idle worker.
const STANDS: usize = usize::MAX;

/// If handlers take longer than this, every message is measured: measuring takes less than a
/// hundredth of that time.
const BRISK: Duration = Duration::from_micros(32);

/// This many measured messages in a row must be slower than before until more are measured.
const SLOW_IN_A_ROW: u32 = 4;

/// If the watchdog is later than this, senders that read the real clock also set this one.
const LATE: u64 = 2 * TICK.as_nanos() as u64;

impl CoarseClock {
    /// A clock that starts now. The watchdog sets it if `is_watched`; messages before `first` are
    /// not measured.
    pub fn new(is_watched: bool, first: u64) -> Self {
        Self {
            start: Instant::now(),
            now: AtomicU64::new(0),
            unmeasured: AtomicU64::new(0),
            slow: AtomicU32::new(0),
            care: AtomicUsize::new(if is_watched { WATCHED } else { TENDED }),
            first,
        }
    }

    /// The time when the clock started.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// The moment that a stamp stands for.
    pub fn at(&self, stamp: Stamp) -> Instant {
        self.start + Duration::from_nanos(stamp.nanos())
    }

    /// The time shown.
    #[inline]
    pub fn shown(&self) -> u64 {
        self.coarse_stamp().nanos()
    }

    /// The time shown, after setting the clock if it is stopped.
    pub fn timely(&self) -> u64 {
        if self.stands() { self.set() } else { self.shown() }
    }

    /// The real time.
    pub fn real(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Sets the clock to the real time, and returns that.
    pub fn set(&self) -> u64 {
        let real = self.real();
        self.show(real);
        real
    }

    /// The stamp for the message with this number. `is_late` is true if the real time has not been
    /// read for a while.
    #[inline]
    pub fn stamp(&self, number: u64, is_late: bool) -> Stamp {
        match self.measures(number) {
            true => self.sample(),
            false => self.timely_stamp(is_late),
        }
    }

    /// Like `stamp`, for a message that goes to an idle worker through its handoff slot. On one
    /// thread the stamp is undated if the real time has not been read for a while and handlers are
    /// so quick that reading it would be noticeable.
    #[inline]
    pub fn stamp_of_handoff(&self, number: u64, is_late: bool, is_quick: bool) -> Stamp {
        if self.measures(number) {
            return self.sample();
        }
        if is_late && is_quick && !self.is_watched() {
            self.care.store(STANDS, Ordering::Relaxed);
            return Stamp::UNDATED;
        }
        self.timely_stamp(is_late)
    }

    #[inline]
    fn measures(&self, number: u64) -> bool {
        is_measured(number, self.unmeasured.load(Ordering::Relaxed)) && number >= self.first
    }

    /// True if the watchdog sets the clock.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.care.load(Ordering::Relaxed) == WATCHED
    }

    /// True if the clock is stopped: it is late although a worker is awake.
    #[inline]
    pub fn stands(&self) -> bool {
        self.care.load(Ordering::Relaxed) == STANDS
    }

    /// True if the clock is on time, or the watchdog sets it. `awake` counts the awake workers and
    /// is called only if that matters.
    #[inline]
    pub fn is_timely(&self, awake: impl FnOnce() -> usize) -> bool {
        !self.is_late(|| false, awake)
    }

    /// True if the clock may have been stopped for long. The functions are called only if their
    /// answers matter.
    #[inline]
    pub fn is_late(
        &self,
        is_unwatched: impl FnOnce() -> bool,
        awake: impl FnOnce() -> usize,
    ) -> bool {
        match self.care.load(Ordering::Relaxed) {
            WATCHED => is_unwatched(),
            // In this order: the clock is marked as stopped before the worker counts as awake.
            _ => awake() < self.care.load(Ordering::Acquire),
        }
    }

    /// The stamp for a message that is not measured.
    #[inline]
    pub fn timely_stamp(&self, is_late: bool) -> Stamp {
        if is_late {
            self.set();
        }
        self.coarse_stamp()
    }

    /// The stamp for a message that is not measured, if the clock is not late.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn coarse_stamp(&self) -> Stamp {
        Stamp::from_bits(self.now.load(Ordering::Relaxed))
    }

    fn show(&self, nanos: u64) {
        self.now.store(Stamp::coarse(nanos).bits(), Ordering::Relaxed);
        if self.stands() {
            self.care.store(TENDED, Ordering::Release);
        }
    }

    /// The number of messages from this one on that are not measured.
    pub fn unmeasured_from(&self, number: u64) -> u64 {
        until_measured(number, self.unmeasured.load(Ordering::Relaxed))
    }

    #[cold]
    fn sample(&self) -> Stamp {
        let stands_for = self.unmeasured.load(Ordering::Relaxed) + 1;
        let real = self.real();
        if !self.is_watched() || real > self.shown() + LATE {
            self.show(real);
        }
        Stamp::sampled(real, stands_for)
    }

    /// True if handlers are so quick that only few messages are measured.
    pub fn measures_few(&self) -> bool {
        self.unmeasured.load(Ordering::Relaxed) == SAMPLED_OF_QUICK - 1
    }

    /// Adapts to the pace: the longer handlers take, the more messages are measured, as the cost
    /// then makes no difference. A single long one among quick ones was preempted by the operating
    /// system.
    pub fn note_pace(&self, took: Duration) {
        let one_in = match took {
            took if took < QUICK => SAMPLED_OF_QUICK,
            took if took < BRISK => SAMPLED_OF_BRISK,
            _ => 1,
        };
        let (unmeasured, before) = (one_in - 1, self.unmeasured.load(Ordering::Relaxed));
        let is_slow = unmeasured < before;
        let slow = if is_slow { self.slow.load(Ordering::Relaxed) + 1 } else { 0 };
        let changes = unmeasured > before || slow >= SLOW_IN_A_ROW;
        self.slow.store(if changes { 0 } else { slow }, Ordering::Relaxed);
        if changes {
            self.unmeasured.store(unmeasured, Ordering::Relaxed);
        }
    }
}

/// One message of each block of `unmeasured` plus one is measured, at a position that changes from
/// block to block. At a fixed position, all measured messages could be of one kind if messages of
/// several kinds alternate.
#[inline]
fn is_measured(number: u64, unmeasured: u64) -> bool {
    number & unmeasured == place_in_block(number & !unmeasured, unmeasured)
}

/// The position is in the first half of the block, so two measured messages are more than half a
/// block apart. A multiplicative hash (Knuth: The Art of Computer Programming 3, 6.4).
#[inline]
fn place_in_block(block: u64, unmeasured: u64) -> u64 {
    (block.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) & (unmeasured >> 1)
}

/// The number of messages from this one on that are not measured.
fn until_measured(number: u64, unmeasured: u64) -> u64 {
    let (at, block) = (number & unmeasured, number & !unmeasured);
    let place = place_in_block(block, unmeasured);
    if at <= place {
        return place - at;
    }
    let next = place_in_block(block.wrapping_add(unmeasured + 1), unmeasured);
    unmeasured + 1 - at + next
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASKS: [u64; 3] = [0, SAMPLED_OF_BRISK - 1, SAMPLED_OF_QUICK - 1];

    fn clock() -> CoarseClock {
        CoarseClock::new(true, 0)
    }

    #[test]
    fn o01_one_message_of_each_block_is_measured_wherever_it_stands() {
        for unmeasured in MASKS {
            let measured = |number: &u64| is_measured(*number, unmeasured);
            let numbers: Vec<u64> = (0..100 * SAMPLED_OF_QUICK).filter(measured).collect();
            let blocks = numbers.iter().map(|number| number / (unmeasured + 1));
            assert!(blocks.eq(0..100 * SAMPLED_OF_QUICK / (unmeasured + 1)));
            for two in numbers.windows(2) {
                assert_eq!(until_measured(two[0] + 1, unmeasured), two[1] - two[0] - 1);
                assert_eq!(until_measured(two[0], unmeasured), 0);
                assert!(2 * (two[1] - two[0]) > unmeasured, "a run has two: {two:?}");
            }
        }
    }

    #[test]
    fn o01_messages_that_take_turns_are_measured_alike() {
        for unmeasured in &MASKS[1..] {
            for kinds in [2, 3, 4] {
                let mut of_kind = vec![0_u32; kinds as usize];
                let numbers = 0..2_000 * (unmeasured + 1);
                numbers.filter(|number| is_measured(*number, *unmeasured)).for_each(|number| {
                    of_kind[(number % kinds) as usize] += 1;
                });
                let fair = 2_000 / kinds as u32;
                let range = fair * 4 / 5..=fair * 6 / 5;
                assert!(of_kind.iter().all(|count| range.contains(count)), "{of_kind:?}");
            }
        }
    }

    #[test]
    fn o01_the_longer_handlers_take_the_more_messages_are_measured() {
        let clock = clock();
        let unmeasured = || clock.unmeasured.load(Ordering::Relaxed);
        let tell = |micros| clock.note_pace(Duration::from_micros(micros));
        assert_eq!(unmeasured(), 0, "before anything is known, every message is");
        for (micros, one_in) in [(40, 1), (31, 8), (1, 512)] {
            tell(micros);
            assert_eq!(unmeasured() + 1, one_in, "at once, after {micros} us");
        }
        for (micros, one_in) in [(2, 8), (32, 1)] {
            let before = unmeasured();
            (1..SLOW_IN_A_ROW).for_each(|_| tell(micros));
            assert_eq!(unmeasured(), before, "not because of a few");
            tell(micros);
            assert_eq!(unmeasured() + 1, one_in, "{micros} us");
        }
    }

    #[test]
    fn a_quick_message_between_slow_ones_begins_the_count_again() {
        let clock = clock();
        let tell = |micros| clock.note_pace(Duration::from_micros(micros));
        [0, 9, 9, 9, 0, 9, 9, 9].into_iter().for_each(tell);
        assert!(clock.measures_few());
        tell(9);
        assert!(!clock.measures_few());
    }
}
