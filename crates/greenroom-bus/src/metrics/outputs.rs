//! How much outputs have received, by output, including removed ones.

use std::collections::BTreeMap;

use super::{Families, Metric};
use crate::engine::Control;

const OF_OUTPUT: &[&str] = &["output"];

metrics! {
    EVENTS: counter("greenroom_output_events_total", OF_OUTPUT) = "Events handed to the output.";
    REJECTED: counter("greenroom_output_rejected_total", OF_OUTPUT) =
        "Events that the output rejected for good.";
    TROUBLE: gauge("greenroom_output_trouble_seconds", OF_OUTPUT, Seconds) =
        "How long the output has made no progress; 0 while it does.";
}

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
