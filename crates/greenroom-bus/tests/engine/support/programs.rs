//! Random programs, each in a thread and on a virtual clock of its own.

use std::{sync::mpsc, time::Duration};

use proptest::{
    prelude::*,
    test_runner::{RngSeed, TestRunner},
};
use tokio::runtime::{Builder, Runtime};

/// By the real clock. Programs take milliseconds; beside much other work, some have taken more than ten seconds.
const HANGS: Duration = Duration::from_secs(60);

/// Runs a program in a thread of its own: one that spins without virtual time passing is found by the real clock.
pub(crate) fn in_a_thread(
    run: impl FnOnce(&Runtime) -> Result<(), TestCaseError> + Send + 'static,
) -> Result<(), TestCaseError> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let _ = tell.send(run(&runtime.unwrap()));
    });
    told.recv_timeout(HANGS)
        .map_err(|error| TestCaseError::fail(format!("the run hangs or panicked: {error}")))?
}

/// As many as `GREENROOM_PROGRAMS` says, 500 unless it does, from the seed that `GREENROOM_SEED` names. A failure names the seed.
pub(crate) fn try_all<P: std::fmt::Debug>(
    programs: &impl Strategy<Value = P>,
    tried: impl Fn(P) -> Result<(), TestCaseError>,
) {
    let seed = from_environment("GREENROOM_SEED").unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        now.as_nanos() as u64
    });
    let config = ProptestConfig {
        cases: from_environment("GREENROOM_PROGRAMS").unwrap_or(500),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_time: 40_000,
        ..ProptestConfig::default()
    };
    quiet_on_purpose();
    if let Err(error) = TestRunner::new(config).run(programs, tried) {
        panic!("GREENROOM_SEED={seed}: {error}");
    }
}

/// Handlers and sources panic on purpose: programs run in threads without a name, tests in such with one.
fn quiet_on_purpose() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().name().is_some() {
                usual(panic);
            }
        }));
    });
}

fn from_environment<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}
