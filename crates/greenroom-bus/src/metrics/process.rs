//! The resources that the process uses.

use greenroom::event_pool::{Machine, MemoryReading};

use super::{Families, Metric};

metrics! {
    RESIDENT: gauge("process_resident_memory_bytes", &[], Bytes) =
        "Resident memory of the process. Only on Linux.";
}

/// Adds the resources of the process, on systems that show them.
pub(super) fn add(families: &mut Families) {
    if let Some(bytes) = Machine.process() {
        families.add(&RESIDENT, &[], bytes);
    }
}
