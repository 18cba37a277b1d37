//! The server, and connections to it.

use std::{fs, path::PathBuf, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ErrorKind, RedisError, TlsCertificates,
    aio::MultiplexedConnection,
};
use tokio::time::{Instant, sleep};

use crate::{
    address::address,
    options::{RedisInput, RedisTls},
};

/// The limit for connecting, and for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The wait between attempts to connect at the start.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// A server, and how to connect.
#[derive(Clone)]
pub(crate) struct Server {
    client: Client,
    /// Its address, without credentials.
    pub(crate) shown: String,
}

impl Server {
    /// # Errors
    /// The URL or a certificate is invalid.
    pub(crate) fn new(input: &RedisInput) -> Result<Self, String> {
        let info = address(&input.url)?;
        let shown = info.addr().to_string();
        let client = match &input.tls {
            None => Client::open(info),
            Some(tls) => Client::build_with_tls(info, certificates(tls)?),
        };
        let client = client.map_err(|error| format!("{shown} cannot be connected to: {error}"))?;
        Ok(Self { client, shown })
    }

    /// Tries once.
    pub(crate) async fn connect(&self) -> Result<MultiplexedConnection, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(ANSWER_WITHIN))
            .set_response_timeout(Some(ANSWER_WITHIN));
        self.client.get_multiplexed_async_connection_with_config(&config).await
    }
}

/// Attempts to connect at the start.
pub(crate) struct Attempts<'a> {
    server: &'a Server,
    within: Duration,
    until: Instant,
    is_told: bool,
}

impl<'a> Attempts<'a> {
    /// Attempts within this time.
    pub(crate) fn new(server: &'a Server, within: Duration) -> Self {
        Self { server, within, until: Instant::now() + within, is_told: false }
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// No attempt is left, or none would help: the reason, for an operator.
    pub(crate) async fn failed(&mut self, error: RedisError) -> Result<(), String> {
        let (server, text, within) = (&self.server.shown, error.to_string(), self.within);
        if let Some(next) = correction(&error) {
            return Err(format!("{server}: {text}; {next}"));
        }
        if Instant::now() + AGAIN_AFTER >= self.until {
            let next = "is a Redis server running there? Are its certificates trusted?";
            return Err(format!("no connection to {server} within {within:?}: {text}; {next}"));
        }
        if !std::mem::replace(&mut self.is_told, true) {
            tracing::warn!(server, text, "no connection to Redis yet: it is tried again");
        }
        sleep(AGAIN_AFTER).await;
        Ok(())
    }
}

/// What an operator has to correct, if another attempt would not help.
pub(crate) fn correction(error: &RedisError) -> Option<&'static str> {
    match (error.kind(), error.code()) {
        (ErrorKind::AuthenticationFailed, _) | (_, Some("NOAUTH" | "WRONGPASS")) => {
            Some("correct the user and the password in `url`")
        }
        (_, Some("NOPERM")) => Some("docs/redis.md lists the commands that its user needs"),
        (_, Some("WRONGTYPE")) => Some("name keys that are streams"),
        (ErrorKind::InvalidClientConfig, _) => Some("correct `url` and `tls`"),
        _ => None,
    }
}

fn certificates(tls: &RedisTls) -> Result<TlsCertificates, String> {
    let read = |path: &PathBuf| {
        fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
    };
    let client_tls = match (&tls.cert, &tls.key) {
        (Some(cert), Some(key)) => {
            Some(ClientTlsConfig { client_cert: read(cert)?, client_key: read(key)? })
        }
        _ => None,
    };
    Ok(TlsCertificates { client_tls, root_cert: tls.ca.as_ref().map(read).transpose()? })
}
