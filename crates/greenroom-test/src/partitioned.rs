//! A source of several partitions in memory (D15): acts as a broker towards a consumer, without the
//! broker.
//!
//! A consumer of Kafka or NATS fails when partitions come and go, events are repeated, and
//! positions have gaps: rare cases, each on its own thread. Here a test causes them, one by one, on
//! virtual time, and observes both sides.
//!
//! ```text
//!  test ─ publish, skip ──▶ log of each partition ─▶ source ─▶ engine
//!       ─ revoke, assign ─────────▶ epochs            ▲   │ settled
//!       ─ repeat ─────────────── cursor back ─────────┘   ▼
//!       ◀ given, paused, revoked, settled ─ watermark ─ commit ─▶ committed, outlives the source
//! ```
//!
//! * A **log** outlives sources: another [`source`](Broker::source) of the same broker continues
//!   from the committed positions, as after a restart.
//! * An **assignment** begins an epoch at the committed positions. Settlements of an earlier epoch
//!   are fenced.
//! * A **repeat** gives events again, like a broker that lost an acknowledgement. The source skips
//!   those that are done or in hand.
//! * A **gap** is a position that is never given, as compaction, transactions and deleted messages
//!   leave behind.
//!
//! The price: every event stays in memory, and each batch and each settlement takes a lock. It does
//! not simulate delays or failures: use a [script of steps](greenroom_bus::source::Source) of your
//! own for that.
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
