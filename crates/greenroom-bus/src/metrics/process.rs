//! What the process takes of the machine.

use super::{Families, Metric, Unit};

const RESIDENT: Metric = Metric::gauge(
    "process_resident_memory_bytes",
    &[],
    "Memory that the process has resident. On Linux only.",
)
.of(Unit::Bytes);

pub(super) const METRICS: &[&Metric] = &[&RESIDENT];

/// Adds what the process takes, where the system tells.
pub(super) fn add(families: &mut Families) {
    if let Some(bytes) = resident_bytes() {
        families.add(&RESIDENT, &[], bytes);
    }
}

/// `VmRSS` of Linux.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}
