//! Time: every pool measures waits, and a stop or a call with a limit waits for an instant, on a
//! runtime that has a clock for that. tokio panics if it has none, so that is detected before
//! anything begins.

use std::{cell::Cell, panic::catch_unwind, time::Duration};

use tokio::{
    runtime::{Handle, Id},
    time::{Instant, Timeout, timeout_at},
};

use crate::SpawnError;

/// The caller's runtime, for something with this name that is to be spawned there.
pub(crate) fn current(what: &str) -> Result<Handle, SpawnError> {
    let runtime = Handle::try_current();
    let runtime = runtime.map_err(|_| SpawnError::NoRuntime { pool: what.to_owned() })?;
    match has_time(&runtime) {
        true => Ok(runtime),
        false => Err(SpawnError::NoTime { pool: what.to_owned() }),
    }
}

/// True if tasks of the caller's runtime can sleep. tokio reveals that only by a panic, so each
/// thread remembers the result for its runtime.
fn has_time(current: &Handle) -> bool {
    thread_local! {
        static KNOWN: Cell<Option<(Id, bool)>> = const { Cell::new(None) };
    }
    match KNOWN.get() {
        Some((runtime, timed)) if runtime == current.id() => timed,
        _ => {
            let timed = catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_ok();
            KNOWN.set(Some((current.id(), timed)));
            timed
        }
    }
}

/// Waits until `deadline` at most, on the caller's runtime or, if that has no time or there is
/// none, on the `pool`'s.
pub(crate) fn until<F: Future>(pool: &Handle, deadline: Instant, future: F) -> Timeout<F> {
    let lacks_time = !Handle::try_current().is_ok_and(|current| has_time(&current));
    let _clock = lacks_time.then(|| pool.enter());
    timeout_at(deadline, future)
}

/// Like `until`, for at most this long.
pub(crate) fn within<F: Future>(pool: &Handle, limit: Duration, future: F) -> Timeout<F> {
    until(pool, later(limit), future)
}

/// This long from now, or practically never: a wait may be given as endless.
pub(crate) fn later(after: Duration) -> Instant {
    const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    Instant::now() + after.min(FOREVER)
}
