//! What to read, and how.

use std::{path::PathBuf, time::Duration};

use greenroom_bus::source::StartAt;
use greenroom_config::{
    At, Secret, bare, count, duration, group, options, path, schema::Group, text, texts,
    units::DAY_MS,
};

use crate::connection::Server;

const NOTHING: &Group = &Group::without_settings("the name of the stream");

options! {
    /// Reads streams of Redis as a consumer of a group: CloudEvents, or what `records` makes events
    /// of. Each entry is acknowledged by itself, once it is settled. Needs Redis 6.2 or later, and
    /// a greenroom that was built with the cargo feature `redis`. docs/redis.md says more.
    pub struct RedisInput = "a redis input", then RedisInput::checked {
        /// The server: `redis://HOST:PORT`, with a user, a password and a database where they are
        /// needed: `redis://USER:PASSWORD@HOST:PORT/DATABASE`. `rediss://` is TLS.
        url: Secret<String> = text().secret();
        /// The streams. Each is a partition with an order of its own, and is made when it does not
        /// exist.
        streams: Vec<String> = texts().alias(&["stream"]);
        /// The consumer group, which is made when it does not exist.
        group: String = text();
        /// The name of this process in the group. Keep it over restarts: what was in hand before is
        /// then read first. No two processes may have the same name.
        consumer: String = text();
        /// Where a group begins that does not exist yet: `earliest`, `latest`, or a time (RFC 3339)
        /// such as `2026-01-31T12:00:00Z`.
        start: StartAt = text().to::<StartAt>().default("earliest");
        /// What another consumer has not acknowledged for so long is read here. Entries that a
        /// process has in hand are kept from others, by telling the server so.
        claim_after: Duration = duration(200..=DAY_MS).default("60s");
        /// How many entries of a stream are asked for at a time.
        batch: usize = count(1..=10_000).default("500");
        /// The field that has the data; all others are headers. Without it, the data of an event is
        /// in the field `data`, and a record is the whole entry, as a JSON object of texts.
        value: Option<String> = text().optional();
        /// What the key of an entry is taken from: events have it as their extension
        /// `partitionkey`, for `order_by: partitionkey`, and records as their `key`.
        key: Option<RedisKey> = group().optional();
        /// Certificates, where those of the system do not do.
        tls: Option<RedisTls> = group().optional();
        /// How long it is tried to connect at first. Once connected, it is tried again without end.
        connect_within: Duration = duration(1..=DAY_MS).default("30s");
    }
}

options! {
    /// What a key is taken from: exactly one.
    pub enum RedisKey = "key" {
        /// The name of the stream: all of its entries have one order.
        Stream as "stream" = bare(NOTHING);
        /// A field.
        Field(String) as "field" = text();
    }
}

options! {
    /// Files are PEM, and are read at the start.
    pub struct RedisTls = "tls", then RedisTls::checked {
        /// A file with the certificates of the authorities to trust, in place of those of the
        /// system.
        ca: Option<PathBuf> = path().optional();
        /// A file with the certificate to show to the server.
        cert: Option<PathBuf> = path().optional();
        /// The file with its private key.
        key: Option<PathBuf> = path().optional();
    }
}

impl RedisInput {
    /// These streams of this server, read by this consumer of this group; all else as it is where
    /// nothing is said.
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
            start: StartAt::Earliest,
            claim_after: Duration::from_secs(60),
            batch: 500,
            value: None,
            key: None,
            tls: None,
            connect_within: Duration::from_secs(30),
        }
    }

    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        if let Err(why) = Server::address(&self.url) {
            at.error("url", why, "for example `redis://127.0.0.1:6379`");
        } else if self.tls.is_some() && !self.url.starts_with("rediss:") {
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

    /// What reports, logs and dead letters call it.
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

    /// Its files, with the options that name them.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let files = [("ca", &self.ca), ("cert", &self.cert), ("key", &self.key)];
        files.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?)))
    }
}

#[cfg(test)]
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

    #[test]
    fn what_is_said_nowhere_is_as_the_declaration_has_it() {
        let written = "{ url: 'redis://h', stream: a, group: g, consumer: c }";
        let declared = read::<RedisInput>(Yaml, written).unwrap();
        assert_eq!(declared, RedisInput::new("redis://h", ["a"], "g", "c"));
    }
}
