//! `greenroom run` with `telemetry.otlp`, and a receiver that reads what it sends.

mod endpoint;
mod receiver;
mod signals;
mod traces;

use crate::run::{daemon, server, stage};
