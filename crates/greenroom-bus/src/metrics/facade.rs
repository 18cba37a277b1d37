//! The `metrics` facade, for programs with another recorder than Prometheus, or none.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use greenroom::stats::LatencyHistogram;
use metrics::{Key, Label, Level, Metadata, Recorder, SharedString, with_recorder};
use tokio::time::{MissedTickBehavior, interval};

use super::{EVERY, Family, Kind, Metric, Observer, Series, Unit, Value};

/// The origin of metrics, for the facade.
const FROM: Metadata<'static> = Metadata::new("greenroom", Level::INFO, Some(module_path!()));

/// Feeds the figures of an [`Observer`] to the recorder of the `metrics` facade, once a second and
/// never for each message: a recorder of StatsD, Datadog or your own gets the same figures as
/// `/metrics`. Without an installed recorder, they are discarded.
///
/// Counters are set to their absolute value, gauges are set, and histograms get the new
/// observations of each bucket, at the bucket's upper bound. A counter of seconds is set to whole
/// seconds.
///
/// ```no_run
/// use greenroom_bus::{engine::Control, metrics::{Feed, Observer}};
///
/// async fn feed(control: Control) {
///     Feed::new(Observer::new(control)).keep_feeding().await;
/// }
/// ```
#[derive(Debug)]
pub struct Feed {
    observer: Arc<Observer>,
    /// The last fed counts of each histogram, by its name and labels.
    fed: HashMap<(&'static str, Vec<String>), LatencyHistogram>,
    /// The metrics have been described to the recorder.
    has_described: bool,
}

impl Feed {
    /// Feeds the figures of this observer.
    pub fn new(observer: impl Into<Arc<Observer>>) -> Self {
        Self { observer: observer.into(), fed: HashMap::new(), has_described: false }
    }

    /// Feeds the recorder once: the one of this thread, or that of the process.
    pub fn feed(&mut self) {
        let families = self.observer.families();
        with_recorder(|recorder| {
            if !std::mem::replace(&mut self.has_described, true) {
                super::all().for_each(|metric| describe(recorder, metric));
            }
            families.iter().for_each(|family| self.feed_family(recorder, family));
        });
    }

    /// Feeds it once a second, until it is dropped.
    ///
    /// # Cancel safety
    /// Made to be dropped.
    pub async fn keep_feeding(mut self) -> Infallible {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.feed();
        }
    }

    fn feed_family(&mut self, recorder: &dyn Recorder, family: &Family) {
        for series in &family.series {
            let key = key(family.metric, series);
            match (family.metric.kind, series.value) {
                (_, Value::Times(times)) => self.feed_times(recorder, &key, family, series, times),
                (Kind::Counter, Value::Whole(count)) => {
                    recorder.register_counter(&key, &FROM).absolute(count);
                }
                (Kind::Counter, Value::Number(number)) => {
                    recorder.register_counter(&key, &FROM).absolute(number as u64);
                }
                (_, value) => recorder.register_gauge(&key, &FROM).set(value.as_f64()),
            }
        }
    }

    fn feed_times(
        &mut self,
        recorder: &dyn Recorder,
        key: &Key,
        family: &Family,
        series: &Series,
        times: LatencyHistogram,
    ) {
        let place = (family.metric.name, series.labels.clone());
        let before = self.fed.insert(place, times).unwrap_or_default();
        let histogram = recorder.register_histogram(key, &FROM);
        for (time, count) in came_since(&before, &times) {
            histogram.record_many(time.as_secs_f64(), usize::try_from(count).unwrap_or(usize::MAX));
        }
    }
}

/// The new observations of each bucket; those beyond the last count at its end.
fn came_since(
    before: &LatencyHistogram,
    now: &LatencyHistogram,
) -> impl Iterator<Item = (Duration, u64)> {
    let beyond = |times: &LatencyHistogram| {
        times.count() - times.buckets().map(|(_, count)| count).sum::<u64>()
    };
    let longest = LatencyHistogram::BOUNDS[LatencyHistogram::BOUNDS.len() - 1];
    let rest = (longest, beyond(now).saturating_sub(beyond(before)));
    let buckets = now.buckets().zip(before.buckets());
    let buckets = buckets.map(|((time, now), (_, before))| (time, now.saturating_sub(before)));
    buckets.chain([rest]).filter(|(_, count)| *count > 0)
}

fn key(metric: &Metric, series: &Series) -> Key {
    let labels = metric.labels.iter().zip(&series.labels).filter(|(_, value)| !value.is_empty());
    let labels: Vec<_> = labels.map(|(name, value)| Label::new(*name, value.clone())).collect();
    Key::from_parts(metric.name, labels)
}

fn describe(recorder: &dyn Recorder, metric: &Metric) {
    let unit = metric.unit.map(|unit| match unit {
        Unit::Seconds => metrics::Unit::Seconds,
        Unit::Bytes => metrics::Unit::Bytes,
        Unit::Ratio => metrics::Unit::Count,
    });
    let (name, help) = (metric.name.into(), SharedString::const_str(metric.help));
    match metric.kind {
        Kind::Counter => recorder.describe_counter(name, unit, help),
        Kind::Gauge => recorder.describe_gauge(name, unit, help),
        Kind::Histogram => recorder.describe_histogram(name, unit, help),
    }
}

#[cfg(test)]
mod tests;
