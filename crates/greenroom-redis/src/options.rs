//! What to read, and how.

use std::{path::PathBuf, time::Duration};

use greenroom_bus::source::StartAt;
use greenroom_config::{
    At, Secret, bare, count, defaults_beside, duration, group, options, path, schema::Group, text,
    texts, units::DAY_MS,
};

const NOTHING: &Group = &Group::without_settings("the name of the stream");

options! {
    /// Reads Redis streams as a consumer of a group. Entries are CloudEvents, or records that
    /// `records` maps to events. Each entry is acknowledged by itself, once it is settled. Needs
    /// Redis 6.2 or later, and a greenroom built with the cargo feature `redis`; see docs/redis.md.
    pub struct RedisInput = "a redis input", then RedisInput::checked {
        /// The server: `redis://HOST:PORT`, or `redis://USER:PASSWORD@HOST:PORT/DATABASE`. Use
        /// `rediss://` for TLS.
        url: Secret<String> = text().secret();
        /// The streams. Each is a partition with its own order. Missing ones are created.
        streams: Vec<String> = texts().alias(&["stream"]);
        /// The consumer group. A missing one is created.
        group: String = text();
        /// The name of this process in the group. It must be unique, and should survive restarts: a
        /// process reads the pending entries of its name first.
        consumer: String = text();
        /// Where a new group begins: `earliest`, `latest`, or a time (RFC 3339) such as
        /// `2026-01-31T12:00:00Z`.
        start: StartAt = text().to::<StartAt>().default("earliest");
        /// Entries that another consumer has left pending for this long are claimed. A process
        /// renews the claim on its own entries, however long its handlers take.
        claim_after: Duration = duration(200..=DAY_MS).default("60s");
        /// How many entries of a stream one request asks for.
        batch: usize = count(1..=10_000).default("500");
        /// The field that holds the data; the other fields are headers. Default: `data`; with
        /// `records`, the whole entry as a JSON object of strings.
        value: Option<String> = text().optional();
        /// The key of an entry. It is the extension `partitionkey` of events, for `order_by:
        /// partitionkey`, and the `key` of records.
        key: Option<RedisKey> = group().optional();
        /// Certificates to use instead of the system's.
        tls: Option<RedisTls> = group().optional();
        /// How long to try to connect at the start. A lost connection is retried without end.
        connect_within: Duration = duration(1..=DAY_MS).default("30s");
    }
}

options! {
    /// Where a key is taken from: exactly one.
    pub enum RedisKey = "key" {
        /// The name of the stream: its entries are handled one after the other.
        Stream as "stream" = bare(NOTHING);
        /// A field.
        Field(String) as "field" = text();
    }
}

options! {
    /// Files are PEM, and are read at the start.
    pub struct RedisTls = "tls", then RedisTls::checked {
        /// A file with the certificates of trusted authorities, instead of the system's.
        ca: Option<PathBuf> = path().optional();
        /// A file with the certificate to present to the server.
        cert: Option<PathBuf> = path().optional();
        /// The file with its private key.
        key: Option<PathBuf> = path().optional();
    }
}

impl RedisInput {
    /// Options with the defaults of a configuration.
    pub fn new<S: Into<String>>(
        url: impl Into<String>,
        streams: impl IntoIterator<Item = S>,
        group: impl Into<String>,
        consumer: impl Into<String>,
    ) -> Self {
        Self {
            url: Secret(url.into()),
            streams: streams.into_iter().map(Into::into).collect(),
            group: group.into(),
            consumer: consumer.into(),
            ..defaults_beside(&[
                ("url", "redis://host"),
                ("streams", "stream"),
                ("group", "group"),
                ("consumer", "consumer"),
            ])
        }
    }

    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        #[cfg(feature = "client")]
        if let Err(why) = crate::address::address(&self.url) {
            at.error("url", why, "for example `redis://127.0.0.1:6379`");
            return None;
        }
        if self.tls.is_some() && !self.url.starts_with("rediss:") {
            let text = "`tls` is for a server that is connected to by TLS";
            at.error("tls", text, "write the URL with `rediss://`, or leave `tls` out");
        }
        let is_again = |index: &usize| self.streams[..*index].contains(&self.streams[*index]);
        if let Some(index) = (0..self.streams.len()).find(is_again) {
            let text = format!("the stream `{}` is named twice", self.streams[index]);
            at.error("streams", text, "leave one of them out");
        }
        Some(self)
    }

    /// The name in reports, logs and dead letters.
    #[cfg(feature = "client")]
    pub(crate) fn described(&self) -> String {
        format!("redis:{}/{}", self.streams.join(","), self.group)
    }
}

impl RedisTls {
    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        let (cert, key) = (("cert", self.cert.is_some()), ("key", self.key.is_some()));
        at.both(cert, key, "name the certificate and its private key, or neither")?;
        Some(self)
    }

    /// Its files, by option.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let files = [("ca", &self.ca), ("cert", &self.cert), ("key", &self.key)];
        files.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?)))
    }
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use greenroom_config::{Yaml, read};

    use super::*;

    const NEEDED: &str = "url: 'redis://u:hunter2@h/1', stream: a, group: g, consumer: c";

    #[test]
    fn n01_every_option_takes_what_it_should_and_refuses_the_rest() {
        let rows: &[(&str, &str, &[&str])] = &[
            ("start", "latest", &["now", "1"]),
            ("start", "2026-01-31T12:00:00Z", &["2026-01-31"]),
            ("claim_after", "200ms", &["199ms", "25h", "30"]),
            ("batch", "1", &["0", "10001"]),
            ("value", "body", &["[a]"]),
            ("key", "{ stream: {} }", &["{}", "stream", "{ field: a, stream: {} }"]),
            ("key", "{ field: a }", &["{ field: '' }"]),
            ("connect_within", "1s", &["0s", "1"]),
        ];
        for (name, good, bad) in rows {
            let written = |value: &str| format!("{{ {NEEDED}, {name}: {value} }}");
            read::<RedisInput>(Yaml, &written(good)).unwrap();
            for bad in *bad {
                assert!(read::<RedisInput>(Yaml, &written(bad)).is_err(), "{name}: {bad}");
            }
        }
    }

    #[test]
    fn n01_what_does_not_go_together_is_told_with_what_to_write_and_without_secrets() {
        for (written, says) in [
            ("{ url: 'http://u:hunter2@h', stream: a, group: g, consumer: c }", "no URL"),
            (
                "{ url: 'redis://h', streams: [a, b, a], group: g, consumer: c }",
                "`a` is named twice",
            ),
            ("{ url: 'redis://h', streams: [], group: g, consumer: c }", "`streams`"),
            (&format!("{{ {NEEDED}, tls: {{ ca: a }} }}"), "connected to by TLS"),
            ("{ url: 'rediss://h', stream: a, group: g, consumer: c, tls: { cert: a } }", "`key`"),
        ] {
            let problems = read::<RedisInput>(Yaml, written).unwrap_err();
            let told: Vec<_> = problems.sorted().iter().map(|one| one.message.clone()).collect();
            let told = told.join("\n");
            assert!(told.contains(says) && !told.contains("hunter2"), "{written}: {told}");
        }
    }
}
