//! Small models, tried in every order that the memory model allows.
//!
//! loom runs two or three threads in all the orders in which they may meet, and lets loads return every value that their
//! ordering allows. It takes sequentially consistent accesses (not fences) for acquire and release, so a protocol that
//! rests on them looks broken here: those are left to the other checker.
#![expect(dead_code, reason = "what is compiled in from the product is more than the models use")]

pub mod checker;
mod sync;

// So files of the product find the queues under the name of their crate.
extern crate self as greenroom_queue;

#[path = "../../shared/product.rs"]
mod product;
#[path = "../../shared/queues.rs"]
mod queues;
#[path = "../../shared/scenarios.rs"]
pub mod scenarios;

use product::{
    Actor, AnyAddress, CallError, Class, DeadLetter, DeadLetterReason, ExitReason, PoolEvent,
    ReplyPort, delivery, delivery::Delivery, life, pool, reply,
};
use queues::{
    backlog, block_queue, credit_map, deque, discard, entry, handoff, key_lines, lanes, lock,
    offer, pacing, payload, per_slot, permits, queue, shard, shares, slot, stamp, urgency, wake,
    watchdog, watchdog_handle,
};
