//! Urgent before normal (A03), what a delivery carries (A02), and sends that wait no longer than
//! told (A05).

mod bounds;
mod envelopes;
mod scribe;
mod urgent;
mod waits;
