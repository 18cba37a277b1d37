//! Where posts come in: open from the first pull of its source, until that is dropped.

use std::{
    fmt,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{task::JoinHandle, time::timeout};

use super::{
    serve,
    settings::HttpSettings,
    shared::{CurrentSettings, SHARE, Shared},
};
use crate::{
    http::server::within_descriptors,
    source::{SourceError, log::EventLog},
};

/// Binds an address. Connections wait and are not answered yet.
///
/// # Errors
/// The address is in use, or not of this machine, with the next step.
pub fn listen(at: SocketAddr) -> Result<TcpListener, SourceError> {
    let taken = |error| {
        let next = "stop what listens there, or choose another address or port";
        SourceError::new(format!("http:{at}"), format!("cannot listen: {error}; {next}"))
    };
    let listener = TcpListener::bind(at).map_err(taken)?;
    listener.set_nonblocking(true).map_err(taken)?;
    Ok(listener)
}

/// A server that appends posted events to a log.
pub struct Intake {
    shared: Arc<Shared>,
    address: SocketAddr,
    state: Mutex<State>,
}

enum State {
    Bound(TcpListener),
    Open(JoinHandle<()>),
    Closed,
}

impl Intake {
    /// A server at `listener`, which [`listen`] has made. Events are posted to `path`, or to any
    /// path below it if it ends in `/*`, and appended to `log`.
    ///
    /// # Errors
    /// Settings that cannot be used, or a listener without an address.
    pub fn new(
        listener: TcpListener,
        path: &str,
        settings: HttpSettings,
        log: Arc<dyn EventLog>,
    ) -> Result<Self, SourceError> {
        let address = listener.local_addr();
        let address = address.map_err(|error| SourceError::new("http", error.to_string()))?;
        let name = format!("http:{address}{path}");
        let shared = Shared::new(name.clone(), path, settings, log)
            .map_err(|why| SourceError::new(name, why))?;
        let state = Mutex::new(State::Bound(listener));
        Ok(Self { shared: Arc::new(shared), address, state })
    }

    /// Its name in reports.
    pub fn describe(&self) -> &str {
        &self.shared.name
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests it has answered with each status, by status, without zeros; requests for
    /// its health included. Input that is not HTTP is not counted.
    pub fn answers(&self) -> Vec<(u16, u64)> {
        self.shared.answers.counts()
    }

    /// Answers from now on, on the runtime that this is called on. Done by the first pull of its
    /// source; a second time changes nothing.
    pub fn open(&self) {
        let mut state = self.state.lock();
        if !matches!(*state, State::Bound(_)) {
            return;
        }
        let State::Bound(listener) = std::mem::replace(&mut *state, State::Closed) else { return };
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => {
                tracing::info!(input = self.shared.name, address = %self.address, "events can be posted");
                *state = State::Open(tokio::spawn(serve::serve(listener, self.shared.clone())));
            }
            Err(error) => {
                tracing::error!(input = self.shared.name, %error, "no events can be posted")
            }
        }
    }

    /// Accepts nothing more: new connections are refused, and bodies and requests that come in are
    /// answered 503. Events that are being stored are stored and answered.
    pub fn close(&self) {
        self.shared.closing.send_replace(true);
        let mut state = self.state.lock();
        if matches!(*state, State::Bound(_)) {
            *state = State::Closed;
        }
    }

    /// Closes, and waits until all requests under way are answered, but no longer than this.
    pub async fn closed(&self, within: Duration) {
        self.close();
        let serving = std::mem::replace(&mut *self.state.lock(), State::Closed);
        if let State::Open(serving) = serving {
            // Over time, its connections end with the process.
            let _ = timeout(within, serving).await;
        }
    }

    /// Uses other settings from the next request on; certificates apply from the next connection
    /// on. Returns false if they are the same.
    ///
    /// # Errors
    /// Why they cannot be used; those from before hold.
    pub fn reconfigure(&self, settings: HttpSettings) -> Result<bool, String> {
        let is = self.shared.current();
        if is.settings == settings {
            return Ok(false);
        }
        if is.settings.tls.is_some() != settings.tls.is_some() {
            return Err("TLS can only be switched on or off before the start".to_owned());
        }
        let current = Arc::new(CurrentSettings::new(settings)?);
        let most = within_descriptors(current.settings.connections, SHARE);
        self.shared.connections.set_most(most);
        self.shared.replace(current);
        Ok(true)
    }
}

impl fmt::Debug for Intake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        self.close();
    }
}
