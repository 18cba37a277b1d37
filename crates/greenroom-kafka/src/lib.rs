#![cfg_attr(docsrs, feature(doc_cfg))]

//! Kafka for Greenroom: consumer groups as [sources](source), topics as [outputs](output), and for
//! [dead letters](output::KafkaDeadLetters), whose records [`redrive`](redrive()) sends back.
//!
//! Handled in order per key, with as many events of a partition at once as there are keys and
//! workers; at least once; and a crash repeats little, because a commit [remembers](commit_set) the
//! settled offsets beyond the lowest open one.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use greenroom_bus::{engine::{Engine, HandlerConfig}, handler::log::LogFactory};
//! use greenroom_kafka::source::{KafkaSource, KafkaSourceOptions};
//!
//! # async fn run(letters: Arc<dyn greenroom_bus::dead_letter::DeadLetterStore>)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! let mut options = KafkaSourceOptions::new("localhost:9092", "billing", ["orders"]);
//! options.properties.set("group.instance.id", "billing-1");
//! let handler = HandlerConfig {
//!     order_by: Some("subject".parse()?),
//!     ..HandlerConfig::new(vec!["order.**".parse()?], Arc::new(LogFactory))
//! };
//! let engine = Engine::builder()
//!     .input(Box::new(KafkaSource::open(options)?))
//!     .handler("orders", handler)
//!     .dead_letters(letters)
//!     .build()
//!     .await?;
//! engine.run().await;
//! # Ok(()) }
//! ```
//!
//! It is a member of the group by librdkafka, which is compiled along: a C compiler and `make` are
//! needed, and nothing else. TLS and zstd are cargo features. Without the feature `client` (on
//! unless turned off) there are [`kinds`] alone: the options of all that in a configuration.
//!
//! Its tests run against a broker in their own process, which speaks the protocol and fails by
//! request. Against a real one: `GREENROOM_KAFKA=$(scripts/kafka up) cargo test -p
//! greenroom-kafka`.

#[cfg(feature = "client")]
mod again;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
pub mod commit_set;
#[cfg(feature = "client")]
mod decode;
#[cfg(feature = "client")]
mod kept;
pub mod kinds;
#[cfg(feature = "client")]
mod marks;
#[cfg(feature = "client")]
pub mod output;
#[cfg(feature = "client")]
mod place;
#[cfg(feature = "client")]
pub mod source;
#[cfg(feature = "client")]
mod topic;
#[cfg(feature = "client")]
mod unusable;

#[cfg(feature = "client")]
pub use self::{
    client::Properties,
    decode::RecordFormat,
    kept::{Kept, KeptHeaders},
    source::redrive::{RedriveOptions, redrive},
    unusable::Unusable,
};
#[cfg(feature = "client")]
pub use greenroom_bus::dead_letter::redrive::{RedriveError, Redriven};
