//! Which machine the figures are of.

use std::{fs, thread};

/// Processor, cores, memory and kernel, in one line.
pub fn machine() -> String {
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned());
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let memory = field("/proc/meminfo", "MemTotal").unwrap_or_else(|| "unknown".to_owned());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{processor}, {cores} cores, {memory}, Linux {}", kernel.trim())
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The version of a package in the lock file of this workspace.
pub fn locked(package: &str) -> &'static str {
    let lock = include_str!("../../Cargo.lock");
    let after =
        lock.split_once(&format!("name = \"{package}\"\nversion = \"")).map(|(_, after)| after);
    after.and_then(|after| after.split('"').next()).unwrap_or("unknown")
}
