//! Families as text, written by prometheus-client.

use std::fmt;

use greenroom::stats::LatencyHistogram;
use greenroom_bus::metrics::{Families, Family, Kind, Metric, Series, Unit, Value};
use prometheus_client::{
    collector::Collector,
    encoding::{
        DescriptorEncoder, EncodeLabel, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet,
        prometheus_text, text,
    },
    metrics::MetricType,
    registry::{self, Registry},
};

use super::accept::MetricsFormat;

/// The families in this format.
pub(super) fn text(families: Families, format: MetricsFormat) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scraped(families)));
    let mut out = String::new();
    let written = match format {
        MetricsFormat::Prometheus => prometheus_text::encode(&mut out, &registry),
        MetricsFormat::OpenMetrics => text::encode(&mut out, &registry),
    };
    // A `String` accepts everything that is written to it.
    debug_assert!(written.is_ok());
    out
}

/// The families of one scrape.
#[derive(Debug)]
struct Scraped(Families);

impl Collector for Scraped {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|family| encode(family, &mut encoder))
    }
}

fn encode(family: &Family, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let metric = family.metric;
    let unit = metric.unit.map(|unit| match unit {
        Unit::Seconds => registry::Unit::Seconds,
        Unit::Bytes => registry::Unit::Bytes,
        Unit::Ratio => registry::Unit::Other("ratio".to_owned()),
    });
    let kind = match metric.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
    };
    let mut family_encoder =
        encoder.encode_descriptor(metric.stem(), metric.help, unit.as_ref(), kind)?;
    family.series.iter().try_for_each(|series| {
        let labels = Labels(metric, series);
        value(metric.kind, series.value, family_encoder.encode_family(&labels)?)
    })
}

fn value(kind: Kind, value: Value, mut encoder: MetricEncoder<'_>) -> fmt::Result {
    match (kind, value) {
        (_, Value::Times(times)) => histogram(&times, encoder),
        (Kind::Counter, Value::Whole(count)) => {
            encoder.encode_counter::<NoLabelSet, _, u64>(&count, None)
        }
        (Kind::Counter, Value::Number(number)) => {
            encoder.encode_counter::<NoLabelSet, _, u64>(&number, None)
        }
        (_, Value::Whole(number)) => {
            encoder.encode_gauge(&i64::try_from(number).unwrap_or(i64::MAX))
        }
        (_, value) => encoder.encode_gauge(&value.as_f64()),
    }
}

fn histogram(times: &LatencyHistogram, mut encoder: MetricEncoder<'_>) -> fmt::Result {
    let mut buckets: Vec<_> =
        times.buckets().map(|(upto, count)| (upto.as_secs_f64(), count)).collect();
    let below: u64 = buckets.iter().map(|(_, count)| count).sum();
    buckets.push((f64::INFINITY, times.count() - below));
    let sum = times.sum().as_secs_f64();
    encoder.encode_histogram::<NoLabelSet>(sum, times.count(), &buckets, None)
}

/// The labels of a series, without empty ones.
struct Labels<'a>(&'a Metric, &'a Series);

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let labels = self.0.labels.iter().zip(&self.1.labels);
        let mut labels = labels.filter(|(_, value)| !value.is_empty());
        labels.try_for_each(|(name, value)| (*name, value.as_str()).encode(encoder.encode_label()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SENT: Metric = Metric::counter("a_sent_total", &["pool", "actor_id"], "What was sent.");
    const BYTES: Metric =
        Metric::gauge("a_memory_bytes", &[], "What is taken.").with_unit(Unit::Bytes);
    const SHARE: Metric = Metric::gauge("a_ratio", &[], "A share.").with_unit(Unit::Ratio);
    const AVOIDED: Metric =
        Metric::counter("a_wait_seconds_total", &[], "A wait.").with_unit(Unit::Seconds);
    const TOOK: Metric = Metric::histogram("a_time_seconds", &[], "How long it took.");

    fn families() -> Families {
        let mut families = Families::default();
        families.add(&SENT, &["a\"b\\c\nd", ""], 7_u64);
        families.add(&SENT, &["e", "e-1"], u64::MAX);
        families.add(&BYTES, &[], 1_024_u64);
        families.add(&SHARE, &[], 0.25);
        families.add(&AVOIDED, &[], Duration::from_millis(1_500));
        let mut times = LatencyHistogram::default();
        times.add(Duration::from_millis(5), 2);
        times.add(Duration::from_secs(3_600), 1);
        families.add(&TOOK, &[], times);
        families
    }

    #[test]
    fn o02_open_metrics_names_counters_without_total_and_says_units_and_its_end() {
        let text = text(families(), MetricsFormat::OpenMetrics);
        for line in [
            "# HELP a_sent What was sent.",
            "# TYPE a_sent counter",
            "a_sent_total{pool=\"a\\\"b\\\\c\\nd\"} 7",
            "a_sent_total{pool=\"e\",actor_id=\"e-1\"} 18446744073709551615",
            "# UNIT a_memory_bytes bytes",
            "# UNIT a_ratio ratio",
            "# TYPE a_wait_seconds counter",
            "# UNIT a_wait_seconds seconds",
            "a_wait_seconds_total 1.5",
            "a_time_seconds_bucket{le=\"0.005\"} 2",
            "a_time_seconds_bucket{le=\"600.0\"} 2",
            "a_time_seconds_bucket{le=\"+Inf\"} 3",
            "a_time_seconds_sum 3600.01",
            "a_time_seconds_count 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn o02_the_classic_format_names_counters_in_full_and_knows_neither_units_nor_an_end() {
        let text = text(families(), MetricsFormat::Prometheus);
        for line in [
            "# HELP a_sent_total What was sent.",
            "# TYPE a_sent_total counter",
            "a_sent_total{pool=\"a\\\"b\\\\c\\nd\"} 7",
            "# TYPE a_memory_bytes gauge",
            "a_memory_bytes 1024",
            "a_ratio 0.25",
            "# TYPE a_wait_seconds_total counter",
            "# TYPE a_time_seconds histogram",
            "a_time_seconds_bucket{le=\"0.005\"} 2",
            "a_time_seconds_bucket{le=\"+Inf\"} 3",
            "a_time_seconds_count 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
    }

    #[test]
    fn o02_a_metric_without_a_value_is_not_shown() {
        assert_eq!(text(Families::default(), MetricsFormat::OpenMetrics), "# EOF\n");
        assert_eq!(text(Families::default(), MetricsFormat::Prometheus), "");
    }
}
