//! Advice on the sizes of pools.

use std::time::Duration;

use greenroom::advisor::Advisor;
use greenroom_config::{At, count, duration, number, options, units::DAY_MS, words};

/// The advisor never suggests a smaller queue than this, which is the default size: the savings
/// would not be worth a line.
const LEAST_QUEUE: usize = 1_000;
/// The most that `queue` takes.
const MOST_QUEUE: usize = 10_000_000;

words! {
    /// The reaction to a pool whose sizes do not suit its load.
    pub enum Autotune {
        /// Nothing: pools are not inspected.
        Off = "off",
        /// The advice is shown.
        Say = "say",
    }
}

options! {
    /// The rules for advice on the sizes of a pool: after each period, the first of three rules
    /// that applies recommends a change (docs/advisor.md). A pool inherits what it leaves out from
    /// the top.
    #[derive(Copy)]
    pub struct AdvisorConfig = "advisor" {
        /// The period over which figures are averaged: several times as long as the bursts that the
        /// pool must absorb.
        period: Duration = duration(1_000..=DAY_MS).default("5m");
        /// How often per minute the queue may become full.
        full_per_minute: f64 = number(0.0..=1_000_000.0).default("10");
        /// The average use of the queue that is high, as a share of it: a queue that becomes full
        /// too often and is used more is enlarged.
        high_use: f64 = number(0.0..=1.0).default("0.8");
        /// Events per worker below which a queue is shallow: a shallow queue that becomes full too
        /// often is enlarged.
        shallow: usize = count(1..=10_000_000).default("500");
        /// The longest time in the pool, waiting and in hand, for 99 of 100 events.
        p99: Duration = duration(1..=DAY_MS).default("100ms");
        /// Events per worker that make a long queue, on average.
        deep: usize = count(1..=10_000_000).default("5000");
        /// The share of the queue that makes a long queue, however short it is.
        deep_share: f64 = number(0.0..=1.0).default("0.8");
        /// The average use of the queue that is low, as a share of it: a queue that is used less is
        /// shrunk, but not below 1,000.
        low_use: f64 = number(0.0..=1.0).default("0.2");
    }
}

impl AdvisorConfig {
    /// Fills in the options that the pool leaves out from the top of the file.
    pub(super) fn inherit(self, top: &Self, pool: &str, at: &At<'_>) -> Self {
        let written = |option: &str| at.has(&format!("pools.{pool}.advisor.{option}"));
        let of = |option: &str| if written(option) { self } else { *top };
        Self {
            period: of("period").period,
            full_per_minute: of("full_per_minute").full_per_minute,
            high_use: of("high_use").high_use,
            shallow: of("shallow").shallow,
            p99: of("p99").p99,
            deep: of("deep").deep,
            deep_share: of("deep_share").deep_share,
            low_use: of("low_use").low_use,
        }
    }

    /// The advisor for a pool.
    pub(super) fn advisor(self) -> Advisor {
        Advisor {
            period: self.period,
            full_per_minute: self.full_per_minute,
            high_use: self.high_use,
            shallow: self.shallow,
            p99: self.p99,
            deep: self.deep,
            deep_share: self.deep_share,
            low_use: self.low_use,
            least_queue: LEAST_QUEUE,
            most_queue: MOST_QUEUE,
        }
    }
}
