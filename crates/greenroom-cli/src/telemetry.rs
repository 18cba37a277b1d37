//! Traces, metrics and logs over OTLP (O06), if this build has the feature `otlp` and the
//! configuration enables it.
//!
//! ```text
//! workers ──spans──▶ queue ──┐
//! log ──────records▶ queue ──┼─▶ exporter (a thread of its own) ──POST, protobuf──▶ collector
//! Figures ──families─────────┘      └─ counts: exported, dropped ──▶ /metrics
//! ```
//!
//! Adding to a queue never waits: a full queue drops the item and counts that. All slow work
//! happens on the exporter's thread, which has its own runtime: encoding, sending, retrying. Log
//! lines of that thread are not exported, so that no line is about itself.
//!
//! The messages are those of `opentelemetry-proto`, made directly. The SDK of OpenTelemetry keeps
//! metrics of its own, whereas here `/metrics` and OTLP show the same figures, and it does not
//! count dropped items.
//!
//! The price: building a message for each line of the log and each recorded span, and a scrape of
//! `/metrics` every minute. `docs/benchmarks.md` has the figures.

pub(crate) mod counts;
#[cfg(feature = "otlp")]
mod exporter;
#[cfg(feature = "otlp")]
pub(crate) mod logs;
#[cfg(feature = "otlp")]
mod measured;
#[cfg(feature = "otlp")]
mod queue;
#[cfg(feature = "otlp")]
mod reach;
#[cfg(feature = "otlp")]
mod settings;
#[cfg(feature = "otlp")]
mod spans;
#[cfg(feature = "otlp")]
mod values;
#[cfg(not(feature = "otlp"))]
mod without;

use greenroom_bus::metrics::Families;

#[cfg(feature = "otlp")]
pub(crate) use self::exporter::Telemetry;
#[cfg(not(feature = "otlp"))]
pub(crate) use self::without::Telemetry;

/// The source of figures.
#[cfg_attr(
    not(feature = "otlp"),
    expect(dead_code, reason = "a build without `otlp` measures for `/metrics` alone")
)]
pub(crate) struct TelemetrySource {
    /// The figures.
    pub(crate) families: Box<dyn Fn() -> Families + Send + Sync>,
    /// To be called once a second, unless another task does.
    pub(crate) look: Option<Box<dyn Fn() + Send + Sync>>,
}
