//! Events that are posted to greenroom.

use std::{
    num::NonZeroU64,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use greenroom_config::{
    At, Listen, count, defaults_beside, duration, flag, group, options, path, rate, size, text,
    texts,
    units::{DAY_MS, GIB, Rate},
};

use super::{Access, HttpSettings, ServerTls, Webhook};
use crate::{
    http::{
        BadTls,
        options::{ITS_KEY, SHOW, UnreadFile, read},
    },
    record::Mapping,
};

/// As long as anybody keeps events.
const YEAR_MS: u64 = 366 * DAY_MS;

options! {
    /// Takes posted CloudEvents, one at a time or in batches, and answers 202 once they are on
    /// disk. docs/http-input.md lists the other answers.
    pub struct HttpInput = "an http input", then HttpInput::checked {
        /// An IP address (or `localhost`) and a port. With port 0, a free one is chosen and logged.
        /// An address that other machines can reach needs `auth`, `tls.client_ca` or
        /// `allow_anonymous`.
        listen: Listen = text().to::<Listen>().default("127.0.0.1:8080");
        /// The path to post to. `/hooks/*` takes every path below `/hooks/`, which `records` can
        /// use. `GET /healthz` says whether events are taken.
        path: String = text().default("/events");
        /// The directory of the log that stores posted events until they are handled, and from
        /// which a later run continues. It is created if it is missing.
        store: PathBuf = path();
        /// How long the log keeps handled events, and how large it may become.
        retention: RetentionConfig = group().default("{}");
        /// Which events count as posted before.
        deduplicate: RepeatsConfig = group().default("{}");
        /// The largest event.
        max_event: u64 = size(1024..=GIB).live().default("1MiB");
        /// The largest body of a batch.
        max_body: u64 = size(1024..=GIB).live().default("16MiB");
        /// The most events of a batch.
        max_batch: usize = count(1..=1_000_000).live().default("10000");
        /// The most connections at once, but never more than half of the files that the process may
        /// open. Beyond it, a new connection replaces the one that has waited longest for its
        /// client.
        connections: usize = count(1..=65_536).live().default("1024");
        /// How much memory all bodies being received may take together. Beyond it, a sender is
        /// answered 429.
        bodies: u64 = size(1024..=1024 * GIB).live().default("64MiB");
        /// How long a client may take for the headers of a request, counted from its last answer.
        header_timeout: Duration = duration(1..=DAY_MS).live().default("30s");
        /// How long it may take for the body.
        body_timeout: Duration = duration(1..=DAY_MS).live().default("30s");
        /// Who may post. Without it, any client that can connect may post, except a web page in a
        /// browser.
        auth: Option<Access> = group().live().optional();
        /// Answers senders of CloudEvents webhooks that ask whether they may post (`OPTIONS`).
        /// Without it, they are refused, and do not post.
        webhook: Option<WebhookConfig> = group().live().optional();
        /// HTTPS instead of HTTP. It cannot be turned on or off while greenroom runs.
        tls: Option<ServerTlsConfig> = group().live().optional();
        /// Lets everybody post who can reach the address, even from other machines.
        allow_anonymous: bool = flag().live().default("false");
    }
}

options! {
    /// Only events that no run needs any more are removed, the oldest first.
    #[derive(Copy, Eq)]
    pub struct RetentionConfig = "retention" {
        /// How long handled events are kept, unless their space is needed.
        age: Duration = duration(0..=YEAR_MS).default("24h");
        /// How much disk space the log may take. If unhandled events fill it, senders are answered
        /// 429; a post that takes more than half of it is answered 413.
        size: u64 = size((8 << 20)..=1024 * GIB).default("10GiB");
    }
}

options! {
    /// An event whose source and id are remembered is answered 202 and not stored again, so that a
    /// sender can repeat a post whose answer was lost. This survives restarts.
    #[derive(Copy, Eq)]
    pub struct RepeatsConfig = "deduplicate" {
        /// How long events are remembered. With `0s`, not at all.
        within: Duration = duration(0..=YEAR_MS).default("10m");
        /// How many events are remembered. Each takes some 60 bytes of memory.
        events: usize = count(1..=100_000_000).default("1000000");
    }
}

options! {
    /// Which senders are told that they may post. `auth` applies to their posts as to all others.
    pub struct WebhookConfig = "webhook", then WebhookConfig::checked {
        /// The names of the senders, such as `eventgrid.azure.net`; `*` allows any.
        origins: Vec<String> = texts().alias(&["origin"]);
        /// The highest rate that senders are told to keep, at least `1/min`; without it, they are
        /// told no limit. It is not enforced.
        rate: Option<Rate> = rate().optional();
    }
}

options! {
    /// Files are PEM. Each reload reads them again.
    pub struct ServerTlsConfig = "tls" {
        /// A file with the certificate and its intermediates.
        cert: PathBuf = path();
        /// The file with its private key, without a passphrase.
        key: PathBuf = path();
        /// A file with certificate authorities: each client must present a certificate of one of
        /// them.
        client_ca: Option<PathBuf> = path().optional();
    }
}

impl ServerTlsConfig {
    /// Certificates and keys as they are in their files now.
    ///
    /// # Errors
    /// The first file that cannot be read.
    pub fn read(&self) -> Result<ServerTls, UnreadFile> {
        let client_ca = self.client_ca.as_deref();
        Ok(ServerTls {
            cert: read("cert", &self.cert)?,
            key: read("key", &self.key)?,
            client_ca: client_ca.map(|path: &Path| read("client_ca", path)).transpose()?,
        })
    }
}

impl ServerTlsConfig {
    /// Reports certificates that cannot be read or used, and keys that do not fit them.
    pub(super) fn reach(&self, at: &mut At<'_>) {
        let tls = match self.read() {
            Ok(tls) => tls,
            Err(unread) => return unread.report(at),
        };
        let Err(why) = tls.check() else { return };
        let (option, help) = match why {
            BadTls::Cert(_) => ("cert", SHOW),
            BadTls::Key(_) => ("key", ITS_KEY),
            _ => ("client_ca", "name a file of certificates, as PEM"),
        };
        at.error(option, why.to_string(), help);
    }
}

impl WebhookConfig {
    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
        let is_origin = |origin: &String| origin == "*" || origin.bytes().all(is_of_name);
        if let Some(place) = self.origins.iter().position(|origin| !is_origin(origin)) {
            let help = "write the name alone, such as `eventgrid.azure.net`, or `*` for any";
            at.error(&format!("origins.{place}"), "no sender asks by such a name", help);
            return None;
        }
        if self.rate.is_some() && self.per_minute().is_none() {
            let text = "a sender is told whole requests a minute, and this is less than one";
            at.error("rate", text, "write `1/min` or more, or leave it out");
            return None;
        }
        Some(self)
    }

    fn per_minute(&self) -> Option<NonZeroU64> {
        NonZeroU64::new((self.rate?.per_second * 60.0).round() as u64)
    }

    /// As the library has it.
    pub fn to_bus(&self) -> Webhook {
        Webhook { origins: self.origins.clone(), per_minute: self.per_minute() }
    }
}

