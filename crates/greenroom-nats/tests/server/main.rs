//! What only a real server can show. The tests ask for one by `GREENROOM_NATS=HOST:PORT`; without
//! it each says that it was not run, and how to run it.

#![expect(clippy::unwrap_used, reason = "all of this is tests, the parts that they share included")]

mod conformance;
mod crash;
mod engine;
mod members;
mod order;
mod outage;
mod output;
mod own_server;
mod reader;
mod server;
mod settling;
mod under_load;
