//! Small models, tried in every order that the memory model allows.
//!
//! loom runs two or three threads in all the orders in which they may meet, and lets loads return every value that their
//! ordering allows. It takes sequentially consistent accesses (not fences) for acquire and release, so a protocol that
//! rests on them looks broken here: those are left to the other checker.
#![expect(dead_code, reason = "what is compiled in from the product is more than the models use")]

pub mod checker;
mod sync;

#[path = "../../shared/product.rs"]
mod product;
#[path = "../../shared/scenarios.rs"]
pub mod scenarios;

use product::{
    Actor, AnyAddress, CallError, Class, DeadLetter, DeadLetterReason, ExitReason, PoolEvent,
    ReplyPort, delivery, delivery::Delivery, life, pool, reply,
};
