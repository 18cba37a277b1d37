//! Where to post, and as whom.

use std::{fmt, time::Duration};

use super::auth::Auth;

/// Where to post, and as whom.
#[derive(Clone, PartialEq, Eq)]
pub struct TargetConfig {
    /// `http` or `https`. A user and a password in it are sent as basic authentication, and never
    /// shown.
    pub url: String,
    /// How long an attempt may take, connecting and reading the response included. Default: 5 s.
    pub timeout: Duration,
    /// How long connecting may take, TLS included. Default: 2 s; never more than `timeout`.
    pub connect_timeout: Duration,
    /// Headers added to each request; [`check_header`](super::check_header) says which may be.
    /// Their values are never shown.
    pub headers: Vec<(String, String)>,
    /// The credentials for the target. Default: only those in the URL and the headers, if any.
    pub auth: Option<Auth>,
    /// Whom to trust, and with which certificate to connect, where the URL is `https`.
    pub tls: Tls,
}

impl Default for TargetConfig {
    fn default() -> Self {
        Self {
            url: String::new(),
            timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(2),
            headers: Vec::new(),
            auth: None,
            tls: Tls::default(),
        }
    }
}

/// Leaves out the parts that may be secret: the URL, the values of the headers, and credentials.
impl fmt::Debug for TargetConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("TargetConfig")
            .field("timeout", &self.timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("headers", &names)
            .field("auth", &self.auth)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// Certificates, as PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificates of the authorities to trust, in place of those of the system.
    pub ca: Option<Vec<u8>>,
    /// The client certificate.
    pub identity: Option<Identity>,
    /// The name in the target's certificate, if it differs from the host of the URL. Needs a `ca`.
    pub server_name: Option<String>,
}

/// A certificate of the client, with its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, and those between it and the authority.
    pub cert: Vec<u8>,
    /// Never shown.
    pub key: Vec<u8>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("ca", &self.ca.is_some())
            .field("identity", &self.identity.is_some())
            .field("server_name", &self.server_name)
            .finish()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(hidden)")
    }
}

impl Tls {
    /// Whether nothing of it is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
