//! How many workers each share of a pool has had of late (Q11).

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use greenroom::shares::Share;
use greenroom_bus::engine::{Control, PoolSharesControl};
use parking_lot::Mutex;

/// What was seen counts for less and less, for about this long.
const OVER: Duration = Duration::from_secs(10);

/// Fewer workers than this on average are none.
const NONE: f64 = 1e-3;

/// The workers of each share, by pool.
#[derive(Debug, Default)]
pub(super) struct RecentShares(Mutex<HashMap<String, WorkersOfShares>>);

/// The workers of each share of a pool on average, and when that was.
#[derive(Debug, Default)]
struct WorkersOfShares {
    at: Option<Instant>,
    workers: HashMap<Share, f64>,
}

/// The share of a pool that has most workers, and has no limits of its own.
#[derive(Debug, Clone)]
pub(in super::super) struct BusyShare {
    /// `None`: the events without a share.
    pub(super) name: Option<String>,
    /// Its workers on average.
    pub(super) workers: f64,
    /// Those of all others.
    pub(super) others: f64,
}

impl RecentShares {
    /// Looks at the workers of each pool whose events have shares.
    pub(super) fn look(&self, at: Instant, control: &Control) {
        for pool in control.pools() {
            if let Some(shares) = pool.shares() {
                let mut pools = self.0.lock();
                pools.entry(pool.name().to_owned()).or_default().look(at, &shares.in_hand());
            }
        }
    }

    /// The busiest share of this pool, unless it was given limits.
    pub(super) fn busiest(&self, pool: &str, shares: &PoolSharesControl) -> Option<BusyShare> {
        let (share, busy) = self.0.lock().get(pool)?.busiest()?;
        (!shares.has_own_limits(&share)).then_some(busy)
    }
}

impl WorkersOfShares {
    fn look(&mut self, at: Instant, in_hand: &HashMap<Share, usize>) {
        let since = self.at.replace(at).map_or(OVER, |last| at.duration_since(last));
        let left = (-since.as_secs_f64() / OVER.as_secs_f64()).exp();
        self.workers.values_mut().for_each(|workers| *workers *= left);
        for (share, count) in in_hand {
            *self.workers.entry(share.clone()).or_default() += *count as f64 * (1.0 - left);
        }
        self.workers.retain(|_, workers| *workers >= NONE);
    }

    fn busiest(&self) -> Option<(Share, BusyShare)> {
        let (share, workers) = self.workers.iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let name = (*share != Share::COMMON).then(|| share.to_string());
        let others = self.workers.values().sum::<f64>() - workers;
        Some((share.clone(), BusyShare { name, workers: *workers, others }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q11_the_workers_of_a_share_are_averaged_over_about_ten_seconds() {
        let (mut seen, start) = (WorkersOfShares::default(), Instant::now());
        let hands = |acme: usize, bolt: usize| {
            HashMap::from([(Share::from("acme"), acme), (Share::from("bolt"), bolt)])
        };
        for second in 0..100 {
            let at = start + Duration::from_secs(second);
            // For a moment another one has all.
            seen.look(at, &if second % 10 == 9 { hands(0, 64) } else { hands(64, 0) });
        }
        let (_, busy) = seen.busiest().unwrap();
        assert_eq!(busy.name.as_deref(), Some("acme"));
        assert!((50.0..60.0).contains(&busy.workers) && (4.0..14.0).contains(&busy.others));
        for second in 100..220 {
            seen.look(start + Duration::from_secs(second), &HashMap::new());
        }
        assert!(seen.busiest().is_none());
    }
}
