//! Calls: how they end (A06, A08, A09), what forwarding keeps (A07), and calls of several workers
//! (P10 to P12).

mod deadlocks;
mod desk;
mod ends;
mod errors;
mod forwarding;
mod gather;
mod handoff;
mod replies;
