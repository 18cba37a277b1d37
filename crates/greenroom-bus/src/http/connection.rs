//! A target, and the client that carries events there.

use std::{error::Error, sync::atomic::AtomicBool, time::Duration};

use reqwest::{Client, ClientBuilder, Request, Response, header::HeaderMap, redirect};
use tokio::time::Instant;

use super::{
    config::TargetConfig,
    credentials::{self, Identification},
    kept::OpenedConnections,
    stand_in::{self, Unanswered},
    status::On,
    target::{Target, causes},
    tls,
};
use crate::stand_in::StandIn;

/// A target with a client, which keeps its connections.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) target: Target,
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
    /// Answers in place of the target: nothing is connected to.
    pub(crate) stand_in: Option<StandIn>,
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
        for (name, time) in
            [("timeout", config.timeout), ("connect_timeout", config.connect_timeout)]
        {
            if time.is_zero() {
                return Err(format!("http: `{name}` is 0; give the longest time that it may take"));
            }
        }
        let mut target = Target::parse(&config.url)?;
        let opened = OpenedConnections::default();
        let connects = stand_in.is_none();
        let builder = || builder(config, &target, connects);
        let client = built(builder()?.connector_layer(opened.clone()), &target)?;
        let fresh = built(builder()?.pool_max_idle_per_host(0), &target)?;
        let of_url = target.take_credentials(&client)?;
        let headers = credentials::headers(of_url, config)?;
        let has_query = target.url.query().is_some();
        let identification = Identification::detect(&headers, has_query, config);
        let (timeout, warned) = (config.timeout, AtomicBool::new(false));
        Ok(Self {
            target,
            client,
            opened,
            fresh,
            headers,
            identification,
            timeout,
            warned,
            stand_in,
        })
    }

    /// Sends it over a kept connection, if there is one. If that turns out to be closed before the
    /// head of an answer arrived, sends it once more, over a new one: a target may close a
    /// connection at any time, and that says nothing about the request.
    pub(crate) async fn send(&self, request: Request) -> Result<Response, NoAnswer> {
        if let Some(stand_in) = &self.stand_in {
            return stand_in::response(stand_in.answer()).map_err(
                |Unanswered(on, why, reached)| {
                    let text = format!("http: {why} {} (a stand-in)", self.target.shown);
                    NoAnswer { on, text, reached, untrusted: false }
                },
            );
        }
        let (again, before) = (request.try_clone(), self.opened.count());
        let started = Instant::now();
        let sent = self.client.execute(request).await;
        let sent = match (sent, again) {
            (Err(error), Some(mut again)) if self.opened.is_lost_kept(&error, before) => {
                *again.timeout_mut() = Some(self.timeout.saturating_sub(started.elapsed()));
                self.fresh.execute(again).await
            }
            (Ok(response), _) => {
                self.opened.answered(&response);
                Ok(response)
            }
            (lost, _) => lost,
        };
        sent.map_err(|error| self.no_answer(error))
    }

    pub(crate) fn no_answer(&self, error: reqwest::Error) -> NoAnswer {
        let shown = &self.target.shown;
        let is_connecting = error.is_connect();
        if error.is_timeout() && !is_connecting {
            let text = format!("http: no answer from {shown} within {:?}", self.timeout);
            return NoAnswer { on: On::Timeout, text, reached: true, untrusted: false };
        }
        // The one failure after which the target certainly has nothing of the event.
        let what = if is_connecting { "cannot connect to" } else { "lost the connection to" };
        let untrusted = is_untrusted(&error);
        let mut text = format!("http: {what} {shown}: {}", causes(&error.without_url()));
        if untrusted {
            text.push_str("; check the certificates on both sides, and `tls` in the configuration");
        }
        NoAnswer { on: On::Connection, text, reached: !is_connecting, untrusted }
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

/// A client for one target: connections are kept, HTTP/2 is used where the server offers it,
/// redirects are not followed, and the environment's proxies are not used: events go where the
/// configuration says.
///
/// # Errors
/// A sentence for the operator, where TLS cannot be set up on this machine.
fn builder(
    config: &TargetConfig,
    target: &Target,
    connects: bool,
) -> Result<ClientBuilder, String> {
    let builder = Client::builder()
        .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .no_proxy()
        .timeout(config.timeout)
        .connect_timeout(config.connect_timeout.min(config.timeout));
    if connects { tls::configure(builder, &target.url, &config.tls) } else { tls::unused(builder) }
}

fn built(builder: ClientBuilder, target: &Target) -> Result<Client, String> {
    builder.build().map_err(|error| {
        format!("http: the client for {} cannot be built: {}", target.shown, causes(&error))
    })
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
