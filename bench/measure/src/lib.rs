//! What every measurement has beside it: how far the cores were apart, what others used of them,
//! and which machine it was. A figure without these is worth nothing on a machine that is shared.

mod distance;
mod machine;
mod options;
mod others;
mod statistics;

pub use self::{
    distance::{Distance, ping_pong},
    machine::{locked, machine},
    options::Options,
    others::{Watch, processor_time},
    statistics::{figure, max, median, min},
};
