//! NATS JetStream for [`greenroom_bus`]: a durable pull consumer as a source, a stream as an output.
//!
//! | module | what it is |
//! |---|---|
//! | [`source`] | [`NatsSource`](source::NatsSource): messages as events, acknowledged once they are settled |
//!
//! What both need to connect is a [`NatsServer`]. A server to try things out with is
//! `scripts/nats up` in the repository.

mod connection;
mod key;
mod server;
pub mod source;

pub use key::{BadKeyTemplate, NatsKey, NatsKeyTemplate};
pub use server::{NatsAuth, NatsServer};
