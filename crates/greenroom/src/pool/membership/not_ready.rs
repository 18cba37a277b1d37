//! Why a wait for workers ended before they run.

/// Fewer workers run than the caller waited for.
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
    /// The number of workers that the caller waited for.
    pub wanted: usize,
    /// The number of workers that run.
    pub live: usize,
    /// The error of the start that failed last, whatever its slot. `None` if none has failed since
    /// the pool was spawned.
    pub last_error: Option<String>,
    /// The pool is stopping or has stopped: no more will start.
    pub stopped: bool,
}
