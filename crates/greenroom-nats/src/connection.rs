//! A connection that reconnects by itself, and a record of its failures.

use std::{
    collections::HashMap,
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, connection::State, jetstream};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout_at},
};

use crate::server::{NatsAuth, NatsServer, NatsUser};

/// Between attempts to connect at first.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Whether it is up again is looked at so often: the client says that it has connected just before
/// it is so.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// At most this many forbidden subjects are remembered.
const DENIED: usize = 1_024;

/// How a server begins to say that a publish is not allowed; the subject follows in quotes.
const DENIES: &str = "Permissions Violation for Publish to \"";

/// The timeout for an answer of the server's API.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// A connection to a server.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) jetstream: jetstream::Context,
    /// Its servers, for people.
    pub(crate) shown: String,
    /// The domain of JetStream, if it is not the server's own.
    pub(crate) domain: Option<String>,
    server: NatsServer,
    seen: Arc<Seen>,
}

/// Its failures, and those of the connections that it replaced.
#[derive(Default)]
struct Mishaps {
    reconnects: AtomicU64,
    slow: AtomicU64,
}

/// The effects of its events.
#[derive(Default)]
struct Seen {
    shown: String,
    /// How often it was connected.
    connected: watch::Sender<u64>,
    mishaps: Arc<Mishaps>,
    /// The last attempt to connect failed of the credentials.
    is_refused: AtomicBool,
    /// Counts the events that waiters watch: connections, and denials.
    happened: watch::Sender<u64>,
    /// Subjects that this user may not publish to, and which happening said so last.
    denied: Mutex<HashMap<String, u64>>,
}

impl Seen {
    fn happens(&self, what: impl FnOnce(u64)) {
        self.happened.send_modify(|count| {
            *count += 1;
            what(*count);
        });
    }

    /// The server said why it did not take something. A publish that it denies has no other answer.
    fn denies(&self, said: &str) {
        let Some((_, behind)) = said.split_once(DENIES) else { return };
        let Some((subject, _)) = behind.rsplit_once('"') else { return };
        self.happens(|number| {
            let mut denied = self.denied.lock();
            if denied.len() >= DENIED {
                denied.clear();
            }
            denied.insert(subject.to_owned(), number);
        });
    }

    fn event(&self, event: Event) {
        let server = self.shown.as_str();
        match event {
            Event::Connected => {
                self.is_refused.store(false, Ordering::Relaxed);
                self.connected.send_modify(|times| *times += 1);
                self.happens(|_| {});
                if *self.connected.borrow() > 1 {
                    self.mishaps.reconnects.fetch_add(1, Ordering::Relaxed);
                    tracing::info!(server, "connected to NATS again");
                }
            }
            Event::Disconnected => tracing::warn!(
                server,
                "the connection to NATS is lost: nothing is read or published until it is back, which is tried without end"
            ),
            Event::SlowConsumer(_) => {
                self.mishaps.slow.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    server,
                    "this process reads too slowly from NATS: messages were dropped here, and are delivered again"
                );
            }
            Event::ServerError(error) => {
                tracing::warn!(server, %error, "NATS complains");
                self.denies(&error.to_string());
            }
            Event::ClientError(error) => {
                let is_refused = error.to_string().contains("authorization violation");
                self.is_refused.store(is_refused, Ordering::Relaxed);
                tracing::warn!(server, %error, "the NATS client complains")
            }
            Event::LameDuckMode => tracing::info!(server, "the NATS server is about to shut down"),
            _ => {}
        }
    }
}

impl Connection {
    /// # Errors
    /// Why not, in words for an operator: at once if no attempt would help, otherwise after the
    /// time that `server` allows.
    pub(crate) async fn open(server: &NatsServer) -> Result<Arc<Self>, String> {
        let until = Instant::now() + server.connect_within;
        Self::open_until(Some(until), server, Arc::default()).await
    }

