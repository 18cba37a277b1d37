//! Against a real broker, which `GREENROOM_KAFKA=HOST:PORT` names. Without one, each test says on
//! standard error that it did not run, and how to run it.
//!
//! ```sh
//! GREENROOM_KAFKA=$(scripts/kafka up) cargo test -p greenroom-kafka --test broker
//! ```

mod conformance;
mod support;
