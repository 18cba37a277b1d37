//! The last hour (O15): one point per second for a few figures, and marks for starts, ends and
//! actions. It is bounded, kept only in memory, and survives a reload.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use greenroom::stats::LatencySnapshot;
use greenroom_bus::engine::{Control, PoolView, Progress};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::advice::{self, Seen, Severity};

/// An hour.
const POINTS: usize = 3_600;

/// Pools with figures of their own: the first ones. The sums include all of them.
const POOLS: usize = 12;

/// The number of marks to keep, the latest ones.
const MARKS: usize = 500;

/// Figures of all pools: events per second, and current events.
const ALL: [&str; 5] = ["settled_per_s", "taken_per_s", "waiting", "in_hand", "dead_letters_per_s"];

/// Figures of one pool: events per second, times in milliseconds, current events.
const OF_POOL: [&str; 5] = ["handled_per_s", "p50_ms", "p99_ms", "wait_p99_ms", "queued"];

/// The last hour.
#[derive(Default)]
pub(crate) struct History(Mutex<Hour>);

#[derive(Default)]
struct Hour {
    /// The time of each point, in milliseconds since 1970.
    times: VecDeque<u64>,
    all: Columns<{ ALL.len() }>,
    pools: BTreeMap<String, PoolPast>,
    before: Option<(Instant, Progress)>,
    marks: VecDeque<Mark>,
    /// The findings of the last observation.
    found: BTreeSet<String>,
}

/// Figures over time; empty points had nothing to measure.
struct Columns<const N: usize>([VecDeque<f32>; N]);

impl<const N: usize> Default for Columns<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| VecDeque::new()))
    }
}

impl<const N: usize> Columns<N> {
    /// Preceded by this many empty points.
    fn after(points: usize) -> Self {
        Self(std::array::from_fn(|_| std::iter::repeat_n(f32::NAN, points).collect()))
    }

    fn push(&mut self, figures: [f32; N]) {
        for (column, figure) in self.0.iter_mut().zip(figures) {
            if column.len() == POINTS {
                column.pop_front();
            }
            column.push_back(figure);
        }
    }
}

struct PoolPast {
    columns: Columns<{ OF_POOL.len() }>,
    handled: u64,
    restarts: u64,
    latencies: LatencySnapshot,
}

/// An event to mark on a chart.
#[derive(Clone)]
struct Mark {
    at: u64,
    kind: &'static str,
    text: String,
}

impl History {
    /// Adds a point at `at`, in milliseconds since 1970.
    pub(super) fn look(&self, control: &Control, seen: &Seen, at: u64) {
        let mut kept = self.0.lock();
        let now = Instant::now();
        let progress = control.progress();
        let seconds = kept.before.as_ref().map(|(before, _)| now.duration_since(*before));
        let seconds = seconds.map_or(f64::NAN, |passed| passed.as_secs_f64().max(1e-3));
        let pools = control.pool_views();
        kept.look_at_pools(control, &pools, seconds, at);
        kept.look_at_all(control, &pools, &progress, seconds);
        kept.look_at_findings(seen, at);
        if kept.times.len() == POINTS {
            kept.times.pop_front();
        }
        kept.times.push_back(at);
        kept.before = Some((now, progress));
    }

    /// An operator has taken an action.
    pub(super) fn mark_action(&self, what: String, at: u64) {
        self.0.lock().mark(at, "action", what);
    }

    /// The last seconds, by default all that are kept, in at most this many points.
    pub(super) fn view(&self, seconds: Option<u64>, points: Option<usize>) -> Value {
        let seconds = seconds.unwrap_or(POINTS as u64).min(POINTS as u64);
        self.0.lock().view(seconds, points.unwrap_or(POINTS))
    }
}

impl Hour {
    fn mark(&mut self, at: u64, kind: &'static str, text: String) {
        if self.marks.len() == MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back(Mark { at, kind, text });
    }

    fn look_at_all(&mut self, control: &Control, pools: &[PoolView], now: &Progress, seconds: f64) {
        let rate = |of: fn(&Progress) -> u64| {
            let before = self.before.as_ref().map_or(0, |(_, before)| of(before));
            of(now).saturating_sub(before) as f64 / seconds
        };
        let held_back: u64 = control.input_views().iter().map(|input| input.held_back).sum();
        let waiting: u64 = pools.iter().map(|pool| pool.stats.queued + pool.stats.waiting).sum();
        let in_hand: u64 = pools.iter().map(|pool| pool.stats.in_hand).sum();
        let figures = [
            rate(|of| of.settled),
            rate(|of| of.taken),
            (waiting + held_back) as f64,
            in_hand as f64,
            rate(|of| of.dead_lettered),
        ];
        self.all.push(figures.map(|figure| figure as f32));
    }

