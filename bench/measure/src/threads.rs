//! Which threads use how much of the processor, where one process is both sides.

use std::fs;

/// Processor time of the threads of this process whose names begin so, until now, in seconds, to a
/// hundredth for each; those that have ended are not among them. Not a number where the system does
/// not tell.
pub fn thread_time(name: &str) -> f64 {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return f64::NAN };
    let paths = threads.flatten().map(|thread| thread.path());
    let named = paths.filter(|path| {
        fs::read_to_string(path.join("comm")).is_ok_and(|found| found.starts_with(name))
    });
    let ticks = named.filter_map(|path| {
        let text = fs::read_to_string(path.join("stat")).ok()?;
        let fields = text.rsplit_once(')')?.1.split_whitespace();
        Some(fields.skip(11).take(2).flat_map(str::parse::<u64>).sum::<u64>())
    });
    ticks.sum::<u64>() as f64 / super::others::TICKS_PER_SECOND
}
