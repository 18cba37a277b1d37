//! The resources that the process uses.

use greenroom::event_pool::{Machine, MemoryReading};

use super::{Families, Metric, Unit};

const RESIDENT: Metric = Metric::gauge(
    "process_resident_memory_bytes",
    &[],
    "Resident memory of the process. Only on Linux.",
)
.of(Unit::Bytes);

pub(super) const METRICS: &[&Metric] = &[&RESIDENT];

/// Adds the resources of the process, on systems that show them.
pub(super) fn add(families: &mut Families) {
    if let Some(bytes) = Machine.process() {
        families.add(&RESIDENT, &[], bytes);
    }
}
