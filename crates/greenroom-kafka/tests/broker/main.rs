//! Against a real broker, which `GREENROOM_KAFKA=HOST:PORT` names. Without one, it is said on
//! standard error that nothing was tested, and how to do that.
//!
//! ```sh
//! GREENROOM_KAFKA=$(scripts/kafka up) cargo test -p greenroom-kafka --test broker
//! ```

#![expect(clippy::unwrap_used, reason = "all of this is tests, the parts that they share included")]

mod commits;
mod conformance;
mod crash;
mod full;
mod guard;
mod members;
mod output;
mod program;
mod reading;
mod slow;
mod support;
