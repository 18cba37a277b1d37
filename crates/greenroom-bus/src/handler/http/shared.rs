//! Shared by all workers of one target.

mod attempt;

use std::{borrow::Cow, sync::Arc};

use super::HttpOptions;
use crate::{
    event::Event,
    http::{
        StatusMap, TargetConfig, connection::Connection, event_url::EventTargets, signature::Signer,
    },
    stand_in::StandIn,
};

/// Shared by all workers: made once, never changed.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: HttpOptions,
    /// With what its files held.
    pub(super) target: TargetConfig,
    pub(super) status: StatusMap,
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
    pub(super) fn new(
        options: &HttpOptions,
        target: TargetConfig,
        stand_in: Option<StandIn>,
    ) -> Result<Arc<Self>, String> {
        let aim = match options.url.event_url()? {
            None => Aim::One(Connection::build(&target, stand_in)?),
            Some(url) => Aim::Each(EventTargets::new(&target, &url, stand_in)?),
        };
        let signer = options.signature.as_ref().map(|signature| Signer::open(&signature.secrets));
        let signer = signer.transpose().map_err(|why| format!("http: in `signature`, {why}"))?;
        let status = options.posting().status_map()?;
        Ok(Arc::new(Self { options: options.clone(), target, status, aim, signer }))
    }

    /// The longest answer with events that is read.
    pub(super) fn max_response(&self) -> usize {
        usize::try_from(self.options.max_response).unwrap_or(usize::MAX)
    }

    /// The target of an event.
    ///
    /// # Errors
    /// The event names none, or one that is not allowed.
    fn connection(&self, event: &Event) -> Result<Cow<'_, Connection>, String> {
        match &self.aim {
            Aim::One(connection) => Ok(Cow::Borrowed(connection)),
            Aim::Each(targets) => targets.target(event).map(Cow::Owned),
        }
    }
}
