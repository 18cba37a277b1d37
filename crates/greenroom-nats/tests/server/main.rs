//! What only a real server can show. The tests ask for one by `GREENROOM_NATS=HOST:PORT`; without
//! it each says that it was not run, and how to run it.
//!
//! Of the scenarios that every release passes, those are here that a broker has a part in: a
//! killed process (Z01, `crash`), processes that come and go (Z02, `members`), a dead-letter place
//! that is down (Z03, `engine`), a server that is killed (Z07, `outage` and `output`), redelivery
//! (Z08, `outage` and `order`), a stop under load (Z09) and slow handlers (Z13, both
//! `under_load`), a huge message (Z11, `settling`) and malformed ones (Z12, `engine` and
//! `unreadable`). Slow and
//! hot keys, outages of what handlers call, and jumps of the clock (Z04, Z05, Z06, Z10) end at the
//! engine, whose tests they are.

#![expect(clippy::unwrap_used, reason = "all of this is tests, the parts that they share included")]

mod conformance;
mod crash;
mod engine;
mod lease;
mod members;
mod order;
mod outage;
mod output;
mod own_server;
mod proxy;
mod reader;
mod secure;
mod server;
mod settling;
mod under_load;
mod unreadable;
