//! A URL as a handler of a configuration.

use std::{sync::Arc, time::Duration};

use greenroom_config::{
    AnyOptions, At, Listing, Secret, duration, flag, group, options, size,
    units::{DAY_MS, GIB},
    url, variables, word,
};

use super::{HttpConfig, HttpFactory, Mode};
use crate::{
    handler::{HandlerKind, Makes, OpenHandler, handler},
    http::{Auth, HttpTls, Posting, TargetConfig},
    kind::Live,
    stand_in::StandIn,
};

/// Its line in the registry.
pub const HANDLER: Listing<dyn HandlerKind> =
    handler::<HttpOptions>("http", "Posts the event to a URL, as CloudEvents over HTTP.").live();

options! {
    /// 2xx settles; 408, 425, 429, 5xx, a timeout or a refused connection is tried again; 401
    /// and 403 pause the handler; any other answer makes a dead letter. A reload changes all of
    /// it.
    pub struct HttpOptions = "http", then HttpOptions::checked {
        /// Where to post to.
        url: Secret<String> = url().secret();
        /// Headers added to each request. `ce-*`, `content-type` and the like are written by
        /// greenroom and cannot be set.
        headers: Secret<Vec<(String, String)>> = variables().secret().default("{}");
        /// How the target is told who posts. Without it, by nothing but the URL and the headers.
        auth: Option<Auth> = group().optional();
        /// Whom to trust, and what to show. Without it, the authorities that the system trusts.
        tls: Option<HttpTls> = group().optional();
        /// How long one attempt may take.
        timeout: Duration = duration(1..=DAY_MS).default("5s");
        /// The longest answer with events that is read; a longer one makes a dead letter. An
        /// answer without events may have any length.
        max_response: u64 = size(1024..=GIB).default("16MiB");
        /// `binary` sends the data as the body and the attributes as `ce-` headers;
        /// `structured` sends the event as JSON.
        mode: Mode = word().default("binary");
        /// With `true`, an event that was accepted goes to the outputs when the answer holds no
        /// event.
        pass: bool = flag().default("false");
        /// What follows from an answer, where that is to differ from the usual: a status
        /// (`404`), a class (`5xx`), a range (`520..529`), `timeout` or `connection`, each with
        /// `settle`, `retry`, `pause`, `reject` or `park`. The narrowest decides. `greenroom
        /// explain-status` prints what holds.
        status: Vec<(String, String)> = variables().default("{}");
    }
}

impl HttpOptions {
    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        self.posting().check(at);
        Some(self)
    }

    fn posting(&self) -> Posting<'_> {
        Posting {
            url: &self.url,
            headers: &self.headers,
            auth: self.auth.as_ref(),
            tls: self.tls.as_ref(),
            status: &self.status,
        }
    }

    /// As the handler has it, with what its files hold.
    fn config(&self) -> Result<HttpConfig, String> {
        let posting = self.posting();
        let TargetConfig { url, headers, auth, tls, timeout, .. } = posting.target(self.timeout)?;
        Ok(HttpConfig {
            url,
            headers,
            auth,
            tls,
            timeout,
            max_response: usize::try_from(self.max_response).unwrap_or(usize::MAX),
            mode: self.mode,
            pass: self.pass,
            status: posting.status_map()?,
            ..HttpConfig::default()
        })
    }
}

impl HandlerKind for HttpOptions {
    fn makes(&self) -> Makes {
        Makes::Answers
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.timeout)
    }

    fn status(&self) -> Option<&[(String, String)]> {
        Some(&self.status)
    }

    fn reach(&self, at: &mut At<'_>) {
        if let Some(tls) = &self.tls {
            tls.reach(&mut at.inside("tls"));
        }
    }

    fn open(&self) -> Result<OpenHandler, String> {
        let factory = Arc::new(HttpFactory::new(self.config()?)?);
        let live = Arc::downgrade(&factory) as _;
        Ok(OpenHandler { factory, live: Some(live) })
    }

    /// Certificates are not read: nothing is connected to.
    fn stand_in(&self, answers: StandIn) -> Result<OpenHandler, String> {
        let config = Self { tls: None, ..self.clone() }.config()?;
        HttpFactory::standing_in(config, answers).map(OpenHandler::fixed)
    }
}

impl Live for HttpFactory {
    fn reconfigure(&self, wanted: &dyn AnyOptions) -> Result<bool, String> {
        let wanted = wanted.as_any().downcast_ref::<HttpOptions>();
        wanted.map_or(Ok(false), |wanted| HttpFactory::reconfigure(self, wanted.config()?))
    }
}
