//! An engine's figures, as metrics: names, units and labels, and their values on request (O02,
//! O03).
//!
//! ```text
//! engine ──▶ Control ──look, once a second──▶ Observer ──families──▶ Families ──▶ Prometheus text
//!  (counters that it has anyway)               (ages, rates)             └─feed──▶ the `metrics` facade
//! ```
//!
//! It adds no work to the path of an event. An [`Observer`] reads the counters of pools, inputs and
//! the ledger. Some figures describe changes: the rate, or for how long a position has been the
//! lowest open one. It computes these itself, from a [look](Observer::look) once a second. The
//! price is that of the looks: some microseconds for each pool and partition.
//!
//! The number of series is bounded: there is none for a key, and none for a worker unless [asked
//! for](Observer::per_worker); of a pool's shares, the [`BUSIEST`] have some; of an input with more
//! than [`MOST_PARTITIONS`], only its sums. An
//! input or output that is removed keeps its counters, so that no sum falls.
//!
//! ```
//! use std::sync::Arc;
//! use greenroom_bus::{
//!     dead_letter::file::FileDeadLetterStore,
//!     engine::{Engine, HandlerConfig},
//!     handler::pass::PassFactory,
//!     metrics::Observer,
//!     source::generator::{GeneratorOptions, GeneratorSource},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let letters = directory.path().join("dead-letters.ndjson");
//! let three = GeneratorOptions { count: Some(3), ..GeneratorOptions::default() };
//! let engine = Engine::builder()
//!     .input(Box::new(GeneratorSource::new(three)?))
//!     .handler("all", HandlerConfig::new(vec!["**".parse()?], Arc::new(PassFactory)))
//!     .dead_letters(Arc::new(FileDeadLetterStore::open(&letters)?))
//!     .build()
//!     .await?;
//! let observer = Observer::new(engine.control());
//! engine.run().await;
//! let families = observer.families();
//! let taken = families.get("greenroom_events_taken_total").unwrap();
//! assert_eq!(taken.series[0].value.as_f64(), 3.0);
//! # Ok(()) }
//! ```

/// Declares metrics, each as a constant, and the list of them in the order in which they are shown.
macro_rules! metrics {
    ($($name:ident: $kind:ident($key:literal, $labels:expr $(, $unit:ident)?) = $help:literal;)*) => {
        $(const $name: Metric =
            Metric::$kind($key, $labels, $help)$(.with_unit($crate::metrics::Unit::$unit))?;)*

        pub(super) const METRICS: &[&Metric] = &[$(&$name),*];
    };
}

#[cfg(feature = "metrics")]
mod facade;
mod families;
mod handlers;
mod inputs;
mod metric;
mod observer;
mod outputs;
mod pace;
mod pools;
mod process;
mod run;
mod shares;
mod standings;

#[cfg(feature = "metrics")]
pub use facade::Feed;
pub use families::{Families, Family, Series, Value};
pub use inputs::MOST_PARTITIONS;
pub use metric::{Kind, Metric, Unit};
pub use observer::{EVERY, Observer, WEDGED_AFTER};
pub use shares::BUSIEST;

/// Every metric of an engine, in the order in which they are shown.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    [
        pools::METRICS,
        shares::METRICS,
        run::METRICS,
        handlers::METRICS,
        inputs::METRICS,
        outputs::METRICS,
        process::METRICS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn o03_every_metric_has_a_name_a_unit_and_a_help_by_the_conventions() {
        let mut names = HashSet::new();
        for metric in all() {
            let name = metric.name;
            assert!(names.insert(name), "{name} is there twice");
            assert!(name.bytes().all(|c| c.is_ascii_lowercase() || c == b'_'), "{name}");
            assert_eq!(name.ends_with("_total"), metric.kind == Kind::Counter, "{name}");
            let stem = name.strip_suffix("_total").unwrap_or(name);
            for (unit, suffix) in
                [(Unit::Seconds, "_seconds"), (Unit::Bytes, "_bytes"), (Unit::Ratio, "_ratio")]
            {
                assert_eq!(stem.ends_with(suffix), metric.unit == Some(unit), "{name}");
            }
            assert!(metric.help.ends_with('.') && !metric.help.contains(['\n', '\\']), "{name}");
            assert!(metric.labels.iter().all(|label| !["key", "le"].contains(label)), "{name}");
        }
    }

    #[test]
    fn o03_the_names_of_the_keyed_pool_design_are_there() {
        for name in [
            "actor_pool_messages_sent_total",
            "actor_pool_messages_processed_total",
            "actor_pool_messages_failed_total",
            "actor_pool_message_latency_seconds",
            "actor_pool_actors_restarted_total",
            "actor_pool_dead_letters_total",
            "actor_pool_inbox_depth",
            "actor_pool_inbox_size",
            "actor_pool_inbox_utilization",
            "actor_pool_inbox_full_total",
        ] {
            let metric = all().find(|metric| metric.name == name);
            assert_eq!(metric.unwrap_or_else(|| panic!("{name}")).labels[0], "pool");
        }
        assert!(all().any(|metric| metric.name == "process_resident_memory_bytes"));
    }
}
