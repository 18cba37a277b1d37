//! Kafka for Greenroom.

pub mod commit_set;
