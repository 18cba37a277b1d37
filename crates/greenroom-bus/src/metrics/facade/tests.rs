//! Against a recorder that keeps all in memory, and without one.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use metrics::{Counter, Gauge, Histogram, HistogramFn, KeyName, NoopRecorder, with_local_recorder};
use parking_lot::Mutex;

use super::*;
use crate::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Engine, HandlerConfig},
    handler::pass::PassFactory,
    source::generator::{GeneratorOptions, GeneratorSource},
};

/// Keeps what it is told, by name and labels.
#[derive(Default)]
struct InMemory {
    described: Mutex<BTreeMap<String, (&'static str, Option<metrics::Unit>)>>,
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    gauges: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    histograms: Mutex<BTreeMap<String, Arc<Recorded>>>,
    /// How often something was to be recorded.
    asked: AtomicU64,
}

/// Values and how often each was recorded.
#[derive(Default)]
struct Recorded(Mutex<Vec<(f64, usize)>>);

impl HistogramFn for Recorded {
    fn record(&self, value: f64) {
        self.record_many(value, 1);
    }

    fn record_many(&self, value: f64, count: usize) {
        self.0.lock().push((value, count));
    }
}

impl InMemory {
    fn describe(&self, key: &KeyName, kind: &'static str, unit: Option<metrics::Unit>) {
        let told = self.described.lock().insert(key.as_str().to_owned(), (kind, unit));
        assert!(told.is_none(), "{} is described twice", key.as_str());
    }

    fn counter(&self, of: &str) -> u64 {
        self.counters.lock()[of].load(Ordering::Relaxed)
    }

    fn gauge(&self, of: &str) -> f64 {
        f64::from_bits(self.gauges.lock()[of].load(Ordering::Relaxed))
    }

    fn recorded(&self, of: &str) -> usize {
        let histograms = self.histograms.lock();
        histograms[of].0.lock().iter().map(|(_, count)| count).sum()
    }
}

/// `name` or `name{label="value"}`.
fn written(key: &Key) -> String {
    let labels = key.labels().map(|label| format!("{}={:?}", label.key(), label.value()));
    let labels = labels.collect::<Vec<_>>().join(",");
    if labels.is_empty() { key.name().to_owned() } else { format!("{}{{{labels}}}", key.name()) }
}

fn at<T: Default>(all: &Mutex<BTreeMap<String, Arc<T>>>, key: &Key) -> Arc<T> {
    all.lock().entry(written(key)).or_default().clone()
}

impl Recorder for InMemory {
    fn describe_counter(&self, key: KeyName, unit: Option<metrics::Unit>, _: SharedString) {
        self.describe(&key, "counter", unit);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<metrics::Unit>, _: SharedString) {
        self.describe(&key, "gauge", unit);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<metrics::Unit>, _: SharedString) {
        self.describe(&key, "histogram", unit);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Counter::from_arc(at(&self.counters, key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(at(&self.gauges, key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(at(&self.histograms, key))
    }
}

/// What has handled so many events.
async fn observed(events: u64) -> Observer {
    let directory = tempfile::tempdir().unwrap();
    let letters = directory.path().join("letters");
    let options = GeneratorOptions { count: Some(events), ..GeneratorOptions::default() };
    let engine = Engine::builder()
        .input(Box::new(GeneratorSource::new(options).unwrap()))
        .handler("all", HandlerConfig::new(vec!["**".parse().unwrap()], Arc::new(PassFactory)))
        .dead_letters(Arc::new(FileDeadLetterStore::open(&letters).unwrap()))
        .build()
        .await
        .unwrap();
    let observer = Observer::new(engine.control());
    let report = engine.run().await;
    assert_eq!(report.handled, events);
    observer
}

#[tokio::test]
async fn o02_a_recorder_gets_what_the_observer_sees_and_each_time_once() {
    let recorder = InMemory::default();
    let mut feed = Feed::new(observed(600).await);
    for _ in 0..3 {
        with_local_recorder(&recorder, || feed.feed());
    }
    assert_eq!(recorder.counter("greenroom_events_taken_total"), 600);
    assert_eq!(recorder.counter("greenroom_events_settled_total{outcome=\"handled\"}"), 600);
    assert_eq!(recorder.gauge("actor_pool_inbox_size{pool=\"default\"}"), 1_000.0);
    assert_eq!(recorder.recorded("greenroom_event_residence_seconds"), 600);
    let processed = "actor_pool_messages_processed_total{pool=\"default\",success=\"true\"}";
    assert_eq!(recorder.counter(processed), 600, "an empty label is left out");
    let described = recorder.described.lock();
    assert_eq!(described.len(), crate::metrics::all().count());
    let residence = described["greenroom_event_residence_seconds"];
    assert_eq!(residence, ("histogram", Some(metrics::Unit::Seconds)));
}

#[tokio::test]
async fn o02_a_recorder_that_does_nothing_and_none_at_all_are_fed_as_well() {
    let mut feed = Feed::new(observed(3).await);
    with_local_recorder(&NoopRecorder, || feed.feed());
    feed.feed();
}

#[tokio::test(start_paused = true)]
async fn o02_it_feeds_once_a_second() {
    let recorder = InMemory::default();
    let feed = Feed::new(observed(3).await);
    let _installed = metrics::set_default_local_recorder(&recorder);
    let fed = tokio::time::timeout(Duration::from_millis(2_500), feed.keep_feeding());
    assert!(fed.await.is_err(), "it goes on");
    let counters = recorder.counters.lock().len() as u64;
    assert_eq!(recorder.asked.load(Ordering::Relaxed), 3 * counters, "at 0, 1 and 2 seconds");
}

#[test]
fn o02_what_is_longer_than_the_longest_bucket_is_fed_as_that() {
    let (before, mut now) = (LatencyHistogram::default(), LatencyHistogram::default());
    now.add(Duration::from_secs(3_600), 2);
    now.add(Duration::from_micros(3), 1);
    let came: Vec<_> = came_since(&before, &now).collect();
    assert_eq!(came, [(Duration::from_micros(10), 1), (Duration::from_secs(600), 2)]);
    assert_eq!(came_since(&now, &now).count(), 0);
}
