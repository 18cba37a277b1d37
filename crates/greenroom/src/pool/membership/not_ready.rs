//! Why a wait for workers is over before they run.

/// Not as many workers run as were waited for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{live} of {wanted} workers run{}{}",
    if *stopped { ", and the pool is stopping" } else { "" },
    match last_error {
        Some(error) => format!("; the last start that failed: {error}"),
        None => String::new(),
    }
)]
#[non_exhaustive]
pub struct NotReady {
    /// How many were waited for.
    pub wanted: usize,
    /// How many run.
    pub live: usize,
    /// The error of the start that failed last, whatever its slot. `None` if none has failed since
    /// the pool was spawned.
    pub last_error: Option<String>,
    /// The pool is stopping or has stopped: no more will start.
    pub stopped: bool,
}
