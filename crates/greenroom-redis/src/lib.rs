#![cfg_attr(docsrs, feature(doc_cfg))]

//! Redis Streams for [`greenroom_bus`]: a consumer of a group as a source.
//!
//! | module | contents |
//! |---|---|
//! | [`options`] | [`RedisInput`]: which streams, as which consumer |
//! | [`kind`] | the input `redis` of a configuration |
//! | [`source`] | [`RedisSource`](source::RedisSource): entries as events, each acknowledged after it is settled |
//!
//! Without the feature `client` (on unless turned off) there are the options of a configuration
//! alone.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use greenroom_bus::{
//!     dead_letter::file::FileDeadLetterStore,
//!     engine::{Engine, HandlerConfig, PoolConfig},
//!     handler::pass::PassFactory,
//! };
//! use greenroom_redis::{RedisInput, RedisKey, source::RedisSource};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let key = Some(RedisKey::Field("customer".into()));
//! let input = RedisInput::new("redis://127.0.0.1", ["orders"], "shop", "shop-1");
//! let source = RedisSource::open(RedisInput { key, ..input }, None).await?;
//! let handler = HandlerConfig::new(vec!["**".parse()?], Arc::new(PassFactory));
//! let order_by = Some("partitionkey".parse()?);
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
mod address;
#[cfg(feature = "client")]
mod connection;
#[cfg(feature = "client")]
mod entry;
#[cfg(feature = "client")]
mod form;
pub mod kind;
pub mod options;
#[cfg(feature = "client")]
pub mod source;

pub use options::{RedisInput, RedisKey, RedisTls};
