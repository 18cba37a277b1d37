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
//! use greenroom_kafka::{KafkaInput, source::KafkaSource};
//!
//! # async fn run(letters: Arc<dyn greenroom_bus::dead_letter::DeadLetterStore>)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! let mut input = KafkaInput::new("localhost:9092", "billing", ["orders"]);
//! input.instance_id = Some("billing-1".to_owned());
//! let handler = HandlerConfig {
//!     order_by: Some("subject".parse()?),
//!     ..HandlerConfig::new(vec!["order.**".parse()?], Arc::new(LogFactory))
//! };
//! let engine = Engine::builder()
//!     .input(Box::new(KafkaSource::open(input, None)?))
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
mod connection;
#[cfg(feature = "client")]
mod decode;
#[cfg(feature = "client")]
mod kept;
pub mod kinds;
#[cfg(feature = "client")]
mod marks;
mod options;
#[cfg(feature = "client")]
pub mod output;
#[cfg(feature = "client")]
mod place;
mod properties;
#[cfg(feature = "client")]
pub mod source;
#[cfg(feature = "client")]
mod topic;
#[cfg(feature = "client")]
mod unusable;

pub use self::{
    options::{KafkaInput, KafkaLetters, KafkaOutput},
    properties::Properties,
};
#[cfg(feature = "client")]
pub use self::{source::redrive::redrive, unusable::Unusable};
#[cfg(feature = "client")]
pub use greenroom_bus::dead_letter::redrive::{RedriveError, Redriven};
