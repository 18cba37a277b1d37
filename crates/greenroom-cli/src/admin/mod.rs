//! The admin listener, which queries and controls a running greenroom by JSON over HTTP; and the
//! dashboard, a page that uses it.
//!
//! ```text
//! greenroom why, curl ──▶ thread "admin" ──▶ guard ──▶ routes ──▶ Control (locks for a moment, no queue, no worker)
//! ```
//!
//! It has its own thread and runtime, so it answers while every worker computes, blocks its thread
//! or is stuck, and while every queue is full. Slow work (reading dead letters) is done on further
//! threads. Connections are bounded in number, and each in time and size ([`serve`]).

mod advice;
mod answer;
mod audit;
mod daemon;
mod events;
mod figures;
mod guard;
mod health;
mod history;
mod keys;
mod letters;
mod live;
mod metrics;
mod openapi;
mod operations;
mod page;
mod query;
mod readers;
mod reloaded;
mod routes;
mod sample;
mod sentence;
mod serve;
mod shares;
mod site;
mod stored;
mod table;
#[cfg(test)]
mod tests;
mod views;
mod workers;

use std::{convert::Infallible, io, net::TcpListener, sync::Arc, thread};

use greenroom_bus::http::server::within_descriptors;
use tokio::sync::oneshot;

use self::guard::Guard;
pub(crate) use self::{
    answer::{Answer, Json, Refusal},
    daemon::Daemon,
    figures::Figures,
    history::History,
    query::Query,
    site::Site,
};
use crate::config::AdminConfig;

/// More connections than operators and probes need at once.
const MOST: usize = 64;

/// The listener uses at most this part of the descriptors that the process may open: the others are
/// for inputs, outputs and handlers.
const SHARE: usize = 8;

/// A bound address that is not served yet.
pub(crate) struct Listener {
    listener: TcpListener,
    guard: Guard,
}

/// A listener that answers until this is dropped.
pub(crate) struct Open {
    /// Dropping it ends the server.
    _end: oneshot::Sender<()>,
}

impl Listener {
    /// Binds the address.
    ///
    /// # Errors
    /// The error, its place, and the next step.
    pub(crate) fn bind(config: &AdminConfig) -> Result<Self, String> {
        let at = config.listen.0;
        let next = "choose another address or port under `admin.listen`, or leave `admin` out";
        let taken = |error| format!("admin: cannot listen at {at}: {error}; {next}");
        let listener = TcpListener::bind(at).map_err(taken)?;
        listener.set_nonblocking(true).map_err(taken)?;
        Ok(Self { listener, guard: Guard::new(config) })
    }

    /// Starts to answer, on a separate thread. The log line comes only now: its reader may send
    /// signals.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn open(self, daemon: Daemon) -> Result<Open, String> {
        let no_thread = |error| format!("admin: no thread for the listener: {error}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(no_thread)?;
        let address = self.listener.local_addr();
        let address =
            address.map_err(|error| format!("admin: the listener has no address: {error}"))?;
        tracing::info!(%address, "the admin listener is open");
        tracing::info!("the dashboard is at http://{address}/");
        let (end, ended) = oneshot::channel();
        let serve = move || {
            runtime.block_on(async move {
                tokio::select! {
                    Err(error) = self.serve(daemon) => {
                        tracing::error!(%error, "the admin listener has ended");
                    }
                    _ = ended => {}
                }
            });
            // Readers of files are not waited for.
            runtime.shutdown_background();
        };
        thread::Builder::new().name("admin".to_owned()).spawn(serve).map_err(no_thread)?;
        Ok(Open { _end: end })
    }

    async fn serve(self, daemon: Daemon) -> io::Result<Infallible> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let daemon = Arc::new(daemon);
        tokio::spawn(metrics::keep_looking(daemon.clone()));
        let routes = routes::all(daemon, Arc::new(self.guard));
        Ok(serve::serve(listener, routes, within_descriptors(MOST, SHARE)).await)
    }
}
