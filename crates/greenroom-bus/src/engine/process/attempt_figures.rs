//! How a handler's attempts end, and how long they take.
//!
//! Each worker counts for itself, so that no count is shared. Times are sampled: each attempt is
//! measured after a slow one, and otherwise one in 16. Those in between are assumed to be as short
//! as the previous measured one, and are added with the next: no more are counted than there were.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use greenroom::stats::LatencyHistogram;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::handler::{FailureKind, HandlerResult};

/// Of attempts that take no longer, one in several is measured.
const SHORT: Duration = Duration::from_micros(32);
const ONE_IN: u32 = 16;

/// Percentiles are right to a hundredth.
const DIGITS: u8 = 2;

/// Of one handler, all workers together.
#[derive(Debug, Default)]
pub(crate) struct AttemptFigures {
    /// By the worker's slot; a successor in a slot continues the count.
    counts: Mutex<Vec<Arc<WorkerAttempts>>>,
    /// In microseconds; from the first measurement on.
    times: Arc<Mutex<Option<Histogram<u64>>>>,
}

#[derive(Debug, Default)]
struct WorkerAttempts {
    succeeded: AtomicU64,
    failed: AtomicU64,
    /// Of those: for the timeout of the pool or of the target.
    late: AtomicU64,
    /// Of those: with a wait that the target asks for.
    deferred: AtomicU64,
}

/// The figures that one worker adds.
#[derive(Debug)]
pub(crate) struct WorkerFigures {
    counts: Arc<WorkerAttempts>,
    times: Arc<Mutex<Option<Histogram<u64>>>>,
    /// The duration of the last measured one.
    last: Duration,
    /// Attempts since then.
    unmeasured: u32,
}

/// How a handler's attempts have ended so far, and how long they took. Takes some kilobytes.
#[derive(Debug, Clone, Default)]
pub struct AttemptsSnapshot {
    /// Attempts that succeeded.
    pub succeeded: u64,
    /// Attempts that failed; an attempt that was given back unstarted is none.
    pub failed: u64,
    /// Attempts that failed because they took too long.
    pub late: u64,
    /// Attempts that failed with a wait that the target asks for (`Retry-After`).
    pub deferred: u64,
    times: Option<Histogram<u64>>,
}

/// How long attempts took that were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptTimes {
    /// Half of them took no longer.
    pub p50: Duration,
    /// Ninety-nine in a hundred.
    pub p99: Duration,
}

impl AttemptTimes {
    /// With these percentiles.
    pub fn new(p50: Duration, p99: Duration) -> Self {
        Self { p50, p99 }
    }
}

impl AttemptFigures {
    /// Those of the worker in this slot.
    pub(crate) fn of_worker(&self, slot: usize) -> WorkerFigures {
        let mut counts = self.counts.lock();
        if counts.len() <= slot {
            counts.resize_with(slot + 1, Arc::default);
        }
        WorkerFigures {
            counts: counts[slot].clone(),
            times: self.times.clone(),
            last: SHORT + SHORT,
            unmeasured: 0,
        }
    }

    pub(crate) fn snapshot(&self) -> AttemptsSnapshot {
        let counts = self.counts.lock();
        let sum = |of: fn(&WorkerAttempts) -> &AtomicU64| {
            counts.iter().map(|worker| of(worker).load(Relaxed)).sum()
        };
        AttemptsSnapshot {
            succeeded: sum(|of| &of.succeeded),
            failed: sum(|of| &of.failed),
            late: sum(|of| &of.late),
            deferred: sum(|of| &of.deferred),
            times: self.times.lock().clone(),
        }
    }
}

impl WorkerFigures {
    /// An attempt begins: the time, if it is to be measured.
    pub(crate) fn begin(&self) -> Option<Instant> {
        self.is_due().then(Instant::now)
    }

    fn is_due(&self) -> bool {
        self.last > SHORT || self.unmeasured >= ONE_IN - 1
    }

    /// It has ended; `began` as returned by [`begin`](Self::begin).
    pub(crate) fn ended(&mut self, began: Option<Instant>, result: &HandlerResult) {
        match result.as_ref().map_err(|failure| failure.kind) {
            Ok(_) => add(&self.counts.succeeded),
            Err(FailureKind::Released) => {}
            Err(kind) => self.failed(kind),
        }
        match began {
            Some(began) => self.measured(began.elapsed()),
            None => self.unmeasured += 1,
        }
    }

