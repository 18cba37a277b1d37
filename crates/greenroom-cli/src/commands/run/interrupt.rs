//! Signals: the first drains, the second stops, and a thread makes sure that the process ends.
//! SIGHUP reloads.

use std::{
    io::Write,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use greenroom_bus::{engine::Control, handler::exec::kill_all};
use tokio::{signal, task::JoinHandle};

use crate::run::reload::Reload;

/// How long after its deadline a stop may take before the process is ended (G05).
const GRACE: Duration = Duration::from_secs(1);

/// Watches for signals until it is dropped.
pub(super) struct Watch([JoinHandle<()>; 2]);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Starts to watch. Signals since `signals` and `hangups` were created count.
pub(super) fn watch(
    control: Control,
    deadline: Duration,
    (mut signals, hangups): (Signals, Hangups),
    reload: Arc<Reload>,
) -> Watch {
    let reloading = tokio::spawn(reload_on_hangup(hangups, reload));
    let watching = tokio::spawn(async move {
        signals.next().await;
        let overdue = end_by(deadline + GRACE);
        control.drain();
        tracing::info!(
            "draining: no more input is read, events in hand are finished; interrupt again to stop now"
        );
        signals.next().await;
        tracing::warn!("stopping now: the remaining events are refused");
        drop(overdue);
        let _overdue = end_by(GRACE);
        control.stop_now();
        std::future::pending::<()>().await;
    });
    Watch([watching, reloading])
}

fn unhandled(error: std::io::Error) -> String {
    format!("cannot handle signals: {error}")
}

/// Rereads the configuration on every SIGHUP, on a thread that may read files.
async fn reload_on_hangup(mut hangups: Hangups, reload: Arc<Reload>) {
    loop {
        hangups.next().await;
        let reload = reload.clone();
        // The log has the result.
        drop(tokio::task::spawn_blocking(move || reload.now()).await);
    }
}

/// Every SIGHUP from now on, which would otherwise end the process.
pub(super) struct Hangups(signal::unix::Signal);

impl Hangups {
    /// # Errors
    /// The system does not allow the signal to be handled.
    pub(super) fn new() -> Result<Self, String> {
        let signal = signal::unix::signal(signal::unix::SignalKind::hangup());
        signal.map(Self).map_err(unhandled)
    }

    async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Ends the process after this time, unless the returned sender is dropped before. It uses its own
/// thread, because handlers that block may hold every thread on which a timer could fire.
fn end_by(limit: Duration) -> mpsc::Sender<()> {
    let (cancel, cancelled) = mpsc::channel::<()>();
    let overdue = move || {
        if cancelled.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = writeln!(
                std::io::stderr(),
                "error: the run did not end in time; unsettled events are refused"
            );
            kill_all();
            std::process::exit(3);
        }
    };
    // Without a thread there is no watchdog; the deadline itself still holds.
    drop(thread::Builder::new().name("watchdog".to_owned()).spawn(overdue));
    cancel
}

/// Every SIGINT and SIGTERM from now on, which would otherwise end the process.
pub(super) struct Signals {
    interrupt: signal::unix::Signal,
    terminate: signal::unix::Signal,
}

impl Signals {
    /// # Errors
    /// The system does not allow signals to be handled.
    pub(super) fn new() -> Result<Self, String> {
        use signal::unix::{SignalKind, signal};
        let interrupt = signal(SignalKind::interrupt()).map_err(unhandled)?;
        let terminate = signal(SignalKind::terminate()).map_err(unhandled)?;
        Ok(Self { interrupt, terminate })
    }

    /// Waits for a signal.
    ///
    /// # Cancel safety
    /// A dropped future has consumed none.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
