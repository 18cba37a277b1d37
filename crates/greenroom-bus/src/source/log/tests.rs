//! What a log promises, on a disk that can be made to fail.

mod commands;
mod crashes;
mod damage;
mod deduplication;
mod full;
mod random;
mod reading;
mod retaining;
mod support;
