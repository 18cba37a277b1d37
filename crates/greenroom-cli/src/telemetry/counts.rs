//! Counts of exported and dropped items, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use greenroom_bus::metrics::{Families, Metric};

pub(crate) const EXPORTED: Metric = Metric::counter(
    "greenroom_otlp_exported_total",
    &["signal"],
    "Spans, log records and metric points that the OTLP endpoint has accepted.",
);

pub(crate) const DROPPED: Metric = Metric::counter(
    "greenroom_otlp_dropped_total",
    &["signal"],
    "Spans, log records and metric points that were not exported: their queue was full, or the \
     endpoint did not accept them.",
);

/// The exported signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "otlp"),
    expect(dead_code, reason = "a build without `otlp` exports nothing")
)]
pub(crate) enum Signal {
    Traces,
    Metrics,
    Logs,
}

/// The outcomes of the items of each signal.
#[derive(Debug, Default)]
pub(crate) struct SignalCounts([SignalCount; 3]);

#[derive(Debug, Default)]
struct SignalCount {
    exported: AtomicU64,
    dropped: AtomicU64,
}

impl Signal {
    const NAMES: [&'static str; 3] = ["traces", "metrics", "logs"];

    /// Its name in OTLP.
    #[cfg(feature = "otlp")]
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl SignalCounts {
    #[cfg(feature = "otlp")]
    pub(crate) fn exported(&self, signal: Signal, items: u64) {
        self.0[signal as usize].exported.fetch_add(items, Ordering::Relaxed);
    }

    #[cfg(feature = "otlp")]
    pub(crate) fn dropped(&self, signal: Signal, items: u64) {
        self.0[signal as usize].dropped.fetch_add(items, Ordering::Relaxed);
    }

    #[cfg(all(test, feature = "otlp"))]
    pub(crate) fn get(&self, signal: Signal) -> (u64, u64) {
        let SignalCount { exported, dropped } = &self.0[signal as usize];
        (exported.load(Ordering::Relaxed), dropped.load(Ordering::Relaxed))
    }

    /// Adds them to the metrics.
    pub(crate) fn add(&self, families: &mut Families) {
        for (name, count) in Signal::NAMES.iter().zip(&self.0) {
            families.add(&EXPORTED, &[name], count.exported.load(Ordering::Relaxed));
            families.add(&DROPPED, &[name], count.dropped.load(Ordering::Relaxed));
        }
    }
}
