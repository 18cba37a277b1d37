//! The report as one JSON object: names include their units, and derived figures are added.

use std::time::Duration;

use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::{PositionsReport, RunReport};
use crate::source::PartitionStanding;

/// Percentiles of the time from taken to settled, in microseconds.
#[derive(Serialize)]
struct Latency {
    p50: u64,
    p99: u64,
    p999: u64,
}

/// Writes fields of a struct under their own names.
macro_rules! fields {
    ($out:ident, $of:ident: $($name:ident)+) => {
        $($out.serialize_field(stringify!($name), &$of.$name)?;)+
    };
}

impl Serialize for RunReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (of, [p50, p99, p999]) = (self, self.latency.map(|time| time.as_micros() as u64));
        let mut out = serializer.serialize_struct("RunReport", 28)?;
        fields!(out, of: taken handled ignored dead_lettered refused revoked given_back parked);
        fields!(out, of: retried repeated_at_most restarts out_of_order);
        out.serialize_field("elapsed_s", &self.elapsed.as_secs_f64())?;
        out.serialize_field("events_per_s", &self.events_per_second())?;
        out.serialize_field("latency_us", &Latency { p50, p99, p999 })?;
        out.serialize_field("latency_p99_ms", &(p99 as f64 / 1e3))?;
        fields!(out, of: peak_queued peak_in_flight_bytes peak_rss_bytes slowest_keys);
        fields!(out, of: dead_letters_by_reason pools inputs outputs positions dead_letters);
        fields!(out, of: warnings errors);
        out.end()
    }
}

impl Serialize for PositionsReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("PositionsReport", 4)?;
        out.serialize_field("input", &self.input)?;
        out.serialize_field("skipped", &self.standing.skipped)?;
        out.serialize_field("delivered_again_at_most", &self.standing.repeated_at_most)?;
        let partitions: Vec<_> = self.partitions.iter().map(PartitionRow::new).collect();
        out.serialize_field("partitions", &partitions)?;
        out.end()
    }
}

/// How far a partition has come.
#[derive(Serialize)]
struct PartitionRow {
    partition: u32,
    next: u64,
    oldest_open: u64,
    lag: Option<u64>,
}

impl PartitionRow {
    fn new(standing: &PartitionStanding) -> Self {
        let PartitionStanding { partition, next, oldest_open, lag, .. } = *standing;
        Self { partition: partition.0, next, oldest_open, lag }
    }
}

/// In milliseconds, to the microsecond.
pub(crate) fn millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_micros() as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        engine::{InputReport, PoolReport, SlowKey},
        source::{Partition, PartitionStanding, Standing},
        watermark::{DoneAhead, Epoch},
    };

    #[test]
    fn o11_the_report_as_json_says_its_units() {
        let report = RunReport {
            taken: 4,
            handled: 4,
            elapsed: Duration::from_millis(500),
            latency: [50, 12_500, 99_000].map(Duration::from_micros),
            slowest_keys: vec![SlowKey {
                key: "a".to_owned(),
                handler: "push".to_owned(),
                longest: Duration::from_micros(12_345),
            }],
            pools: vec![PoolReport { dead_lettered: 3, ..PoolReport::default() }],
            inputs: vec![InputReport { error: Some("gone".to_owned()), ..InputReport::default() }],
            positions: vec![PositionsReport {
                input: "orders".to_owned(),
                standing: Standing { resumed: None, skipped: 7, repeated_at_most: 2 },
                partitions: vec![PartitionStanding {
                    partition: Partition(3),
                    epoch: Epoch::default(),
                    next: 12,
                    oldest_open: 9,
                    lag: None,
                    ahead: DoneAhead::default(),
                }],
            }],
            ..RunReport::default()
        };
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["elapsed_s"], &json["events_per_s"]), (&0.5.into(), &8.0.into()));
        assert_eq!(json["latency_us"]["p99"], 12_500);
        assert_eq!(json["latency_p99_ms"], 12.5);
        assert_eq!(json["slowest_keys"][0]["ms"], 12.345);
        assert_eq!(json["pools"][0]["dead_letters"], 3);
        assert!(json["inputs"][0].get("error").is_none(), "it is among the errors of the run");
        assert_eq!(json["positions"][0]["skipped"], 7);
        assert_eq!(json["positions"][0]["delivered_again_at_most"], 2);
        let partition = &json["positions"][0]["partitions"][0];
        let shown = ["partition", "next", "oldest_open"].map(|name| partition[name].as_u64());
        assert_eq!(shown, [3, 12, 9].map(Some));
        assert!(partition["lag"].is_null(), "nobody knows it");
        assert_eq!(json["peak_rss_bytes"], serde_json::Value::Null);
    }
}