impl Default for HttpSettings {
    /// Those of a configuration that names none of them.
    fn default() -> Self {
        let input: HttpInput = defaults_beside(&[("store", "store")]);
        input.settings(None).expect("there is no file to read")
    }
}

impl HttpInput {
    /// What a request is judged by, with what the files of `tls` hold.
    pub(super) fn settings(&self, records: Option<Mapping>) -> Result<HttpSettings, String> {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let tls = self.tls.as_ref().map(ServerTlsConfig::read).transpose();
        Ok(HttpSettings {
            access: self.auth.clone(),
            webhook: self.webhook.as_ref().map(WebhookConfig::to_bus),
            tls: tls.map_err(|unread| unread.to_string())?,
            records: records.map(Arc::new),
            max_event: bytes(self.max_event),
            max_body: bytes(self.max_body),
            max_batch: self.max_batch,
            connections: self.connections,
            bodies: bytes(self.bodies),
            header_timeout: self.header_timeout,
            body_timeout: self.body_timeout,
        })
    }

    /// Whether anybody on another machine may post, and no option says that this is meant.
    pub(super) fn is_open_to_others(&self, listen: Listen) -> bool {
        let asks = self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        !listen.0.ip().is_loopback() && self.auth.is_none() && !asks && !self.allow_anonymous
    }

    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        if self.is_open_to_others(self.listen) {
            let text = "an input that other machines can reach needs `auth`";
            let help = "add `auth: { bearer: \"file:/run/secrets/greenroom-events\" }`, listen at \
                        127.0.0.1, or write `allow_anonymous: true`";
            at.error("listen", text, help);
            return None;
        }
        if let Some(Err(why)) = self.auth.as_ref().map(Access::check) {
            let help = "write `file:PATH` or `${NAME}` for what is secret";
            at.error("auth", why.to_string(), help);
            return None;
        }
        if let Some(why) = wrong_path(&self.path) {
            at.error("path", why, "for example `/events`, or `/hooks/*`");
            return None;
        }
        if self.bodies < self.max_body {
            let help = "raise `bodies`, or lower `max_body`";
            at.error("bodies", "there is no room for one body of `max_body`", help);
            return None;
        }
        Some(self)
    }
}

fn wrong_path(path: &str) -> Option<&'static str> {
    let start = path.strip_suffix("/*").unwrap_or(path);
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"*?#\"<>\\^`{|}".contains(&byte);
    if !path.starts_with('/') {
        Some("the path of a request begins with `/`")
    } else if path == "/healthz" {
        Some("`/healthz` says whether events are taken")
    } else if !start.bytes().all(is_plain) {
        Some("this has characters that no request has in its path")
    } else {
        None
    }
}
