//! The server to connect to, and the credentials.

use std::{path::PathBuf, time::Duration};

use greenroom_bus::kind::are_readable;
use greenroom_config::{At, Secret, flag, group, options, path, text};

/// The options that inputs, outputs and dead letters share: where to connect, and as whom.
#[derive(Debug, Clone)]
#[cfg_attr(
    not(feature = "client"),
    expect(dead_code, reason = "only the certificates are checked")
)]
pub(crate) struct NatsServer {
    pub(crate) servers: Secret<Vec<String>>,
    pub(crate) auth: Option<NatsAuth>,
    pub(crate) tls: Option<NatsTls>,
    pub(crate) domain: Option<String>,
    pub(crate) connect_within: Duration,
}

options! {
    /// The credentials: exactly one. Write `${NAME}` or `file:PATH` for secrets.
    #[derive(Eq)]
    pub enum NatsAuth = "auth" {
        /// A token.
        Token(Secret<String>) as "token" = text().secret();
        /// A user and a password.
        User(NatsUser) as "user" = group();
        /// The seed of an NKey.
        NKey(Secret<String>) as "nkey" = text().secret();
        /// The content of a credentials file: `file:PATH`.
        Credentials(Secret<String>) as "credentials" = text().secret();
    }
}

options! {
    /// A user and a password.
    #[derive(Eq)]
    pub struct NatsUser = "user" {
        /// The user.
        name: Secret<String> = text().secret();
        /// The password.
        password: Secret<String> = text().secret();
    }
}

options! {
    /// Files are PEM, and are read at the start.
    pub struct NatsTls = "tls", then NatsTls::cert_with_its_key {
        /// A file with the certificates of the authorities to trust, in addition to the system's.
        ca: Option<PathBuf> = path().optional();
        /// A file with the certificate to present to the server.
        cert: Option<PathBuf> = path().optional();
        /// The file with its private key.
        key: Option<PathBuf> = path().optional();
        /// Whether to refuse a connection without TLS, even if the server would accept one.
        required: bool = flag().default("true");
    }
}

impl NatsTls {
    /// The files that it names, each with its option.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let files = [("ca", &self.ca), ("cert", &self.cert), ("key", &self.key)];
        files.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?)))
    }

    fn cert_with_its_key(self, at: &mut At<'_>) -> Option<Self> {
        let help = "the server is shown a certificate with its key: name both files";
        at.both(("cert", self.cert.is_some()), ("key", self.key.is_some()), help)?;
        Some(self)
    }
}

impl NatsServer {
    /// Its servers, without the secrets in their URLs.
    #[cfg(feature = "client")]
    pub(crate) fn shown(&self) -> String {
        let shown: Vec<&str> = self.servers.iter().map(|server| without_secrets(server)).collect();
        shown.join(",")
    }

    /// Reports files that cannot be read.
    pub(crate) fn reach(&self, at: &mut At<'_>) {
        are_readable(&mut at.inside("tls"), self.tls.iter().flat_map(NatsTls::files));
    }
}

/// Host and port of an address, which may be a URL with a user and a password.
#[cfg(feature = "client")]
fn without_secrets(server: &str) -> &str {
    let address = server.split_once("://").map_or(server, |(_, rest)| rest);
    let address = address.rsplit_once('@').map_or(address, |(_, host)| host);
    address.split('/').next().unwrap_or(address)
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use super::*;
    use crate::options::NatsInput;

    #[test]
    fn what_is_shown_of_a_server_has_no_secrets() {
        let mut input = NatsInput::new("nats://ann:pa@ss@one:4222/x", "s", "c");
        input.servers.push("two:4222".into());
        input.auth = Some(NatsAuth::Token("s3cret".into()));
        assert_eq!(input.server().shown(), "one:4222,two:4222");
        let shown = format!("{input:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("pa@ss"), "{shown}");
    }
}
