//! Shares: fairness, limits and rates for each tenant, with order kept.
//!
//! One pool, ten thousand customers, and one of them sends a million messages. With
//! [`shared_by`](crate::PoolBuilder::shared_by) the others do not feel it:
//!
//! ```text
//!            a million of acme's                        workers
//!  acme  ████████████████████████████████ ─┐
//!  bolt  █                                 ├─ in turn ─▶ acme bolt acme cafe acme ...
//!  cafe  ██                               ─┘
//! ```
//!
//! * **Fair by time.** While shares have messages that could start, the time that workers have
//!   their messages in hand is the same for each, or goes by their weights: not the number of
//!   messages, so a share of slow ones takes no more than others. A share that had nothing to do
//!   begins level with the others; it saves nothing up.
//! * **Nothing is wasted.** A share that has nothing to start leaves its part to the others, also
//!   if its only key is busy, or its cap is reached.
//! * **Caps** ([`ShareLimits`]): attempts in hand, and attempts started in a time. What waits for
//!   them holds no worker and no other share.
//! * **Holds**: nothing of a share is started until a time; then one attempt probes, and the others
//!   follow once it has ended ([`Shares::hold`], and in a handler
//!   [`Context::hold_share`](crate::Context::hold_share)).
//! * **Order** of keys stays as [`ordered_by`](crate::PoolBuilder::ordered_by) says. A key whose
//!   messages belong to several shares waits for the share of its first one.
//!
//! Keys of one share take turns, about in the order in which they came. An
//! [urgent](crate::Class::Urgent) message comes first within its share. A batch is of one share and
//! counts as one attempt. Messages in a worker's own mailbox have no share.
//!
//! # Price
//! A pool with shares looks at the clock at each message, and takes one lock for all of its shares
//! twice: some hundred nanoseconds. Handlers that return within 2 µs would feel that. So as long as
//! they do, on a runtime of several threads, and all shares are alike, and nothing waits for longer
//! than 32 ms, messages are started in the order of acceptance, and cost no more than without
//! shares; time in hand is not counted then. A share is in memory only while it has messages, an
//! attempt in hand, a hold, a rate whose bucket is not full, or limits of its own.
//!
//! # When to use something else
//! If a key is what should be limited, order by it: a key has one message in hand at a time. If all
//! messages together are to be limited, use [`rate`](crate::PoolBuilder::rate) and
//! [`concurrency`](crate::PoolBuilder::concurrency), which hold beside shares.

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
