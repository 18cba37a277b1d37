//! How much outputs have received, by output, including removed ones.

use std::collections::BTreeMap;

use super::{Families, Metric, Unit};
use crate::engine::Control;

const OF_OUTPUT: &[&str] = &["output"];

const EVENTS: Metric =
    Metric::counter("greenroom_output_events_total", OF_OUTPUT, "Events handed to the output.");
const REJECTED: Metric = Metric::counter(
    "greenroom_output_rejected_total",
    OF_OUTPUT,
    "Events that the output rejected for good.",
);
const TROUBLE: Metric = Metric::gauge(
    "greenroom_output_trouble_seconds",
    OF_OUTPUT,
    "How long the output has made no progress; 0 while it does.",
)
.of(Unit::Seconds);

pub(super) const METRICS: &[&Metric] = &[&EVENTS, &REJECTED, &TROUBLE];

/// Adds how much the outputs have received.
pub(super) fn add(families: &mut Families, control: &Control) {
    let mut sums = BTreeMap::<String, (u64, u64)>::new();
    // A replaced output appears twice.
    for output in control.outputs() {
        let sum = sums.entry(output.name).or_default();
        (sum.0, sum.1) = (sum.0 + output.events, sum.1 + output.rejected);
    }
    for (name, (events, rejected)) in &sums {
        families.add(&EVENTS, &[name], *events);
        families.add(&REJECTED, &[name], *rejected);
    }
    for output in control.output_views() {
        let lasted = output.trouble.map(|trouble| trouble.lasted).unwrap_or_default();
        families.add(&TROUBLE, &[&output.name], lasted);
    }
}
