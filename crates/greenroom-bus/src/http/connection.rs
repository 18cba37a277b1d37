//! A target, and the client that carries events there.

use std::{
    error::Error,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use reqwest::{Client, ClientBuilder, Request, Response, header::HeaderMap, redirect};
use tokio::time::Instant;

use super::{
    config::TargetConfig,
    credentials::{self, Identification},
    kept::OpenedConnections,
    resolver::{self, GuardedResolver},
    stand_in::{self, Unanswered},
    status::On,
    target::{Target, causes},
    tls,
};
use crate::stand_in::StandIn;

/// A target with a client, which keeps its connections. A copy shares them.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) target: Target,
    pub(crate) link: Arc<Link>,
    /// Answers in place of the target: nothing is connected to.
    pub(crate) stand_in: Option<StandIn>,
}

/// A client, and what is the same in all its requests.
#[derive(Debug)]
pub(crate) struct Link {
    client: Client,
    /// Which connections the client has opened.
    opened: OpenedConnections,
    /// A client that keeps no connection, for retries.
    fresh: Client,
    /// Credentials and configured headers, marked as secret so that no log shows their values.
    pub(crate) headers: HeaderMap,
    /// Whether requests carry credentials.
    pub(crate) identification: Identification,
    timeout: Duration,
    /// The log has a warning of a header that is not understood.
    pub(crate) warned: AtomicBool,
}

/// Why there is no answer, or half of one.
#[derive(Debug)]
pub(crate) struct NoAnswer {
    /// The row of the status map that it is.
    pub(crate) on: On,
    /// The error, for an operator.
    pub(crate) text: String,
    /// The target may have had the event. False if it certainly has not.
    pub(crate) reached: bool,
    /// One of the two sides does not trust the certificate of the other: an operator has to correct
    /// that.
    pub(crate) untrusted: bool,
    /// The address of the target may not be reached.
    pub(crate) refused: bool,
}

impl Connection {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// A sentence for the operator if the URL or a header cannot be used, a limit is 0, or TLS
    /// cannot be set up. It never repeats a part that may be secret.
    pub(crate) fn new(config: &TargetConfig) -> Result<Self, String> {
        Self::build(config, None)
    }

    /// Like [`new`](Self::new), with a stand-in, if there is one, in place of the target.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn build(config: &TargetConfig, stand_in: Option<StandIn>) -> Result<Self, String> {
        let mut target = Target::parse(&config.url)?;
        let is_https = target.url.scheme() == "https" && stand_in.is_none();
        let builder = || builder(config, is_https);
        let has_query = target.url.query().is_some();
        let link = Link::new(config, builder, |client| target.take_credentials(client), has_query)?;
        Ok(Self { target, link: Arc::new(link), stand_in })
    }

    /// Sends it over a kept connection, if there is one. If that turns out to be closed before the
    /// head of an answer arrived, sends it once more, over a new one: a target may close a
    /// connection at any time, and that says nothing about the request.
    pub(crate) async fn send(&self, request: Request) -> Result<Response, NoAnswer> {
        if let Some(stand_in) = &self.stand_in {
            return stand_in::response(stand_in.answer()).map_err(|none| self.stands_silent(none));
        }
        let link = &*self.link;
        let (again, before) = (request.try_clone(), link.opened.count());
        let started = Instant::now();
        let sent = match (link.opened.execute(&link.client, request).await, again) {
            (Err(error), Some(mut again)) if link.opened.is_lost_kept(&error, before) => {
                *again.timeout_mut() = Some(link.timeout.saturating_sub(started.elapsed()));
                link.fresh.execute(again).await
            }
            (sent, _) => sent,
        };
        sent.map_err(|error| self.no_answer(error))
    }

    fn stands_silent(&self, Unanswered(on, why, reached): Unanswered) -> NoAnswer {
        let text = format!("http: {why} {} (a stand-in)", self.target.shown);
        NoAnswer { on, text, reached, untrusted: false, refused: false }
    }

    pub(crate) fn no_answer(&self, error: reqwest::Error) -> NoAnswer {
        let shown = &self.target.shown;
        let is_connecting = error.is_connect();
        if error.is_timeout() && !is_connecting {
            let text = format!("http: no answer from {shown} within {:?}", self.link.timeout);
            let (untrusted, refused) = (false, false);
            return NoAnswer { on: On::Timeout, text, reached: true, untrusted, refused };
        }
        if let Some(refused) = resolver::refused(&error) {
            return NoAnswer {
                on: On::Connection,
                text: format!("http: {refused}"),
                reached: false,
                untrusted: false,
                refused: true,
            };
        }
        // The one failure after which the target certainly has nothing of the event.
        let what = if is_connecting { "cannot connect to" } else { "lost the connection to" };
        let untrusted = is_untrusted(&error);
        let mut text = format!("http: {what} {shown}: {}", causes(&error.without_url()));
        if untrusted {
            text.push_str("; check the certificates on both sides, and `tls` in the configuration");
        }
        NoAnswer { on: On::Connection, text, reached: !is_connecting, untrusted, refused: false }
    }
}

