//! The shares of pools: the busiest of them, and all others together (Q11).

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use greenroom::shares::{Share, ShareState, ShareStatus};
use tokio::time::Instant;

use super::{Families, Metric};
use crate::engine::PoolControl;

/// So many shares of a pool have series of their own: enough to name those that matter, and few
/// beside the thousands that there may be.
pub const BUSIEST: usize = 20;

/// The label of the others.
const OTHER: &str = "other";

/// What a share had of the pool counts by half this much later.
const HALF: Duration = Duration::from_secs(60);

/// A share that has series gives them up only to one that is busier by this factor, so that series
/// of shares that are about level do not come and go.
const STAYS: f64 = 1.5;

/// Less than this is not remembered.
const LITTLE: f64 = 1e-3;

const BY_SHARE: &[&str] = &["pool", "share"];

metrics! {
    WAITING: gauge("actor_pool_share_waiting", BY_SHARE) =
        "Events that wait, of the 20 busiest shares and of all `other` ones.";
    IN_HAND: gauge("actor_pool_share_in_hand", BY_SHARE) = "Attempts in hand, by share.";
    TIME: counter("actor_pool_share_in_hand_seconds_total", BY_SHARE, Seconds) =
        "Workers' time in hand, by share. It is not measured while quick handlers leave nothing \
         waiting.";
    HELD: gauge("actor_pool_share_held", BY_SHARE) =
        "1 while a share is held or paused, otherwise 0; of `other`, how many are.";
}

/// One share at one moment.
#[derive(Debug, Clone, PartialEq)]
struct ShareFigures {
    share: Share,
    waiting: usize,
    in_hand: usize,
    time: Duration,
    is_held: bool,
}

/// The series of one share, or of the others.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct ShareSeries {
    waiting: usize,
    in_hand: usize,
    time: Duration,
    held: usize,
}

/// The shares of all pools at the last scrape.
#[derive(Debug, Default)]
pub(super) struct SharesSeen {
    pools: HashMap<String, PoolSharesSeen>,
}

/// The shares of a pool at the last scrape.
#[derive(Debug, Default)]
struct PoolSharesSeen {
    at: Option<Instant>,
    /// Time in hand of those that were listed.
    times: HashMap<Share, Duration>,
    /// How busy shares were of late.
    busy: HashMap<Share, f64>,
    /// Those that have series, with the time that these show.
    shown: HashMap<Share, Duration>,
    /// Time in hand of all.
    all: Duration,
    /// Time in hand of those that had no series.
    other: Duration,
}

/// Adds the figures of a pool's shares, if it has any.
pub(super) fn add(families: &mut Families, name: &str, pool: &PoolControl, seen: &mut SharesSeen) {
    let Some(shares) = pool.shares() else { return };
    let listed: Vec<_> = shares.list().into_iter().map(figures).collect();
    let seen = seen.pools.entry(name.to_owned()).or_default();
    for (label, series) in seen.look(listed, shares.time_in_hand(), Instant::now()) {
        families.add(&WAITING, &[name, &label], series.waiting);
        families.add(&IN_HAND, &[name, &label], series.in_hand);
        families.add(&TIME, &[name, &label], series.time);
        families.add(&HELD, &[name, &label], series.held);
    }
}

fn figures(status: ShareStatus) -> ShareFigures {
    let ShareStatus { share, waiting, in_hand, held, state, .. } = status;
    let is_held = matches!(state, ShareState::Held(_) | ShareState::Paused);
    ShareFigures { share, waiting, in_hand, time: held, is_held }
}

impl PoolSharesSeen {
    /// The series of the busiest, and last those of the others.
    fn look(
        &mut self,
        listed: Vec<ShareFigures>,
        all: Duration,
        now: Instant,
    ) -> Vec<(String, ShareSeries)> {
        let more = |share: &ShareFigures| {
            let before = self.times.get(&share.share).copied().unwrap_or_default();
            // A share that was forgotten meanwhile may have begun anew.
            share.time.checked_sub(before).unwrap_or(share.time)
        };
        let more: HashMap<Share, Duration> =
            listed.iter().map(|share| (share.share.clone(), more(share))).collect();
        self.note_busy(&listed, &more, now);
        let busiest = self.busiest(&listed);
        let (mut series, mut other) = (Vec::new(), ShareSeries::default());
        let (mut shown, mut shown_more) = (HashMap::new(), Duration::ZERO);
        for ShareFigures { share, waiting, in_hand, time, is_held } in &listed {
            if !busiest.contains(share) {
                other.waiting += waiting;
                other.in_hand += in_hand;
                other.held += usize::from(*is_held);
                continue;
            }
            let more = more.get(share).copied().unwrap_or_default();
            let time = self.shown.get(share).map_or(*time, |shown| *shown + more);
            shown_more += more;
            shown.insert(share.clone(), time);
            let held = usize::from(*is_held);
            let of = ShareSeries { waiting: *waiting, in_hand: *in_hand, time, held };
            series.push((share.to_string(), of));
        }
        self.other += all.saturating_sub(self.all).saturating_sub(shown_more);
        self.all = self.all.max(all);
        self.times = listed.into_iter().map(|share| (share.share, share.time)).collect();
        self.shown = shown;
        other.time = self.other;
        series.sort_by(|(one, _), (two, _)| one.cmp(two));
        series.push((OTHER.to_owned(), other));
        series
    }

