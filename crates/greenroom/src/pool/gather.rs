//! One message to several workers, and their answers.
//!
//! A pool gives a message to one worker. Three tasks need more than one: notifying all of them,
//! asking several of them the same, and dividing a request among them.
//!
//! | for | there is | to whom | the reply |
//! |---|---|---|---|
//! | telling all | [`BroadcastAddress::send`] | a copy to each live worker | [`Sent`] |
//! | asking all, or some of them | [`BroadcastAddress::call`] | a copy to each live worker | [`Gathered`], [`FirstReply`] |
//! | dividing work | [`SplitJoin`] | a part to each live worker | the result of `join` |
//!
//! There is no task between the caller and the workers: calls run in the caller's task, all at
//! once, and each part is polled only when it was woken. A worker that dies, fails or panics
//! resolves its part as an error; it never hangs.
//!
//! # Price
//! The price is a copy of the message and two allocations for each worker that is asked; one for
//! each worker in a broadcast `send`. Dropping a gathering abandons its calls: messages that have
//! not been started are skipped; started ones continue with their [cancellation
//! token](crate::CancellationToken) cancelled.
//!
//! # When to use something else
//! To reach all workers with each event of a stream, use
//! [`Topic::subscribe_each`](crate::Topic::subscribe_each); for one answer from the first free
//! worker, a plain [`call`](crate::Address::call).

mod attempt;
mod broadcast;
mod fold;
mod gathered;
mod gathering;
pub(crate) mod live_workers;
mod partial;
mod round;
mod sent;
mod split_join;
mod together;

pub use super::Worker;
pub use broadcast::BroadcastAddress;
pub use gathered::{FirstReply, GatherError, Gathered, SlotResult};
pub use gathering::Gathering;
pub use partial::{PartialPolicy, SplitJoinError};
pub use sent::{NoneAccepted, Sent};
pub use split_join::{SplitJoin, SplitJoinAddress};
