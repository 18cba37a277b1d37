//! A URL as a handler of a configuration.

use std::{sync::Arc, time::Duration};

use greenroom_config::{AnyOptions, At, Listing};

use super::{HttpFactory, HttpOptions};
use crate::{
    handler::{HandlerKind, Makes, OpenHandler, handler},
    http::signature::check_secrets,
    kind::Live,
    stand_in::StandIn,
};

/// Its line in the registry.
pub const HANDLER: Listing<dyn HandlerKind> =
    handler::<HttpOptions>("http", "Posts the event to a URL, as CloudEvents over HTTP.").live();

impl HandlerKind for HttpOptions {
    fn makes(&self) -> Makes {
        Makes::Answers
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.timeout)
    }

    fn needs_share(&self) -> Option<&'static str> {
        self.signature.as_ref().map(|_| "signature")
    }

    fn status(&self) -> Option<&[(String, String)]> {
        Some(&self.status)
    }

    fn reach(&self, at: &mut At<'_>) {
        if let Some(tls) = &self.tls {
            tls.reach(&mut at.inside("tls"));
        }
        if let Some(Err(why)) = self.signature.as_ref().map(|found| check_secrets(&found.secrets)) {
            let help = "for example `{\"acme\": \"whsec_..\"}`; paths start at the directory of the configuration file";
            at.error("signature.secrets", why, help);
        }
    }

    fn open(&self) -> Result<OpenHandler, String> {
        let factory = Arc::new(HttpFactory::new(self)?);
        let live = Arc::downgrade(&factory) as _;
        Ok(OpenHandler { factory, live: Some(live) })
    }

    fn stand_in(&self, answers: StandIn) -> Result<OpenHandler, String> {
        HttpFactory::standing_in(self, answers).map(OpenHandler::fixed)
    }
}

impl Live for HttpFactory {
    fn reconfigure(&self, wanted: &dyn AnyOptions) -> Result<bool, String> {
        let wanted = wanted.as_any().downcast_ref::<HttpOptions>();
        wanted.map_or(Ok(false), |wanted| HttpFactory::reconfigure(self, wanted))
    }
}
