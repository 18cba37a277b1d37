//! What the engine promises, seen from outside: in-memory sources, outputs and dead letters, on virtual time.

#![expect(clippy::unwrap_used, reason = "all of this is tests, the parts that they share included")]

mod counts;
mod drain;
mod failing_parts;
mod inputs;
mod isolation;
mod live;
mod outage;
mod random_runs;
mod retries;
mod router;
mod routing;
mod support;
