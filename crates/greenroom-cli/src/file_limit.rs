//! Limits of the system: on the size of files (`ulimit -f`), which any command that writes a store
//! may reach, and on open files (`ulimit -n`).

use std::io;

/// Makes a write beyond the limit fail, as on a full disk. By default, the signal SIGXFSZ would end
/// the process without a message. Child processes have the default again.
///
/// # Errors
/// The system does not allow the signal to be handled.
pub(crate) fn take_as_full_disk() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    // The handler stays after this runtime, which runs nothing, is dropped.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

/// Raises the number of open files to the maximum allowed: the usual limit, 1,024, is for programs
/// that cannot handle more.
pub(crate) fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // It also works with fewer.
    let _ = setrlimit(Resource::Nofile, limit);
}
