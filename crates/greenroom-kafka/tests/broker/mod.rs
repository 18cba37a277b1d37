//! Against a broker: one in this process, which speaks the protocol on a socket and fails by
//! request, or a real one, which `GREENROOM_KAFKA=HOST:PORT` names. What only a real one does (a
//! crash in the midst of 200,000 events, rebalances between processes, its limits, transactions,
//! retention) does not run without; it is said on standard error which tests these are, and how to
//! run them.
//!
//! ```sh
//! GREENROOM_KAFKA=$(scripts/kafka up) cargo test -p greenroom-kafka --test kafka
//! ```

mod commits;
mod conformance;
mod crash;
mod failing;
mod fake;
mod full;
mod guard;
mod keys;
mod letters;
mod members;
mod output;
mod program;
mod reading;
mod scenarios;
mod slow;
pub(crate) mod support;
