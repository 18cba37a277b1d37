//! Decisions on the size of a pool, based on its figures.
//!
//! ```text
//! pool ──sample──▶ autoscale ──change, if any──▶ pool
//! pool ──sample──▶ advisor ──advice──▶ operator
//! ```
//!
//! Nothing here knows a pool, an actor, a task or a clock: the caller builds the samples, passes
//! the time, and applies the changes. So each decision is tested on plain samples. The tasks that
//! do this for a pool are in `pool/controllers/`.
//!
//! | | sees | when | decides |
//! |---|---|---|---|
//! | [`Autoscaler`](autoscale::Autoscaler) | a [`Sample`](autoscale::Sample) | each second | the number of workers |
//! | [`Judge`](advisor::Judge) | the [`Figures`](advisor::Figures) of a period | every few minutes | the bound, and the number of workers |
//!
//! Limits on messages in flight are in `pool/limits/`: they see each outcome.

pub mod advisor;
pub mod autoscale;
mod peaks;