    /// Without a time, it is tried without end.
    async fn open_until(
        until: Option<Instant>,
        server: &NatsServer,
        mishaps: Arc<Mishaps>,
    ) -> Result<Arc<Self>, String> {
        let shown = server.shown();
        let seen = Arc::new(Seen { shown: shown.clone(), mishaps, ..Seen::default() });
        let mut told = false;
        loop {
            let options = options(server, &seen)?;
            let mut is_about_tls = false;
            let gives_up = until.unwrap_or_else(|| Instant::now() + server.connect_within);
            let error = match timeout_at(gives_up, options.connect(&server.servers[..])).await {
                Ok(Ok(client)) => {
                    // The first event of a connection is no other one.
                    let _ = seen.connected.subscribe().wait_for(|times| *times > 0).await;
                    return Ok(Self::new(client, server, seen));
                }
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
                    _ => {
                        is_about_tls = is_refused_by_tls(&error);
                        because(&error)
                    }
                },
                Err(_) => "no answer".to_owned(),
            };
            if until.is_some_and(|until| Instant::now() + AGAIN_AFTER >= until) {
                let within = server.connect_within;
                let next = match is_about_tls {
                    true => "correct the certificates (`tls`) here or at the server",
                    false => "is a NATS server running there?",
                };
                return Err(format!("no connection to {shown} within {within:?}: {error}; {next}"));
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

    fn new(client: Client, server: &NatsServer, seen: Arc<Seen>) -> Arc<Self> {
        let builder = jetstream::context::ContextBuilder::new().timeout(ANSWER_WITHIN);
        let jetstream = match &server.domain {
            Some(domain) => builder.domain(domain).build(client.clone()),
            None => builder.build(client.clone()),
        };
        let domain = server.domain.clone();
        let (shown, server) = (server.shown(), server.clone());
        Arc::new(Self { client, jetstream, shown, domain, server, seen })
    }

    /// A replacement that continues its counts. It is tried without end.
    ///
    /// # Errors
    /// No attempt would help.
    pub(crate) async fn again(&self) -> Result<Arc<Self>, String> {
        let opened = Self::open_until(None, &self.server, self.seen.mishaps.clone()).await?;
        opened.seen.mishaps.reconnects.fetch_add(1, Ordering::Relaxed);
        Ok(opened)
    }

    pub(crate) fn is_up(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Changes each time that it is connected.
    pub(crate) fn connected(&self) -> watch::Receiver<u64> {
        self.seen.connected.subscribe()
    }

    /// Waits until it is.
    pub(crate) async fn ready(&self) {
        let mut connected = self.connected();
        while !self.is_up() {
            tokio::select! {
                _ = connected.changed() => {}
                () = sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Whether the server refused the credentials when it was last tried to connect again.
    pub(crate) fn is_refused(&self) -> bool {
        self.seen.is_refused.load(Ordering::Relaxed)
    }

    /// The reason while it is not up.
    pub(crate) fn why_down(&self) -> String {
        let shown = &self.shown;
        match self.is_refused() {
            true => format!("{shown} refuses the credentials; correct them"),
            false => format!("no connection to {shown}; it is tried again without end"),
        }
    }

    /// For a caller that is about to publish.
    pub(crate) fn watch(&self) -> Watched<'_> {
        let mut happened = self.seen.happened.subscribe();
        let begun = *happened.borrow_and_update();
        let connected = *self.seen.connected.borrow();
        Watched { seen: &self.seen, happened, begun, connected }
    }

    /// How often it was connected again.
    pub(crate) fn reconnects(&self) -> u64 {
        self.seen.mishaps.reconnects.load(Ordering::Relaxed)
    }

    /// How often messages were dropped because they were not read in time.
    pub(crate) fn slow(&self) -> u64 {
        self.seen.mishaps.slow.load(Ordering::Relaxed)
    }
}

/// Events of a connection while an answer is awaited.
pub(crate) struct Watched<'a> {
    seen: &'a Seen,
    happened: watch::Receiver<u64>,
    begun: u64,
    connected: u64,
}

impl Watched<'_> {
    /// Waits until something has.
    pub(crate) async fn changed(&mut self) {
        // The sender lives as long as this, so the wait cannot fail.
        let _ = self.happened.changed().await;
    }

    /// Whether the server has said since that this subject is not allowed.
    pub(crate) fn is_denied(&self, subject: &str) -> bool {
        self.seen.denied.lock().get(subject).is_some_and(|number| *number > self.begun)
    }

    /// A denial since then of a subject with this part.
    pub(crate) fn denied(&self, part: &str) -> Option<String> {
        let denied = self.seen.denied.lock();
        let mut since = denied.iter().filter(|(_, number)| **number > self.begun);
        since.find(|(subject, _)| subject.contains(part)).map(|(subject, _)| subject.clone())
    }

    /// Whether it is another connection by now.
    pub(crate) fn is_another(&self) -> bool {
        *self.seen.connected.borrow() != self.connected
    }
}

/// Whether a server is there and TLS fails with it: an error of rustls is invalid data.
fn is_refused_by_tls(error: &dyn std::error::Error) -> bool {
    let mut cause = error.source();
    while let Some(next) = cause {
        let io = next.downcast_ref::<std::io::Error>();
        if io.is_some_and(|error| error.kind() == std::io::ErrorKind::InvalidData) {
            return true;
        }
        cause = next.source();
    }
    false
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
        .name("greenroom")
        .require_tls(server.tls.as_ref().is_some_and(|tls| tls.required))
        .event_callback(move |event| {
            seen.event(event);
            std::future::ready(())
        });
    options = match &server.auth {
        None => options,
        Some(NatsAuth::Token(token)) => options.token(token.to_string()),
        Some(NatsAuth::User(NatsUser { name, password })) => {
            options.user_and_password(name.to_string(), password.to_string())
        }
        Some(NatsAuth::NKey(seed)) => options.nkey(seed.trim().to_owned()),
        Some(NatsAuth::Credentials(text)) => options.credentials(text).map_err(|_| {
            "the NATS credentials are not those of a credentials file: it has a JWT and a seed"
                .to_owned()
        })?,
    };
    let Some(tls) = &server.tls else { return Ok(options) };
    for (_, file) in tls.files() {
        readable(file)?;
    }
    if let Some(ca) = &tls.ca {
        options = options.add_root_certificates(ca.clone());
    }
    if let Some((cert, key)) = tls.cert.clone().zip(tls.key.clone()) {
        options = options.add_client_certificate(cert, key);
    }
    Ok(options)
}

fn readable(path: &std::path::Path) -> Result<(), String> {
    let read = fs::File::open(path).map(drop);
    read.map_err(|error| format!("{} cannot be read: {error}", path.display()))
}
