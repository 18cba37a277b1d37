//! The figures of `/metrics` in OTLP form: the same names, units and values.

use greenroom::stats::LatencyHistogram;
use greenroom_bus::metrics::{self, Families, Family, Kind, Series, Unit, Value};
use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::KeyValue,
    metrics::v1::{
        AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
        ResourceMetrics, ScopeMetrics, Sum, metric::Data, number_data_point::Value as Number,
    },
    resource::v1::Resource,
};

use super::values::{scope, text};

/// The start of counting and the time of reading, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) began: u64,
    pub(super) now: u64,
}

/// A request with these figures, and their number.
pub(super) fn request(
    resource: Resource,
    families: &Families,
    times: Times,
) -> (ExportMetricsServiceRequest, u64) {
    let points = families.iter().map(|family| family.series.len() as u64).sum();
    let metrics = families.iter().map(|family| metric(family, times)).collect();
    let scope_metrics = vec![ScopeMetrics { scope: scope(), metrics, ..ScopeMetrics::default() }];
    let of =
        ResourceMetrics { resource: Some(resource), scope_metrics, ..ResourceMetrics::default() };
    (ExportMetricsServiceRequest { resource_metrics: vec![of] }, points)
}

fn metric(family: &Family, times: Times) -> Metric {
    let of = family.metric;
    let cumulative = AggregationTemporality::Cumulative.into();
    let numbers = || family.series.iter().map(|series| number(of, series, times)).collect();
    let data = match of.kind {
        Kind::Counter => Data::Sum(Sum {
            data_points: numbers(),
            aggregation_temporality: cumulative,
            is_monotonic: true,
        }),
        Kind::Gauge => Data::Gauge(Gauge { data_points: numbers() }),
        Kind::Histogram => Data::Histogram(Histogram {
            data_points: family.series.iter().filter_map(|one| histogram(of, one, times)).collect(),
            aggregation_temporality: cumulative,
        }),
    };
    Metric {
        name: of.name.to_owned(),
        description: of.help.to_owned(),
        unit: unit(of.unit).to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

/// Its name in UCUM.
fn unit(unit: Option<Unit>) -> &'static str {
    match unit {
        Some(Unit::Seconds) => "s",
        Some(Unit::Bytes) => "By",
        Some(Unit::Ratio) => "1",
        None => "",
    }
}

fn number(of: &metrics::Metric, series: &Series, times: Times) -> NumberDataPoint {
    let value = match series.value {
        Value::Whole(number) => Number::AsInt(i64::try_from(number).unwrap_or(i64::MAX)),
        value => Number::AsDouble(value.as_f64()),
    };
    NumberDataPoint {
        attributes: labels(of, series),
        start_time_unix_nano: began(of.kind, times),
        time_unix_nano: times.now,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

fn histogram(of: &metrics::Metric, series: &Series, times: Times) -> Option<HistogramDataPoint> {
    let Value::Times(found) = series.value else { return None };
    let found: LatencyHistogram = found;
    let (bounds, mut counts): (Vec<_>, Vec<_>) =
        found.buckets().map(|(upto, count)| (upto.as_secs_f64(), count)).unzip();
    counts.push(found.count() - counts.iter().sum::<u64>());
    Some(HistogramDataPoint {
        attributes: labels(of, series),
        start_time_unix_nano: began(of.kind, times),
        time_unix_nano: times.now,
        count: found.count(),
        sum: Some(found.sum().as_secs_f64()),
        bucket_counts: counts,
        explicit_bounds: bounds,
        ..HistogramDataPoint::default()
    })
}

/// A gauge has no start.
fn began(kind: Kind, times: Times) -> u64 {
    if kind == Kind::Gauge { 0 } else { times.began }
}

/// The labels of a series, without empty ones.
fn labels(of: &metrics::Metric, series: &Series) -> Vec<KeyValue> {
    let labels = of.labels.iter().zip(&series.labels).filter(|(_, value)| !value.is_empty());
    labels.map(|(name, value)| text(name, value)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SENT: metrics::Metric =
        metrics::Metric::counter("a_sent_total", &["pool", "actor_id"], "What was sent.");
    const BYTES: metrics::Metric =
        metrics::Metric::gauge("a_memory_bytes", &[], "What is taken.").with_unit(Unit::Bytes);
    const TOOK: metrics::Metric =
        metrics::Metric::histogram("a_time_seconds", &[], "How long it took.");

    #[test]
    fn o06_figures_have_the_names_values_and_labels_of_the_metrics_page() {
        let mut families = Families::default();
        families.add(&SENT, &["erp", ""], 7_u64);
        families.add(&SENT, &["erp", "erp-1"], u64::MAX);
        families.add(&BYTES, &[], 1_024_u64);
        let mut times = LatencyHistogram::default();
        times.add(Duration::from_millis(5), 2);
        times.add(Duration::from_secs(3_600), 1);
        families.add(&TOOK, &[], times);
        let at = Times { began: 1, now: 2 };
        let (request, points) = request(Resource::default(), &families, at);
        assert_eq!(points, 4);
        let [sent, bytes, took] = &request.resource_metrics[0].scope_metrics[0].metrics[..] else {
            panic!("{request:?}")
        };
        assert_eq!((&*sent.name, &*bytes.unit, &*took.unit), ("a_sent_total", "By", "s"));
        let Some(Data::Sum(sum)) = &sent.data else { panic!("{sent:?}") };
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
        let point = &sum.data_points[0];
        assert_eq!(point.attributes, [text("pool", "erp")], "an empty label is left out");
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (1, 2));
        assert_eq!(point.value, Some(Number::AsInt(7)));
        assert_eq!(sum.data_points[1].value, Some(Number::AsInt(i64::MAX)));
        let Some(Data::Gauge(gauge)) = &bytes.data else { panic!("{bytes:?}") };
        assert_eq!(gauge.data_points[0].start_time_unix_nano, 0);
        let Some(Data::Histogram(histogram)) = &took.data else { panic!("{took:?}") };
        let point = &histogram.data_points[0];
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        assert_eq!((point.count, point.bucket_counts.iter().sum::<u64>()), (3, 3));
        assert_eq!((point.bucket_counts.last(), point.sum), (Some(&1), Some(3_600.01)));
        let five = point.explicit_bounds.iter().position(|bound| *bound == 0.005).unwrap();
        assert_eq!(point.bucket_counts[five], 2);
    }
}
