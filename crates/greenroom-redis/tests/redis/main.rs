//! What only a real server can show. The tests ask for one by `GREENROOM_REDIS=HOST:PORT`; without
//! it each says that it was not run, and how to run it.

#![expect(clippy::unwrap_used, reason = "all of this is tests, the parts that they share included")]

mod conformance;
mod consumers;
mod looking;
mod outage;
mod own_server;
mod reader;
mod reading;
mod secure;
mod server;
