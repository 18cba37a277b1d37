//! Kafka as an input and an output, against a broker.

#![expect(clippy::unwrap_used, reason = "all of this is tests, the parts that they share included")]

mod broker;
mod broker_restart;
