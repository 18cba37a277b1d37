//! One message to several workers: broadcast, split-join and hedged calls (actors-and-pools.md, P10
//! to P12).

mod broadcast;
mod crew;
mod envelopes;
mod events;
mod hedged;
mod split_join;
