//! What else ran meanwhile: a machine that is shared makes rounds worthless,
//! and says so nowhere else.

use std::{fs, time::Instant};

/// What the kernel counts in, on every platform with `/proc`.
pub(crate) const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time at one moment.
pub struct Watch {
    start: Instant,
    all: Option<u64>,
    own: Option<u64>,
    /// A child that runs and belongs to what is measured.
    child: Option<u32>,
}

impl Watch {
    pub fn start() -> Self {
        Self::start_with(None)
    }

    /// What this child uses is not of others.
    pub fn start_with(child: Option<u32>) -> Self {
        Self { start: Instant::now(), all: busy(), own: own(child), child }
    }

    /// How many cores others have used since, on average, with what the host took; to some
    /// hundredths, and for runs of a tenth of a second to some tenths. Not a number where
    /// the system does not tell.
    pub fn cores(&self) -> f64 {
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?) as f64);
        let others = since(busy(), self.all)
            .zip(since(own(self.child), self.own))
            .map(|(all, own)| all - own);
        let ticks = self.start.elapsed().as_secs_f64() * TICKS_PER_SECOND;
        others.map_or(f64::NAN, |others| (others / ticks).max(0.0))
    }
}

/// Ticks that any core was busy for anyone: user, nice, system, irq, softirq, steal.
fn busy() -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).flat_map(str::parse).collect();
    Some([0, 1, 2, 5, 6, 7].iter().filter_map(|field| ticks.get(*field)).sum())
}

/// Ticks of this process, of its children that have ended, and of one that runs.
fn own(child: Option<u32>) -> Option<u64> {
    let child = child.map_or(Some(0), |child| ticks(&format!("/proc/{child}/stat")))?;
    Some(ticks("/proc/self/stat")? + child)
}

fn ticks(path: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    // The name in parentheses may contain spaces; utime, stime, cutime and cstime are
    // the 12th to 15th after it.
    let fields = text.rsplit_once(')')?.1.split_whitespace();
    Some(fields.skip(11).take(4).flat_map(str::parse::<u64>).sum())
}

/// Processor time of this process until now, in seconds, to a hundredth; not a number where the
/// system does not tell.
pub fn processor_time() -> f64 {
    ticks("/proc/self/stat").map_or(f64::NAN, |ticks| ticks as f64 / TICKS_PER_SECOND)
}
