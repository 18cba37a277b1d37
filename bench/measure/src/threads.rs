//! Which threads use how much of the processor, where one process is both sides.

use std::{collections::HashMap, ffi::OsString, fs, io};

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

/// What each thread of another process has used until now, to a nanosecond.
pub struct Spent(HashMap<OsString, u64>);

impl Spent {
    /// # Errors
    /// The process is gone, or the system does not tell.
    pub fn by(process: u32) -> io::Result<Self> {
        let mut spent = HashMap::new();
        for thread in fs::read_dir(format!("/proc/{process}/task"))?.flatten() {
            // One that ends meanwhile is not among them.
            let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else { continue };
            let first = text.split_whitespace().next().and_then(|first| first.parse().ok());
            spent.insert(thread.file_name(), first.ok_or(io::ErrorKind::InvalidData)?);
        }
        Ok(Self(spent))
    }

    /// Seconds since `before`, of the threads that there are still.
    pub fn since(&self, before: &Self) -> f64 {
        let since = |(thread, now): (&OsString, &u64)| now - before.0.get(thread).unwrap_or(&0);
        self.0.iter().map(since).sum::<u64>() as f64 / 1e9
    }
}
