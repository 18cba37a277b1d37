//! Urgent before normal (A03), the metadata of a delivery (A02), and sends with a limited wait
//! (A05).

mod bounds;
mod envelopes;
mod scribe;
mod urgent;
mod waits;
