//! The machine that is measured, as far as the system reveals it.

use std::{fs, thread};

use greenroom::event_pool::{Machine, MemoryReading};

/// Cores that this process may use.
pub(super) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The processor's name.
pub(super) fn processor() -> Option<String> {
    field("/proc/cpuinfo", "model name")
}

/// Bytes of this process in memory.
pub(super) fn resident() -> Option<u64> {
    Machine.process()
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
