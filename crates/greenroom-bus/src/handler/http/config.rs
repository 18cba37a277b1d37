//! Where to post, and how.

use std::{path::PathBuf, time::Duration};

use crate::http::{Auth, EventUrl, StatusMap, TargetConfig, Tls, message::Mode};

/// Where to post, and how.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// `http` or `https`. A user and a password in it are sent as basic
    /// authentication, and never shown.
    pub url: String,
    /// In place of `url`: each event names the URL that it is posted to.
    pub event_url: Option<EventUrl>,
    /// Default: binary.
    pub mode: Mode,
    /// How long an attempt may take, connecting and reading the response included. Default: 5 s.
    pub timeout: Duration,
    /// How long connecting may take, TLS included. Default: 2 s; never more than `timeout`.
    pub connect_timeout: Duration,
    /// Headers added to each request, such as `authorization`;
    /// [`check_header`](crate::http::check_header) says which are allowed. Their values are never
    /// shown.
    pub headers: Vec<(String, String)>,
    /// The credentials for the target.
    pub auth: Option<Auth>,
    /// Whom to trust, and with which certificate to connect, where the URL is `https`.
    pub tls: Tls,
    /// The longest response body in bytes that is read, if it contains events. Default: 16 MiB.
    pub max_response: usize,
    /// A file with the secrets of each share, with which requests are signed by Standard Webhooks.
    /// Default: none.
    pub secrets: Option<PathBuf>,
    /// Whether the event itself is passed on after a successful response without an event. Default:
    /// no.
    pub pass: bool,
    /// The consequence of each answer. Default: [`STATUS_MAP`](crate::http::STATUS_MAP).
    pub status: StatusMap,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            url: String::new(),
            event_url: None,
            mode: Mode::Binary,
            timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(2),
            headers: Vec::new(),
            auth: None,
            tls: Tls::default(),
            max_response: 16 * 1024 * 1024,
            secrets: None,
            pass: false,
            status: StatusMap::default(),
        }
    }
}

impl HttpConfig {
    pub(super) fn target(&self) -> TargetConfig {
        TargetConfig {
            url: self.url.clone(),
            timeout: self.timeout,
            connect_timeout: self.connect_timeout,
            headers: self.headers.clone(),
            auth: self.auth.clone(),
            tls: self.tls.clone(),
        }
    }
}

/// Leaves out the parts that may be secret: the URL and the values of the headers.
impl std::fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpConfig")
            .field("event_url", &self.event_url)
            .field("mode", &self.mode)
            .field("timeout", &self.timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("headers", &names)
            .field("auth", &self.auth)
            .field("tls", &self.tls)
            .field("max_response", &self.max_response)
            .field("signature", &self.secrets)
            .field("pass", &self.pass)
            .finish_non_exhaustive()
    }
}
