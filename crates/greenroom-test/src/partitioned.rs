//! A source of several partitions in memory (D15): what a broker is to a consumer, without the
//! broker.
//!
//! A consumer of Kafka or NATS goes wrong where partitions come and go, events come twice, and
//! positions have gaps: rare things, and each on a thread of its own. Here a test does them, one by
//! one, on virtual time, and looks at both sides.
//!
//! ```text
//!  test ─ publish, skip ──▶ log of each partition ─▶ source ─▶ engine
//!       ─ revoke, assign ─────────▶ epochs            ▲   │ settled
//!       ─ repeat ─────────────── cursor back ─────────┘   ▼
//!       ◀ given, paused, revoked, settled ─ watermark ─ commit ─▶ committed, outlives the source
//! ```
//!
//! * A **log** outlives sources: another [`source`](Broker::source) of the same broker goes on with
//!   what is committed, as a restart does.
//! * An **assignment** begins an epoch with what is committed. What comes of an earlier epoch is
//!   fenced.
//! * A **repeat** gives events again, as a broker does whose acknowledgement was lost. The source
//!   skips what is done or in hand.
//! * A **gap** is a position that is never given, as compaction, transactions and deleted messages
//!   leave them.
//!
//! The price: every event stays in memory, and one lock is taken for each batch and each
//! settlement. It does not pretend to be slow, or to fail: a [script of
//! steps](greenroom_bus::source::Source) of one's own does that better.
//!
//! ```
//! use greenroom_bus::{event::Event, source::Pull};
//! use greenroom_test::partitioned::{Broker, Delivery};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let broker = Broker::default();
//! broker.publish(0, [Event::builder("a", "test", "made").build()?]);
//! broker.skip(0, 2); // positions 2 and 3 are never given
//! broker.publish(0, [Event::builder("b", "test", "made").build()?]);
//! broker.end();
//!
//! let (mut source, mut taken) = (broker.source(), Vec::new());
//! while source.pull(&mut taken).await? == Pull::More {}
//! let positions: Vec<u64> = taken.iter().map(|taken| taken.position).collect();
//! assert_eq!(positions, [1, 4]);
//! let event = taken[0].event.as_ref().unwrap();
//! assert!(broker.is_assigned(event.local::<Delivery>().unwrap()));
//! # Ok(()) }
//! ```

mod broker;
mod committer;
mod delivery;
mod log;
mod member;
mod options;
mod state;

pub use self::{broker::Broker, delivery::Delivery, options::BrokerOptions};

#[cfg(test)]
mod tests;
