//! Limits that the system sets: on the size of files (`ulimit -f`), which any command that writes a
//! store may meet, and on open files (`ulimit -n`).

use std::io;

/// Has a write beyond the limit fail, as on a full disk. Unhandled, the signal SIGXFSZ would end
/// the process without a word. Processes that this one starts have it unhandled again.
///
/// # Errors
/// The system does not let the signal be handled.
#[cfg(unix)]
pub(crate) fn take_as_full_disk() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    // The handler stays when this runtime, which nothing runs on, is dropped.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

#[cfg(not(unix))]
pub(crate) fn take_as_full_disk() -> io::Result<()> {
    Ok(())
}

/// Lets the process have as many open files as it is allowed to: the limit that is usual, 1,024, is
/// for programs that cannot name more.
#[cfg(unix)]
pub(crate) fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // It also works with fewer.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(not(unix))]
pub(crate) fn raise_open_files() {}
