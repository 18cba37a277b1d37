//! Which server to connect to, and as whom.

use std::{fmt, path::PathBuf, time::Duration};

/// A server, or several of one cluster, and how to connect.
#[derive(Debug, Clone, PartialEq)]
pub struct NatsServer {
    /// `HOST:PORT`, or a URL: `nats://HOST:PORT`, `tls://HOST:PORT`. Of several, one that answers
    /// is taken; others of the cluster are learnt from it.
    pub servers: Vec<String>,
    /// As whom. Default: [`NatsAuth::None`].
    pub auth: NatsAuth,
    /// Refuses a connection without TLS. Default: false; a `tls://` URL, and a server that demands
    /// it, have it anyway.
    pub require_tls: bool,
    /// A file in PEM with the certificates that are trusted besides those of the system.
    pub root_certificates: Option<PathBuf>,
    /// Files in PEM with the certificate and the key of this client, for a server that asks.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// What the server's monitoring calls the connection. Default: `greenroom`.
    pub name: String,
    /// The JetStream domain, for a leaf node that reaches another one. Default: the server's own.
    pub domain: Option<String>,
    /// For so long it is tried to connect at first. Once connected, it is tried again without end.
    /// Default: 30 s.
    pub connect_within: Duration,
}

/// As whom to connect. Nothing prints the secrets in it.
#[derive(Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum NatsAuth {
    /// Without credentials; those of a URL (`nats://USER:PASSWORD@HOST`) are used.
    #[default]
    None,
    /// A token.
    Token(String),
    /// A user and a password.
    User {
        /// The user.
        user: String,
        /// Its password.
        password: String,
    },
    /// The seed of an NKey.
    NKey(String),
    /// The content of a credentials file: a JWT and the seed that belongs to it.
    Credentials(String),
}

impl NatsServer {
    /// This server, with the defaults.
    pub fn at(server: impl Into<String>) -> Self {
        Self {
            servers: vec![server.into()],
            auth: NatsAuth::None,
            require_tls: false,
            root_certificates: None,
            client_certificate: None,
            name: "greenroom".to_owned(),
            domain: None,
            connect_within: Duration::from_secs(30),
        }
    }

    /// Its servers, without what is secret in their URLs.
    pub fn shown(&self) -> String {
        let shown: Vec<&str> = self.servers.iter().map(|server| without_secrets(server)).collect();
        shown.join(",")
    }
}

/// Host and port of an address, which may be a URL with a user and a password.
fn without_secrets(server: &str) -> &str {
    let address = server.split_once("://").map_or(server, |(_, rest)| rest);
    let address = address.rsplit_once('@').map_or(address, |(_, host)| host);
    address.split('/').next().unwrap_or(address)
}

impl fmt::Debug for NatsAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Token(_) => "Token(..)",
            Self::User { .. } => "User(..)",
            Self::NKey(_) => "NKey(..)",
            Self::Credentials(_) => "Credentials(..)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_server_has_no_secrets() {
        let mut server = NatsServer::at("nats://ann:pa@ss@one:4222/x");
        server.servers.push("two:4222".into());
        server.auth = NatsAuth::Token("s3cret".into());
        assert_eq!(server.shown(), "one:4222,two:4222");
        assert!(!format!("{:?}", server.auth).contains("s3cret"));
    }
}
