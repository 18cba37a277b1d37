//! What every measurement has beside it: how far the cores were apart, what others used of them, and which machine it was.
//! A figure without these is worth nothing on a machine that is shared.

mod distance;
mod machine;
mod others;
mod statistics;

pub use self::{
    distance::{Distance, ping_pong},
    machine::{locked, machine},
    others::{Watch, processor_time},
    statistics::{figure, max, median, min},
};
