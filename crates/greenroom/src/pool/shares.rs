//! Shares: fairness, limits and rates for each tenant, with order kept.
//!
//! One pool has ten thousand customers, and one of them sends a million messages. With
//! [`shared_by`](crate::PoolBuilder::shared_by) the others do not notice:
//!
//! ```text
//!            a million of acme's                        workers
//!  acme  ████████████████████████████████ ─┐
//!  bolt  █                                 ├─ in turn ─▶ acme bolt acme cafe acme ...
//!  cafe  ██                               ─┘
//! ```
//!
//! * **Fair by time.** While shares have messages that could start, each gets the same time of
//!   messages in hand, or time in proportion to its weight. The number of messages does not count,
//!   so a share with slow ones takes no more than others. A share that had nothing to do starts
//!   level with the others; it saves nothing up.
//! * **Nothing is wasted.** A share that has nothing to start leaves its part to the others, even
//!   if only because its single key is busy or its cap is reached.
//! * **Caps** ([`ShareLimits`]): attempts in hand, and attempts started in a period. Messages that
//!   wait for a cap hold up no worker and no other share.
//! * **Holds**: nothing of a share is started until a given time; then one attempt goes first as a
//!   probe, and the others follow once it has ended ([`Shares::hold`], and in a handler
//!   [`Context::hold_share`](crate::Context::hold_share)).
//! * **Order** of keys stays as set by [`ordered_by`](crate::PoolBuilder::ordered_by). A key whose
//!   messages belong to several shares waits for the share of its first one.
//!
//! Keys of one share take turns, roughly in the order in which they came. An
//! [urgent](crate::Class::Urgent) message comes first within its share. A batch belongs to one
//! share and counts as one attempt. Messages in a worker's own mailbox have no share.
//!
//! # Price
//! A pool with shares reads the clock at each message, and takes one lock for all of its shares
//! twice: some hundred nanoseconds. Handlers that return within 2 µs would notice that. So messages
//! are started in the order of acceptance, and cost no more than without shares, as long as
//! handlers are that quick, the runtime has several threads, all shares are alike, and nothing
//! waits for longer than 32 ms; time in hand is not counted then. A share is in memory only while
//! it has messages, an attempt in hand, a hold, a rate whose bucket is not full, or limits of its
//! own.
//!
//! # When to use something else
//! To limit each key, order by it: a key has one message in hand at a time. To limit all messages
//! together, use [`rate`](crate::PoolBuilder::rate) and
//! [`concurrency`](crate::PoolBuilder::concurrency), which apply in addition to shares.

mod admin;
mod desk;
mod limits;
mod share;
mod status;

pub(crate) use desk::{ShareDesk, ShareTicket};
pub(crate) use limits::ShareConfig;

pub use admin::{NoShares, Shares};
pub use limits::ShareLimits;
pub use share::Share;
pub use status::{ShareState, ShareStatus};
