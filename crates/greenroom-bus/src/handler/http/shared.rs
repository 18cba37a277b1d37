//! Shared by all workers of one target.

mod attempt;

use std::{borrow::Cow, sync::Arc};

use super::config::HttpConfig;
use crate::{
    event::Event,
    http::{connection::Connection, event_url::EventTargets, signature::Signer},
    stand_in::StandIn,
};

/// Shared by all workers: made once, never changed.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: HttpConfig,
    aim: Aim,
    signer: Option<Signer>,
}

/// Where events are posted.
#[derive(Debug)]
enum Aim {
    One(Connection),
    /// Where each event says.
    Each(EventTargets),
}

impl Shared {
    pub(super) fn new(config: HttpConfig, stand_in: Option<StandIn>) -> Result<Arc<Self>, String> {
        let aim = match &config.event_url {
            None => Aim::One(Connection::build(&config.target(), stand_in)?),
            Some(url) => Aim::Each(EventTargets::new(&config.target(), url, stand_in)?),
        };
        let signer = config.secrets.as_deref().map(Signer::open).transpose();
        let signer = signer.map_err(|why| format!("http: in `signature`, {why}"))?;
        Ok(Arc::new(Self { config, aim, signer }))
    }

    /// The target of an event.
    ///
    /// # Errors
    /// The event names none, or one that is not allowed.
    fn target(&self, event: &Event) -> Result<Cow<'_, Connection>, String> {
        match &self.aim {
            Aim::One(connection) => Ok(Cow::Borrowed(connection)),
            Aim::Each(targets) => targets.target(event).map(Cow::Owned),
        }
    }
}