    fn look_at_pools(&mut self, control: &Control, pools: &[PoolView], seconds: f64, at: u64) {
        let is_there = |name: &String| pools.iter().any(|pool| pool.name == *name);
        self.pools.retain(|name, _| is_there(name));
        let points = self.times.len();
        for pool in pools {
            if self.pools.len() >= POOLS && !self.pools.contains_key(&pool.name) {
                continue;
            }
            let Ok(latencies) = control.pool(&pool.name).map(|pool| pool.latency_snapshot()) else {
                continue;
            };
            let stats = &pool.stats;
            let (handled, restarts) = (stats.handled, stats.restarts);
            let Some(past) = self.pools.get_mut(&pool.name) else {
                let mut columns = Columns::after(points);
                columns.push([f32::NAN; OF_POOL.len()]);
                let past = PoolPast { columns, handled, restarts, latencies };
                self.pools.insert(pool.name.clone(), past);
                continue;
            };
            let (waited, took) = latencies.since(&past.latencies);
            let ms = |time: Duration| match took.count {
                0 => f64::NAN,
                _ if pool.in_outage => f64::NAN,
                _ => time.as_secs_f64() * 1e3,
            };
            let rate = handled.saturating_sub(past.handled) as f64 / seconds;
            let figures = [rate, ms(took.p50), ms(took.p99), ms(waited.p99), stats.queued as f64];
            past.columns.push(figures.map(|figure| figure as f32));
            let restarted = restarts.saturating_sub(past.restarts);
            (past.handled, past.restarts, past.latencies) = (handled, restarts, latencies);
            if restarted > 0 {
                let text = format!("restarts in the pool `{}`: {restarted}", pool.name);
                self.mark(at, "restart", text);
            }
        }
    }

    /// A new finding has begun; a missing one has ended.
    fn look_at_findings(&mut self, seen: &Seen, at: u64) {
        let causes = advice::findings(seen).into_iter();
        let causes = causes.filter(|of| of.follows.is_none() && of.severity < Severity::Hint);
        let found: BTreeSet<String> = causes.map(|finding| finding.what).collect();
        let before = std::mem::take(&mut self.found);
        for what in found.difference(&before) {
            self.mark(at, "trouble", what.clone());
        }
        for what in before.difference(&found) {
            self.mark(at, "over", format!("over: {what}"));
        }
        self.found = found;
    }

    /// The last seconds, in at most this many points.
    fn view(&self, seconds: u64, points: usize) -> Value {
        let last = self.times.back().copied().unwrap_or_default();
        let from = last.saturating_sub(seconds * 1_000);
        let first = self.times.partition_point(|at| *at <= from);
        let step = (self.times.len() - first).div_ceil(points.max(1)).max(1);
        let times: Vec<_> = self.times.range(first..).copied().collect();
        let times: Vec<_> = times.chunks(step).filter_map(|chunk| chunk.last().copied()).collect();
        let pools = self.pools.iter().map(|(name, past)| {
            (name.clone(), Value::from(past.columns.view(&OF_POOL, first, step)))
        });
        let marks = self.marks.iter().filter(|mark| mark.at > from);
        json!({
            "times_ms": times,
            "all": self.all.view(&ALL, first, step),
            "pools": pools.collect::<Map<_, _>>(),
            "marks": marks.map(|mark| {
                json!({ "at_ms": mark.at, "kind": mark.kind, "text": mark.text })
            }).collect::<Vec<_>>(),
        })
    }
}

impl<const N: usize> Columns<N> {
    /// Combines several points into one: the maximum of times, the mean of all others.
    fn view(&self, names: &[&str; N], first: usize, step: usize) -> Map<String, Value> {
        let columns = self.0.iter().zip(names).map(|(column, name)| {
            let figures: Vec<_> = column.range(first..).copied().collect();
            let figures = figures.chunks(step).map(|chunk| {
                let measured = chunk.iter().copied().filter(|figure| !figure.is_nan());
                let figure = match name.ends_with("_ms") {
                    true => measured.reduce(f32::max),
                    false => {
                        let (sum, count) =
                            measured.fold((0.0, 0_u16), |(sum, count), of| (sum + of, count + 1));
                        (count > 0).then(|| sum / f32::from(count))
                    }
                };
                // A chart shows no more than tenths.
                figure.map(|figure| (f64::from(figure) * 10.0).round() / 10.0)
            });
            ((*name).to_owned(), figures.collect())
        });
        columns.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hour(points: usize) -> Hour {
        let mut kept = Hour::default();
        let mut pool = PoolPast {
            columns: Columns::default(),
            handled: 0,
            restarts: 0,
            latencies: LatencySnapshot::default(),
        };
        for second in 0..points {
            if kept.times.len() == POINTS {
                kept.times.pop_front();
            }
            kept.times.push_back(second as u64 * 1_000);
            kept.all.push([second as f32, 0.0, 0.0, 0.0, 0.0]);
            pool.columns.push([0.0, f32::NAN, second as f32, f32::NAN, 1.0]);
        }
        kept.pools.insert("p".to_owned(), pool);
        kept
    }

    #[test]
    fn o15_an_hour_is_kept_and_no_more() {
        let kept = hour(5_000);
        let view = kept.view(3_600, 3_600);
        let settled = view["all"]["settled_per_s"].as_array().unwrap();
        assert_eq!((settled.len(), &settled[0]), (3_600, &json!(1_400.0)));
        assert_eq!(view["times_ms"][3_599], 4_999_000);
        let mut kept = kept;
        (0..700).for_each(|n| kept.mark(4_999_000, "action", n.to_string()));
        let marks = kept.view(60, 60)["marks"].as_array().unwrap().clone();
        assert_eq!((marks.len(), &marks[0]["text"]), (MARKS, &json!("200")));
    }

    #[test]
    fn o15_fewer_points_are_means_and_of_times_the_longest() {
        let view = hour(100).view(60, 6);
        assert_eq!(view["times_ms"].as_array().unwrap().len(), 6);
        assert_eq!(view["all"]["settled_per_s"][0], 44.5);
        let pool = &view["pools"]["p"];
        assert_eq!((&pool["p99_ms"][0], &pool["p50_ms"][0]), (&json!(49.0), &Value::Null));
        assert_eq!(hour(0).view(60, 6)["times_ms"], json!([]));
    }
}
