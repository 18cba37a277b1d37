//! Larger models, tried in many orders, by chance from a fixed seed.
//!
//! shuttle runs threads one after the other and changes between them at every access. It takes every access for a
//! sequentially consistent one, so what a weaker one lets through goes unseen here: that is the other checker's part.
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
