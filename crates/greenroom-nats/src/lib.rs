#![cfg_attr(docsrs, feature(doc_cfg))]

//! NATS JetStream for [`greenroom_bus`]: a durable pull consumer of a stream as a source, and
//! streams as an output.
//!
//! | module | what it is |
//! |---|---|
//! | [`source`] | [`NatsSource`](source::NatsSource): messages as events, acknowledged once they are settled |
//! | [`output`] | [`NatsSink`](output::NatsSink): events to subjects of a stream, settled once the server has stored them; [`NatsDeadLetters`](output::NatsDeadLetters): dead letters to a subject, from where [`redrive`] publishes their messages again |
//!
//! [`kinds`] are the options of both in a configuration; without the feature `client` (on unless
//! turned off) there is nothing else.
//!
//! A server to try things out with is `scripts/nats up` in the repository.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use greenroom_bus::{
//!     dead_letter::file::FileDeadLetterStore,
//!     engine::{Engine, HandlerConfig, PoolConfig},
//!     handler::pass::PassFactory,
//! };
//! use greenroom_nats::{NatsInput, NatsKey, source::NatsSource};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Of `orders.7.placed`, the key is 7.
//! let key = Some(NatsKey::Token(2));
//! let input = NatsInput { key, ..NatsInput::new("127.0.0.1:4222", "ORDERS", "shop") };
//! let source = NatsSource::open(input, None).await?;
//! let order_by = Some("partitionkey".parse()?);
//! let handler = HandlerConfig::new(vec!["**".parse()?], Arc::new(PassFactory));
//! let engine = Engine::builder()
//!     .input(Box::new(source))
//!     .pool("default", PoolConfig { workers: 64, ..PoolConfig::default() })
//!     .handler("pass", HandlerConfig { order_by, ..handler })
//!     .dead_letters(Arc::new(FileDeadLetterStore::open("dead-letters.ndjson")?))
//!     .build()
//!     .await?;
//! engine.run().await;
//! # Ok(()) }
//! ```

#[cfg(feature = "client")]
mod connection;
mod key;
pub mod kinds;
mod options;
#[cfg(feature = "client")]
pub mod output;
#[cfg(feature = "client")]
mod redrive;
mod server;
#[cfg(feature = "client")]
pub mod source;
mod subject;

#[cfg(feature = "client")]
pub use greenroom_bus::dead_letter::redrive::{RedriveError, Redriven};
pub use key::{BadKeyTemplate, NatsKey, NatsKeyTemplate};
pub use options::{NatsInput, NatsLetters, NatsOutput};
#[cfg(feature = "client")]
pub use redrive::redrive;
pub use server::{NatsAuth, NatsUser};
