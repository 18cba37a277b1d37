//! What the engine promises, seen from outside: in-memory sources, outputs and dead letters, on virtual time.

mod counts;
mod drain;
mod failing_parts;
mod inputs;
mod isolation;
mod outage;
mod random_runs;
mod retries;
mod routing;
mod support;
