//! One message to several workers: broadcast and split-join (actors-and-pools.md, P10 to P12).

mod broadcast;
mod crew;
mod envelopes;
mod events;
mod split_join;