    /// A share is as busy as its part of the time in hand, and of what waits.
    fn note_busy(
        &mut self,
        listed: &[ShareFigures],
        more: &HashMap<Share, Duration>,
        now: Instant,
    ) {
        let since = self.at.replace(now).map_or(HALF, |at| now.saturating_duration_since(at));
        let left = 0.5_f64.powf(since.as_secs_f64() / HALF.as_secs_f64());
        self.busy.retain(|_, busy| {
            *busy *= left;
            *busy >= LITTLE
        });
        let time = more.values().sum::<Duration>().as_secs_f64().max(f64::MIN_POSITIVE);
        let waiting = listed.iter().map(|share| share.waiting).sum::<usize>().max(1);
        for share in listed {
            let own = more.get(&share.share).copied().unwrap_or_default();
            let part = own.as_secs_f64() / time + share.waiting as f64 / waiting as f64;
            if part * (1.0 - left) >= LITTLE / BUSIEST as f64 {
                *self.busy.entry(share.share.clone()).or_default() += part * (1.0 - left);
            }
        }
    }

    fn busiest(&self, listed: &[ShareFigures]) -> HashSet<Share> {
        let busy = |share: &Share| {
            let stays = if self.shown.contains_key(share) { STAYS } else { 1.0 };
            self.busy.get(share).copied().unwrap_or(0.0) * stays
        };
        // One of that name is among the others.
        let named = listed.iter().filter(|share| share.share != Share::from(OTHER));
        let mut named: Vec<_> = named.map(|share| (busy(&share.share), &share.share)).collect();
        named.sort_by(|(one, a), (two, b)| two.total_cmp(one).then_with(|| a.cmp(b)));
        named.into_iter().take(BUSIEST).map(|(_, share)| share.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(share: &str, waiting: usize, time: u64) -> ShareFigures {
        let (time, in_hand) = (Duration::from_secs(time), 1);
        ShareFigures { share: share.into(), waiting, in_hand, time, is_held: waiting > 50 }
    }

    fn sum(series: &[(String, ShareSeries)], of: fn(&ShareSeries) -> usize) -> usize {
        series.iter().map(|(_, series)| of(series)).sum()
    }

    #[test]
    fn q11_twenty_shares_have_series_and_the_others_have_one_together() {
        let (mut seen, now) = (PoolSharesSeen::default(), Instant::now());
        let all: Vec<_> =
            (0..1_000).map(|n| figures(&format!("{n:03}"), n / 10, n as u64)).collect();
        let sum_of_times = (0..1_000).sum();
        let series = seen.look(all, Duration::from_secs(sum_of_times), now);
        let names: Vec<_> = series.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names.len(), names[0], names[19], names[20]), (21, "980", "999", "other"));
        assert_eq!(sum(&series, |of| of.waiting), (0..1_000).map(|n| n / 10).sum::<usize>());
        assert_eq!((sum(&series, |of| of.in_hand), sum(&series, |of| of.held)), (1_000, 490));
        let time: Duration = series.iter().map(|(_, of)| of.time).sum();
        assert_eq!(time, Duration::from_secs(sum_of_times));
    }

    #[test]
    fn q11_counters_of_shares_never_fall_and_a_flood_gets_series_soon() {
        let (mut seen, mut now) = (PoolSharesSeen::default(), Instant::now());
        let mut last: HashMap<String, Duration> = HashMap::new();
        let mut had = 0;
        for scrape in 0..20_u64 {
            now += Duration::from_secs(15);
            // All have 10 s more each time; a share that comes late has most from then on.
            let mut all: Vec<_> =
                (0..40).map(|n| figures(&format!("{n:02}"), 0, scrape * 10)).collect();
            had += 400;
            if scrape >= 15 {
                all.push(figures("flood", 9, (scrape - 14) * 600));
                had += 600;
            }
            let series = seen.look(all, Duration::from_secs(had), now);
            assert!(series.len() == 21 && series.last().is_some_and(|(name, _)| name == "other"));
            for (name, of) in &series {
                let before = last.insert(name.clone(), of.time).unwrap_or_default();
                assert!(of.time >= before, "{name}: {before:?}, {:?}", of.time);
            }
            assert_eq!(series.iter().any(|(name, _)| name == "flood"), scrape >= 15);
        }
        let stay: Vec<_> = last.keys().filter(|name| name.len() == 2).collect();
        assert_eq!(stay.len(), 20, "the same ones had series all the time: {stay:?}");
    }

    #[test]
    fn q11_a_share_that_is_named_other_is_one_of_them() {
        let mut seen = PoolSharesSeen::default();
        let all = vec![figures("other", 5, 5), figures("a", 1, 1)];
        let series = seen.look(all, Duration::from_secs(6), Instant::now());
        let waiting: Vec<_> = series.iter().map(|(name, of)| (name.as_str(), of.waiting)).collect();
        assert_eq!(waiting, [("a", 1), ("other", 5)]);
    }
}
