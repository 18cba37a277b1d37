//! When a message was queued: the time in nanoseconds, and whether the message is one of those
//! whose durations are measured.
//!
//! ```text
//!  63                                                          2 1 0
//! ┌─────────────────────────────────────────────────────────────┬───┐
//! │ nanoseconds since the pool was made                         │ s │  s: 0 not measured, 1 stands for itself,
//! └─────────────────────────────────────────────────────────────┴───┘     2 stands for 512 messages, 3 for 8
//! ```

use std::time::Duration;

/// If handlers are quick, one message in this many is measured. Measuring takes three clock reads
/// and two histogram entries: the cost would be noticeable if fewer messages shared it.
pub const SAMPLED_OF_QUICK: u64 = 512;

/// Like `SAMPLED_OF_QUICK`, if handlers take a little longer: measuring each message would take a
/// tenth of the time.
pub const SAMPLED_OF_BRISK: u64 = 8;

/// The bits that say how many messages this one represents.
const SAMPLE_BITS: u32 = 2;
const SAMPLE: u64 = (1 << SAMPLE_BITS) - 1;
const ITSELF: u64 = 1;
const MANY: u64 = 2;
const SEVERAL: u64 = 3;

/// The latest time that fits, 146 years, is [`UNDATED`](Stamp::UNDATED).
const LATEST: u64 = u64::MAX >> SAMPLE_BITS;

/// When a message was queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp(u64);

impl Stamp {
    /// No time.
    pub const NONE: Self = Self(0);

    /// The stamp of a message for which the clock was not read.
    pub const UNDATED: Self = Self(LATEST << SAMPLE_BITS);

    /// The stamp of a message that is not measured.
    #[inline]
    pub fn coarse(nanos: u64) -> Self {
        Self(nanos.min(LATEST - 1) << SAMPLE_BITS)
    }

    /// The stamp of a measured message, which represents this many messages.
    #[inline]
    pub fn sampled(nanos: u64, stands_for: u64) -> Self {
        let sample = match stands_for {
            1 => ITSELF,
            SAMPLED_OF_BRISK => SEVERAL,
            _ => MANY,
        };
        Self(Self::coarse(nanos).0 | sample)
    }

    /// The stamp with these [`bits`](Self::bits).
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The stamp as a number, for [`from_bits`](Self::from_bits).
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Nanoseconds since the pool was made.
    #[inline]
    pub fn nanos(self) -> u64 {
        self.0 >> SAMPLE_BITS
    }

    /// True if the message is measured.
    #[inline]
    pub fn is_sampled(self) -> bool {
        self.0 & SAMPLE != 0
    }

    /// The number of messages that a measured one represents.
    #[inline]
    pub fn stands_for(self) -> u64 {
        match self.0 & SAMPLE {
            MANY => SAMPLED_OF_QUICK,
            SEVERAL => SAMPLED_OF_BRISK,
            _ => 1,
        }
    }

    /// The earliest of these, if there are any.
    pub fn earliest(stamps: &[Option<Self>]) -> Option<Self> {
        stamps.iter().flatten().min_by_key(|stamp| stamp.nanos()).copied()
    }

    /// The time from the stamp until `now`. A coarse clock may be a little behind a precise one.
    #[inline]
    pub fn age(self, now: u64) -> Duration {
        Duration::from_nanos(now.saturating_sub(self.nanos()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{SAMPLED_OF_BRISK, SAMPLED_OF_QUICK, Stamp};

    #[test]
    fn the_earliest_is_found_among_those_that_there_are() {
        let [five, seven] = [5, 7].map(|nanos| Some(Stamp::coarse(nanos)));
        assert_eq!(Stamp::earliest(&[seven, None, five]), five);
        assert_eq!(Stamp::earliest(&[None, seven]), seven);
        assert_eq!(Stamp::earliest(&[None]), None);
    }

    #[test]
    fn a_stamp_keeps_its_time_and_says_what_it_stands_for() {
        for (stamp, sampled, stands_for) in [
            (Stamp::coarse(77), false, 1),
            (Stamp::sampled(77, 1), true, 1),
            (Stamp::sampled(77, SAMPLED_OF_QUICK), true, SAMPLED_OF_QUICK),
            (Stamp::sampled(77, SAMPLED_OF_BRISK), true, SAMPLED_OF_BRISK),
        ] {
            assert_eq!((stamp.nanos(), stamp.is_sampled()), (77, sampled));
            assert_eq!(stamp.stands_for(), stands_for);
            assert_eq!(stamp.age(1_077), Duration::from_micros(1));
            assert_eq!(stamp.age(7), Duration::ZERO, "the clock was read elsewhere");
        }
        assert!(!Stamp::coarse(u64::MAX).is_sampled(), "a time without end is no sample");
        assert!(!Stamp::UNDATED.is_sampled() && Stamp::UNDATED != Stamp::coarse(0));
    }
}
