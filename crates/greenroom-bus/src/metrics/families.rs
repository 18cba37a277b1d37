//! Metrics with their values, all of one moment.

use std::{collections::HashMap, time::Duration};

use greenroom::stats::LatencyHistogram;

use super::{Kind, Metric};

/// Metrics with their values, all of one moment. A metric without values is not included.
#[derive(Debug, Clone, Default)]
pub struct Families {
    all: Vec<Family>,
    /// Its index, by name.
    places: HashMap<&'static str, usize>,
}

/// A metric with its values.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Family {
    /// Which.
    pub metric: &'static Metric,
    /// One for each combination of labels that there is.
    pub series: Vec<Series>,
}

/// One value of a metric.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Series {
    /// The values of the metric's labels, in their order. If one is empty, the label is to be left
    /// out.
    pub labels: Vec<String>,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A whole number.
    Whole(u64),
    /// Any number.
    Number(f64),
    /// Of a histogram.
    Times(LatencyHistogram),
}

impl Value {
    /// As a number; of a histogram, how many it counts.
    pub fn as_f64(&self) -> f64 {
        match self {
            Self::Whole(number) => *number as f64,
            Self::Number(number) => *number,
            Self::Times(times) => times.count() as f64,
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Whole(number as u64)
    }
}

impl From<bool> for Value {
    fn from(is_so: bool) -> Self {
        Self::Whole(is_so.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<Duration> for Value {
    /// In seconds.
    fn from(time: Duration) -> Self {
        Self::Number(time.as_secs_f64())
    }
}

impl From<LatencyHistogram> for Value {
    fn from(times: LatencyHistogram) -> Self {
        Self::Times(times)
    }
}

impl Families {
    /// Adds a value of a metric, for these values of its labels.
    ///
    /// # Panics
    /// With debug assertions, where the number of labels is another, or the value is of another
    /// kind.
    pub fn add(&mut self, metric: &'static Metric, labels: &[&str], value: impl Into<Value>) {
        let value = value.into();
        debug_assert_eq!(labels.len(), metric.labels.len(), "{}", metric.name);
        let is_histogram = matches!(value, Value::Times(_));
        debug_assert_eq!(is_histogram, metric.kind == Kind::Histogram, "{}", metric.name);
        let place = *self.places.entry(metric.name).or_insert_with(|| {
            self.all.push(Family { metric, series: Vec::new() });
            self.all.len() - 1
        });
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        self.all[place].series.push(Series { labels, value });
    }

    /// Those that have values.
    pub fn iter(&self) -> impl Iterator<Item = &Family> {
        self.all.iter()
    }

    /// The metric of this name, if it has values.
    pub fn get(&self, name: &str) -> Option<&Family> {
        self.places.get(name).map(|place| &self.all[*place])
    }
}

impl Family {
    /// The value for these values of the labels.
    pub fn value(&self, labels: &[&str]) -> Option<Value> {
        let found = self.series.iter().find(|series| series.labels == labels);
        found.map(|series| series.value)
    }
}
