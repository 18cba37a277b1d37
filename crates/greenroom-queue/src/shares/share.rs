//! One share: its line, its attempts in hand, and its limits.

use std::collections::VecDeque;

use super::{bucket::Bucket, limits::Limits};

/// Virtual time: nanoseconds in hand divided by a weight, in parts of a nanosecond.
pub(super) type Virtual = u128;

/// The parts of a nanosecond, as a power of two, so that a large weight loses no precision.
const PARTS: u32 = 20;

/// How many attempts a share has in hand, and since when.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InHand {
    pub(super) count: u32,
    /// The sum of their start times. A change of the weight restarts all of them.
    pub(super) since: u128,
    /// The sum of the times that they are expected to take from now on.
    pub(super) expected: u128,
}

/// Whether one attempt has to go first as a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    /// The next attempt is the probe. Forgotten at this time if none comes until then.
    Due { until: u64 },
    /// The worker in this slot has the probe in hand.
    Out { slot: usize },
}

/// Whether a share may start a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Startable,
    /// Nothing waits.
    Idle,
    /// It may not until it is resumed, or has a cap above 0.
    Paused,
    /// It may not before this time, because of a hold.
    Held(u64),
    /// It may not until the probe has ended.
    Probing,
    /// It may not until one of its attempts ends.
    Full,
    /// It may not before this time, because of its rate.
    Spent(u64),
}

/// One share.
pub(super) struct OneShare<S, T> {
    pub(super) name: S,
    pub(super) limits: Limits,
    /// True if the limits are its own, and are kept while nothing waits.
    pub(super) is_set: bool,
    /// The items that wait, in order.
    pub(super) line: VecDeque<T>,
    pub(super) hand: InHand,
    served: Served,
    pub(super) bucket: Bucket,
    pub(super) paused: bool,
    /// Nothing starts before this time.
    pub(super) hold: Option<u64>,
    pub(super) probe: Option<Probe>,
    /// Its places in the sets of all shares.
    pub(super) noted: Noted,
}

/// The time that a share has been charged for.
#[derive(Debug, Clone, Copy)]
struct Served {
    /// Divided by the weight.
    by_weight: Virtual,
    /// In nanoseconds.
    time: u64,
    /// The time at which all attempts in hand were charged, because the weight changed.
    until: u64,
}

/// Where a share is noted: its keys in the sets of all shares.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Noted {
    pub(super) ready: Option<Virtual>,
    pub(super) due: Option<u64>,
    pub(super) debt: Option<Virtual>,
}

impl<S, T> OneShare<S, T> {
    pub(super) fn new(name: S, limits: Limits, served: Virtual, time: u64) -> Self {
        Self {
            name,
            limits,
            is_set: false,
            line: VecDeque::new(),
            hand: InHand::default(),
            served: Served { by_weight: served, time, until: 0 },
            bucket: Bucket::default(),
            paused: false,
            hold: None,
            probe: None,
            noted: Noted::default(),
        }
    }

    fn by_weight(&self, nanos: u128) -> Virtual {
        (nanos << PARTS) / u128::from(self.limits.weight)
    }

    /// The time of the attempts in hand since they were last charged.
    fn uncharged(&self, now: u64) -> u128 {
        (u128::from(self.hand.count) * u128::from(now)).saturating_sub(self.hand.since)
    }

    /// Time in hand, including that of attempts that have not ended.
    pub(super) fn time_in_hand(&self, now: u64) -> u64 {
        let uncharged = u64::try_from(self.uncharged(now)).unwrap_or(u64::MAX);
        self.served.time.saturating_add(uncharged)
    }

    /// Time in hand of attempts that have ended.
    pub(super) fn time_charged(&self) -> u64 {
        self.served.time
    }

    /// The virtual time that it has had.
    pub(super) fn had(&self, now: u64) -> Virtual {
        self.served.by_weight + self.by_weight(self.uncharged(now))
    }

