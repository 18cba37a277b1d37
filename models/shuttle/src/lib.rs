//! Larger models, tried in many orders, by chance from a fixed seed.
//!
//! shuttle runs threads one after the other and changes between them at every access. It takes every access for a
//! sequentially consistent one, so what a weaker one lets through goes unseen here: that is the other checker's part.
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
