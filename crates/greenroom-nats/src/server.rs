//! Which server to connect to, and as whom.

use std::{path::PathBuf, time::Duration};

use greenroom_config::{Secret, group, options, text};

/// A server, or several of one cluster, and how to connect.
#[derive(Debug, Clone, PartialEq)]
pub struct NatsServer {
    /// `HOST:PORT`, or a URL: `nats://HOST:PORT`, `tls://HOST:PORT`. Of several, one that answers
    /// is taken; others of the cluster are learnt from it.
    pub servers: Vec<String>,
    /// As whom. Default: nobody; credentials of a URL (`nats://USER:PASSWORD@HOST`) are used.
    pub auth: Option<NatsAuth>,
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

options! {
    /// As whom to connect: exactly one. Write `${NAME}` or `file:PATH` for what is secret.
    #[derive(Eq)]
    pub enum NatsAuth = "auth" {
        /// A token.
        Token(Secret<String>) as "token" = text().secret();
        /// A user and a password.
        User(NatsUser) as "user" = group();
        /// The seed of an NKey.
        NKey(Secret<String>) as "nkey" = text().secret();
        /// What is in a credentials file: `file:PATH`.
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

impl NatsServer {
    /// This server, with the defaults.
    pub fn at(server: impl Into<String>) -> Self {
        Self {
            servers: vec![server.into()],
            auth: None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_server_has_no_secrets() {
        let mut server = NatsServer::at("nats://ann:pa@ss@one:4222/x");
        server.servers.push("two:4222".into());
        server.auth = Some(NatsAuth::Token("s3cret".into()));
        assert_eq!(server.shown(), "one:4222,two:4222");
        assert!(!format!("{:?}", server.auth).contains("s3cret"));
    }
}