    /// The virtual time that it will have had once its attempts in hand have ended.
    pub(super) fn will_have_had(&self, now: u64) -> Virtual {
        self.served.by_weight + self.by_weight(self.uncharged(now) + self.hand.expected)
    }

    /// The share comes back: time that it missed until then is not made up for.
    pub(super) fn begin_at(&mut self, present: Virtual, now: u64) {
        self.served.by_weight += present.saturating_sub(self.had(now));
    }

    pub(super) fn started(&mut self, now: u64, expected: u64) {
        self.hand.count += 1;
        self.hand.since += u128::from(now);
        self.hand.expected += u128::from(expected);
        if let Some(rate) = self.limits.rate {
            self.bucket.take(rate, now);
        }
    }

    fn out_of_hand(&mut self, since: u64, expected: u64) -> u64 {
        let since = since.max(self.served.until);
        self.hand.count -= 1;
        self.hand.since -= u128::from(since);
        self.hand.expected -= u128::from(expected);
        since
    }

    /// The item was not started, so it costs nothing.
    pub(super) fn not_started(&mut self, since: u64, expected: u64) {
        self.out_of_hand(since, expected);
        if let Some(rate) = self.limits.rate {
            self.bucket.give_back(rate);
        }
    }

    /// An attempt ends, in whatever way. It costs at least a nanosecond, so that shares whose
    /// attempts take no time still take turns.
    pub(super) fn ended(&mut self, began: u64, expected: u64, now: u64) {
        let since = self.out_of_hand(began, expected);
        let took = now.saturating_sub(since).max(1);
        self.served.by_weight += self.by_weight(u128::from(took));
        self.served.time = self.served.time.saturating_add(took);
    }

    pub(super) fn set(&mut self, limits: Limits, now: u64) {
        let uncharged = self.uncharged(now);
        self.served.by_weight += self.by_weight(uncharged);
        self.served.time = self.time_in_hand(now);
        self.served.until = now;
        self.hand.since += uncharged;
        match (self.limits.rate, limits.rate) {
            (Some(from), Some(to)) => self.bucket.change(from, to, now),
            _ => self.bucket = Bucket::default(),
        }
        self.limits = limits;
    }

    pub(super) fn standing(&self, now: u64) -> Standing {
        if self.paused || self.limits.in_hand == Some(0) {
            return Standing::Paused;
        }
        if let Some(until) = self.hold.filter(|until| *until > now) {
            return Standing::Held(until);
        }
        if self.line.is_empty() {
            return Standing::Idle;
        }
        if let Some(Probe::Out { .. }) = self.probe {
            return Standing::Probing;
        }
        if self.limits.in_hand.is_some_and(|most| self.hand.count >= most) {
            return Standing::Full;
        }
        let next_at = self.limits.rate.map_or(0, |rate| self.bucket.next_at(rate));
        if next_at > now { Standing::Spent(next_at) } else { Standing::Startable }
    }

    /// Forgets a hold or a probe that has expired. Returns when the next state of this share ends:
    /// a hold, an unused probe, or a bucket that is not full.
    pub(super) fn ends_at(&mut self, now: u64) -> Option<u64> {
        self.hold = self.hold.filter(|until| *until > now);
        if let Some(Probe::Due { until }) = self.probe
            && until <= now
            && self.line.is_empty()
        {
            self.probe = None;
        }
        let probe = match self.probe {
            Some(Probe::Due { until }) if self.line.is_empty() => Some(until),
            _ => None,
        };
        let full_at = self.limits.rate.map(|rate| self.bucket.full_at(rate));
        let times = [self.hold, probe, full_at.filter(|full_at| *full_at > now)];
        times.into_iter().flatten().min()
    }

    /// True if the share is treated differently from others.
    pub(super) fn is_special(&self) -> bool {
        self.is_set || self.paused || self.hold.is_some() || self.probe.is_some()
    }

    /// True if the share has no state that a new share would not have.
    pub(super) fn is_forgettable(&self) -> bool {
        let rests = self.line.is_empty() && self.hand.count == 0;
        rests && !self.is_special()
    }
}
