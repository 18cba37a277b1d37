//! Running random programs: as many as the environment says, each on its own clock.

use std::{str::FromStr, time::Duration};

use proptest::test_runner::Config;

use crate::quiet;

/// The value of an environment variable, such as `GREENROOM_PROGRAMS`.
pub(crate) fn from_env<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// Tries `GREENROOM_PROGRAMS` programs, or 150.
pub(crate) fn config() -> Config {
    Config {
        cases: from_env("GREENROOM_PROGRAMS").unwrap_or(150),
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..Config::default()
    }
}

/// Runs a program on virtual time. `None` if it has not ended within this time: a wake-up or an
/// outcome was lost.
pub(crate) fn run<T>(limit: Duration, program: impl Future<Output = T>) -> Option<T> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("there is a runtime");
    quiet::during(|| runtime.block_on(async { tokio::time::timeout(limit, program).await.ok() }))
}