impl Link {
    /// For URLs that come with the events, whose names go through this resolver.
    ///
    /// # Errors
    /// Like [`Connection::new`].
    pub(super) fn guarded(
        config: &TargetConfig,
        is_https: bool,
        resolver: &Arc<GuardedResolver>,
    ) -> Result<Arc<Self>, String> {
        let builder = || Ok(builder(config, is_https)?.dns_resolver(resolver.clone()));
        Self::new(config, builder, |_| Ok(HeaderMap::new()), false).map(Arc::new)
    }

    /// `in_url` takes the credentials out of the URL.
    fn new(
        config: &TargetConfig,
        builder: impl Fn() -> Result<ClientBuilder, String>,
        in_url: impl FnOnce(&Client) -> Result<HeaderMap, String>,
        has_query: bool,
    ) -> Result<Self, String> {
        for (name, time) in
            [("timeout", config.timeout), ("connect_timeout", config.connect_timeout)]
        {
            if time.is_zero() {
                return Err(format!("http: `{name}` is 0; give the longest time that it may take"));
            }
        }
        let opened = OpenedConnections::default();
        let client = built(builder()?.connector_layer(opened.clone()))?;
        let fresh = built(builder()?.pool_max_idle_per_host(0))?;
        let headers = credentials::headers(in_url(&client)?, config)?;
        let identification = Identification::detect(&headers, has_query, config);
        let (timeout, warned) = (config.timeout, AtomicBool::new(false));
        Ok(Self { client, opened, fresh, headers, identification, timeout, warned })
    }
}

/// True if a certificate was refused, by either side.
fn is_untrusted(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.downcast_ref().is_some_and(is_about_certificates) {
            return true;
        }
        let inner = error.downcast_ref().and_then(std::io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    false
}

fn is_about_certificates(error: &rustls::Error) -> bool {
    use rustls::AlertDescription as Alert;
    match error {
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => true,
        rustls::Error::AlertReceived(alert) => matches!(
            alert,
            Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateRevoked
                | Alert::CertificateExpired
                | Alert::CertificateUnknown
                | Alert::UnknownCA
                | Alert::AccessDenied
                | Alert::CertificateRequired
        ),
        _ => false,
    }
}

/// A client: connections are kept, HTTP/2 is used where the server offers it, redirects are not
/// followed, and the environment's proxies are not used: events go where the configuration says.
///
/// # Errors
/// A sentence for the operator, where TLS cannot be set up on this machine.
fn builder(config: &TargetConfig, is_https: bool) -> Result<ClientBuilder, String> {
    let builder = Client::builder()
        .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .no_proxy()
        .timeout(config.timeout)
        .connect_timeout(config.connect_timeout.min(config.timeout));
    tls::configure(builder, is_https, &config.tls)
}

fn built(builder: ClientBuilder) -> Result<Client, String> {
    builder.build().map_err(|error| format!("http: the client cannot be built: {}", causes(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn u01_a_client_can_be_built_for_https() {
        let config = TargetConfig { url: "https://localhost/".into(), ..TargetConfig::default() };
        Connection::new(&config).unwrap();
    }
}
