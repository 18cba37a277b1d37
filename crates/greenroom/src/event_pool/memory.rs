//! The memory of a pool: the most it may take when it is full, and the memory that it takes now.

use std::fs;

use crate::pool_events::Holding;

/// A warning is due if a pool may take more than one part in this many of the machine's memory.
const SHARE: u64 = 4;

/// A source of figures about memory: [`Machine`] by default.
pub trait MemoryReading: Send + Sync + 'static {
    /// Bytes that this process holds in memory, if known.
    fn process(&self) -> Option<u64>;

    /// Bytes of memory of the machine, if known.
    fn machine(&self) -> Option<u64>;
}

/// The figures from Linux, or from the control group that limits the process if there is one.
/// Elsewhere nothing is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Machine;

impl MemoryReading for Machine {
    fn process(&self) -> Option<u64> {
        kilobytes(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
    }

    fn machine(&self) -> Option<u64> {
        let machine = kilobytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
        let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
        let group = group.and_then(|bytes| bytes.trim().parse().ok());
        Some(group.map_or(machine, |group| machine.min(group)))
    }
}

/// The number on the line with this name (proc(5)).
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The memory of a pool. Sizes are in bytes and cover only messages: memory of a handler is not
/// included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolMemory {
    /// The size of a message: measured, if the pool can measure
    /// ([`message_size`](super::EventPoolBuilder::message_size)) and has seen one; 200 otherwise.
    pub average_message: u64,
    /// Whether that is measured.
    pub is_measured: bool,
    /// The size of all messages when the pool is full: workers x inbox x average.
    pub estimate: u64,
    /// The size of the messages that wait to be started, for the first time or again.
    pub queues: u64,
    /// The size of the messages in the line of a parked key.
    pub parked: u64,
    /// The size of the dead letters that are kept.
    pub dead_letters: u64,
    /// Bytes of the whole process, if known.
    pub process: Option<u64>,
    /// The memory of the machine, if known.
    pub machine: Option<u64>,
}

impl PoolMemory {
    /// True if a full pool would take more than a quarter of the machine's memory.
    pub fn is_too_much(&self) -> bool {
        self.machine.is_some_and(|machine| self.estimate > machine / SHARE)
    }

    /// Bytes in use: by the process if known, by the messages that the pool holds otherwise.
    pub(super) fn used(&self) -> u64 {
        let held = self.queues + self.parked + self.dead_letters;
        self.process.unwrap_or(held)
    }

    /// The parts that the pool holds, the largest first.
    pub(super) fn holds(&self) -> Vec<(Holding, u64)> {
        let mut holds = vec![
            (Holding::Queues, self.queues),
            (Holding::Parked, self.parked),
            (Holding::DeadLetters, self.dead_letters),
        ];
        holds.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h03_figures_are_read_from_what_linux_writes() {
        let status = "Name:\tgreenroom\nVmHWM:\t   9999 kB\nVmRSS:\t    1234 kB\nThreads:\t8\n";
        assert_eq!(kilobytes(status, "VmRSS:"), Some(1234 * 1024));
        assert_eq!(kilobytes("MemTotal:       16384 kB\n", "MemTotal:"), Some(16 << 20));
        for text in
            ["", "VmRSS:\n", "VmRSS: x kB", "VmRSS: 12 MB", "VmRSS: 99999999999999999999 kB"]
        {
            assert_eq!(kilobytes(text, "VmRSS:"), None, "{text}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn h03_the_machine_says_how_much_there_is_and_how_much_is_used() {
        let (process, machine) = (Machine.process(), Machine.machine());
        assert!(process > Some(0) && machine > process, "{process:?} {machine:?}");
    }
}
