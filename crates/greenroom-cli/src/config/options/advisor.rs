//! Advice on the sizes of pools.

use std::time::Duration;

use greenroom::advisor::Advisor;
use greenroom_config::{At, count, duration, number, options, units::DAY_MS, words};

/// Nobody is advised to make a queue smaller than this, which is what one has that nothing was said
/// of: what it would save is not worth a line.
const LEAST_QUEUE: usize = 1_000;
/// The most that `queue` takes.
const MOST_QUEUE: usize = 10_000_000;

words! {
    /// What is done about a pool whose sizes do not suit its load.
    pub enum Autotune {
        /// Nothing: nobody looks.
        Off = "off",
        /// It is said.
        Say = "say",
    }
}

options! {
    /// When the sizes of a pool are worth advice: after each period, the first of three rules that
    /// applies says what to change (docs/advisor.md). What a pool leaves out is as at the top.
    #[derive(Copy)]
    pub struct AdvisorConfig = "advisor" {
        /// How long a period is, of which figures are averaged: several times as long as the bursts
        /// that the pool is to bear.
        period: Duration = duration(1_000..=DAY_MS).default("5m");
        /// How often a minute the queue may become full.
        full_per_minute: f64 = number(0.0..=1_000_000.0).default("10");
        /// The share of the queue that is much to be used on average: one that becomes full too
        /// often and is used more is grown.
        high_use: f64 = number(0.0..=1.0).default("0.8");
        /// Events for each worker below which a queue is shallow: one that becomes full too often
        /// is grown.
        shallow: usize = count(1..=10_000_000).default("500");
        /// How long one event in a hundred may be in the pool, waiting and in hand.
        p99: Duration = duration(1..=DAY_MS).default("100ms");
        /// Events for each worker that are a long queue, on average.
        deep: usize = count(1..=10_000_000).default("5000");
        /// The share of the queue that is a long queue, however short.
        deep_share: f64 = number(0.0..=1.0).default("0.8");
        /// The share of the queue that is little to be used on average: one that is used less is
        /// shrunk, to 1,000 at the least.
        low_use: f64 = number(0.0..=1.0).default("0.2");
    }
}

impl AdvisorConfig {
    /// With what the top says where a pool says nothing.
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

    /// Who looks at a pool.
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
