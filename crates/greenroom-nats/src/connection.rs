//! A connection that mends itself, and what has happened to it.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, connection::State, jetstream};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout_at},
};

use crate::server::{NatsAuth, NatsServer};

/// Between attempts to connect at first.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// An answer of the server's API is waited for so long.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// A connection to a server.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) jetstream: jetstream::Context,
    /// Its servers, for people.
    pub(crate) shown: String,
    /// The domain of JetStream, where it is not the server's own.
    pub(crate) domain: Option<String>,
    seen: Arc<Seen>,
}

/// What its events have told.
#[derive(Default)]
struct Seen {
    shown: String,
    /// How often it was connected.
    connected: watch::Sender<u64>,
    slow: AtomicU64,
}

impl Seen {
    fn event(&self, event: Event) {
        let server = self.shown.as_str();
        match event {
            Event::Connected => {
                self.connected.send_modify(|times| *times += 1);
                if *self.connected.borrow() > 1 {
                    tracing::info!(server, "connected to NATS again");
                }
            }
            Event::Disconnected => tracing::warn!(
                server,
                "the connection to NATS is lost: nothing is read or published until it is back, which is tried without end"
            ),
            Event::SlowConsumer(_) => {
                self.slow.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    server,
                    "this process reads too slowly from NATS: messages were dropped here, and are delivered again"
                );
            }
            Event::ServerError(error) => tracing::warn!(server, %error, "NATS complains"),
            Event::ClientError(error) => {
                tracing::warn!(server, %error, "the NATS client complains")
            }
            Event::LameDuckMode => tracing::info!(server, "the NATS server is about to shut down"),
            _ => {}
        }
    }
}

impl Connection {
    /// # Errors
    /// Why not, in words for an operator: at once where no attempt would help, otherwise once it
    /// was tried for as long as `server` says.
    pub(crate) async fn open(server: &NatsServer) -> Result<Arc<Self>, String> {
        let until = Instant::now() + server.connect_within;
        let shown = server.shown();
        let seen = Arc::new(Seen { shown: shown.clone(), ..Seen::default() });
        let mut told = false;
        loop {
            let options = options(server, &seen)?;
            let error = match timeout_at(until, options.connect(&server.servers[..])).await {
                Ok(Ok(client)) => return Ok(Self::of(client, server, seen)),
                Ok(Err(error)) => match error.kind() {
                    ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                        return Err(format!("{shown} refuses the credentials; correct them"));
                    }
                    ConnectErrorKind::ServerParse => {
                        return Err(format!(
                            "{shown} is no address: write HOST:PORT, or a URL such as nats://HOST:4222"
                        ));
                    }
                    ConnectErrorKind::Tls => {
                        return Err(format!("{shown}: TLS cannot be set up: {}", because(&error)));
                    }
                    _ => because(&error),
                },
                Err(_) => "no answer".to_owned(),
            };
            if Instant::now() + AGAIN_AFTER >= until {
                let within = server.connect_within;
                return Err(format!(
                    "no connection to {shown} within {within:?}: {error}; is a NATS server running there?"
                ));
            }
            if !std::mem::replace(&mut told, true) {
                tracing::warn!(
                    server = shown,
                    error,
                    "no connection to NATS yet: it is tried again"
                );
            }
            sleep(AGAIN_AFTER).await;
        }
    }

    fn of(client: Client, server: &NatsServer, seen: Arc<Seen>) -> Arc<Self> {
        let builder = jetstream::context::ContextBuilder::new().timeout(ANSWER_WITHIN);
        let jetstream = match &server.domain {
            Some(domain) => builder.domain(domain).build(client.clone()),
            None => builder.build(client.clone()),
        };
        let domain = server.domain.clone();
        Arc::new(Self { client, jetstream, shown: server.shown(), domain, seen })
    }

    pub(crate) fn is_up(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Changes each time that it is connected.
    pub(crate) fn connected(&self) -> watch::Receiver<u64> {
        self.seen.connected.subscribe()
    }

    /// How often it was connected again.
    pub(crate) fn reconnects(&self) -> u64 {
        self.seen.connected.borrow().saturating_sub(1)
    }

    /// How often messages were dropped because they were not read in time.
    pub(crate) fn slow(&self) -> u64 {
        self.seen.slow.load(Ordering::Relaxed)
    }
}

/// The causes of an error, in one line.
pub(crate) fn because(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text
}

fn options(server: &NatsServer, seen: &Arc<Seen>) -> Result<ConnectOptions, String> {
    let seen = seen.clone();
    let mut options = ConnectOptions::new()
        .name(&server.name)
        .require_tls(server.require_tls)
        .event_callback(move |event| {
            seen.event(event);
            std::future::ready(())
        });
    options = match &server.auth {
        NatsAuth::None => options,
        NatsAuth::Token(token) => options.token(token.clone()),
        NatsAuth::User { user, password } => {
            options.user_and_password(user.clone(), password.clone())
        }
        NatsAuth::NKey(seed) => options.nkey(seed.trim().to_owned()),
        NatsAuth::Credentials(text) => options.credentials(text).map_err(|_| {
            "the NATS credentials are not those of a credentials file: it has a JWT and a seed"
                .to_owned()
        })?,
    };
    if let Some(path) = &server.root_certificates {
        readable(path)?;
        options = options.add_root_certificates(path.clone());
    }
    if let Some((certificate, key)) = &server.client_certificate {
        readable(certificate)?;
        readable(key)?;
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(options)
}

fn readable(path: &std::path::Path) -> Result<(), String> {
    let read = fs::File::open(path).map(drop);
    read.map_err(|error| format!("{} cannot be read: {error}", path.display()))
}