    #[cold]
    fn failed(&self, kind: FailureKind) {
        add(&self.counts.failed);
        match kind {
            FailureKind::Timeout => add(&self.counts.late),
            FailureKind::Retry { after: Some(_) } => add(&self.counts.deferred),
            _ => {}
        }
    }

    /// Several that were made together have ended; each took as long as all of them.
    pub(crate) fn all_ended(&mut self, began: Option<Instant>, results: &[HandlerResult]) {
        for result in results {
            self.ended(began.filter(|_| self.is_due()), result);
        }
    }

    #[cold]
    fn measured(&mut self, took: Duration) {
        let before =
            (std::mem::replace(&mut self.last, took), std::mem::take(&mut self.unmeasured));
        let mut times = self.times.lock();
        if times.is_none() {
            *times = Histogram::new(DIGITS).ok();
        }
        if let Some(times) = &mut *times {
            for (took, attempts) in [before, (took, 1)].into_iter().filter(|of| of.1 > 0) {
                // It grows as it needs to, so there is room for every time.
                let _ = times.record_n(took.as_micros() as u64, attempts.into());
            }
        }
    }
}

/// One writer, so nothing is lost between the two.
fn add(count: &AtomicU64) {
    count.store(count.load(Relaxed) + 1, Relaxed);
}

impl AttemptsSnapshot {
    /// How long the attempts took that were measured after `earlier` was taken from the same
    /// handler; `None` if there are none.
    pub fn took_since(&self, earlier: &Self) -> Option<AttemptTimes> {
        let mut new = self.times.clone()?;
        if let Some(before) = &earlier.times {
            // Fails only if `earlier` is of another handler: then this covers all measurements.
            let _ = new.subtract(before);
        }
        let at = |quantile| Duration::from_micros(new.value_at_quantile(quantile));
        (!new.is_empty()).then(|| AttemptTimes { p50: at(0.5), p99: at(0.99) })
    }

    /// All that were measured, in buckets.
    pub fn times(&self) -> LatencyHistogram {
        let mut all = LatencyHistogram::default();
        for seen in self.times.iter().flat_map(Histogram::iter_recorded) {
            all.add(Duration::from_micros(seen.value_iterated_to()), seen.count_at_value());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::{Failure, Outputs};

    #[tokio::test(start_paused = true)]
    async fn o03_long_attempts_are_measured_each_and_short_ones_stand_for_others() {
        let figures = AttemptFigures::default();
        let mut worker = figures.of_worker(3);
        for _ in 0..32 {
            let began = worker.begin();
            worker.ended(began, &Ok(Outputs::None));
        }
        let short = figures.snapshot();
        assert_eq!(
            (short.succeeded, short.times().count()),
            (32, 17),
            "the rest comes with the next"
        );
        for _ in 0..5 {
            let began = worker.begin();
            tokio::time::advance(Duration::from_secs(83)).await;
            worker.ended(began, &Err(Failure::new(FailureKind::Timeout, "late")));
        }
        let all = figures.snapshot();
        let took = all.took_since(&short).unwrap();
        assert!((took.p99.as_secs_f64() / 83.0 - 1.0).abs() < 0.01, "{took:?}");
        assert_eq!((all.failed, all.times().count(), all.took_since(&all)), (5, 37, None));
        let asked = FailureKind::Retry { after: Some(Duration::from_secs(7)) };
        worker.ended(None, &Err(Failure::new(asked, "429")));
        let counted = figures.snapshot();
        assert_eq!((counted.failed, counted.late, counted.deferred), (6, 5, 1));
        let upto =
            |bound| all.times().buckets().find(|(upto, _)| upto.as_secs() == bound).unwrap().1;
        assert_eq!((upto(60), upto(120)), (0, 5), "it is told from nine minutes");
        let mut next = figures.of_worker(3);
        next.ended(next.begin(), &Err(Failure::new(FailureKind::Released, "not begun")));
        assert_eq!(figures.snapshot().failed, 6);
    }
}
