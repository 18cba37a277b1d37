//! Shared by the connections of an intake.

use std::sync::{Arc, atomic::AtomicBool};

use parking_lot::RwLock;
use rustls::ServerConfig;
use tokio::sync::watch;

use super::{
    access::Access, answers::Answers, body::BodyBudget, guard::Guard, settings::HttpSettings,
    tls::ServerTls,
};
use crate::{
    http::server::{Connections, within_descriptors},
    source::log::EventLog,
};

/// Connections take at most this part of the descriptors that the process may open.
pub(super) const SHARE: usize = 2;

/// Shared by all connections.
pub(super) struct Shared {
    pub(super) name: String,
    /// Where events are posted to; `/hooks/*` is every path below `/hooks/`.
    pub(super) path: String,
    pub(super) log: Arc<dyn EventLog>,
    pub(super) connections: Arc<Connections>,
    pub(super) budget: Arc<BodyBudget>,
    pub(super) answers: Answers,
    pub(super) closing: watch::Sender<bool>,
    /// The log has said that it can store nothing any more.
    pub(super) failed: AtomicBool,
    /// Replaced as a whole by a reload.
    pub(super) current: RwLock<Arc<CurrentSettings>>,
}

/// Settings, with values derived from them once.
pub(super) struct CurrentSettings {
    pub(super) settings: HttpSettings,
    pub(super) guard: Guard,
    pub(super) tls: Option<Arc<ServerConfig>>,
}

impl CurrentSettings {
    pub(super) fn new(settings: HttpSettings) -> Result<Self, String> {
        let access = settings.access.as_ref();
        access.map_or(Ok(()), Access::check).map_err(|why| format!("`auth`: {why}"))?;
        let guard = Guard::new(access)?;
        let tls = settings.tls.as_ref().map(ServerTls::server).transpose();
        let tls = tls.map_err(|why| format!("in `tls`, {why}"))?;
        Ok(Self { settings, guard, tls })
    }
}

impl Shared {
    /// # Errors
    /// Settings that cannot be used.
    pub(super) fn new(
        name: String,
        path: &str,
        settings: HttpSettings,
        log: Arc<dyn EventLog>,
    ) -> Result<Self, String> {
        let most = within_descriptors(settings.connections, SHARE);
        Ok(Self {
            name,
            path: path.to_owned(),
            log,
            connections: Connections::up_to(most),
            budget: Arc::default(),
            answers: Answers::default(),
            closing: watch::Sender::new(false),
            failed: false.into(),
            current: RwLock::new(Arc::new(CurrentSettings::new(settings)?)),
        })
    }

    pub(super) fn current(&self) -> Arc<CurrentSettings> {
        self.current.read().clone()
    }

    pub(super) fn replace(&self, current: Arc<CurrentSettings>) {
        *self.current.write() = current;
    }

    pub(super) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }
}
