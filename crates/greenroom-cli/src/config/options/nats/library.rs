//! Inputs and outputs as the library has them.

use std::{path::PathBuf, sync::Arc};

use greenroom::Backoff;
use greenroom_bus::{
    kind::are_readable,
    sink::Sink,
    source::{InputSetup, Source},
};
use greenroom_config::At;
use greenroom_nats::{
    NatsKey, NatsServer,
    output::{BadSubject, NatsSink, NatsSinkMode, NatsSinkOptions, NatsSubject},
    source::{NatsLooking, NatsSource, NatsSourceOptions},
};

use super::{NatsAuth, NatsInput, NatsKeyFrom, NatsLetters, NatsMode, NatsOutput, NatsTls};

/// Connects, and finds or makes the consumer.
pub(super) async fn source(
    nats: &NatsInput,
    setup: &InputSetup,
) -> Result<Box<dyn Source>, String> {
    let source = NatsSource::open(&nats.server(), nats.options(setup)?).await;
    Ok(Box::new(source.map_err(|error| error.to_string())?))
}

/// What the consumer has not done, up to what is there now. The consumer is left alone.
pub(super) async fn looking(
    nats: &NatsInput,
    setup: &InputSetup,
) -> Result<Box<dyn Source>, String> {
    let source = NatsLooking::open(&nats.server(), nats.options(setup)?).await;
    Ok(Box::new(source.map_err(|error| error.to_string())?))
}

/// Reports files that cannot be read, and a key that is none.
pub(super) fn reach_input(nats: &NatsInput, at: &mut At<'_>) {
    reach_tls(nats.tls.as_ref(), at);
    if let Some(Err(why)) = nats.key.as_ref().map(NatsKeyFrom::to_library) {
        at.error("key", why, "for example `key: { template: \"{2}.{3}\" }`");
    }
}

fn reach_tls(tls: Option<&NatsTls>, at: &mut At<'_>) {
    are_readable(&mut at.inside("tls"), tls.into_iter().flat_map(files));
}

fn files(tls: &NatsTls) -> impl Iterator<Item = (&'static str, &PathBuf)> {
    let files = [("ca", &tls.ca), ("cert", &tls.cert), ("key", &tls.key)];
    files.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?)))
}

/// Connects.
pub(super) async fn sink(nats: &NatsOutput) -> Result<Arc<dyn Sink>, String> {
    let sink = NatsSink::open(&nats.server(), nats.options()?).await;
    Ok(Arc::new(sink.map_err(|error| error.to_string())?))
}

/// Reports files that cannot be read, and a subject that is none.
pub(super) fn reach_output(nats: &NatsOutput, at: &mut At<'_>) {
    reach_tls(nats.tls.as_ref(), at);
    if let Err(why) = nats.options() {
        at.error("subject", why, "for example `orders.new` or `orders.{subject}.{type}`");
    }
}

impl NatsLetters {
    /// Reports files that cannot be read, and a subject that is none.
    pub(crate) fn reach(&self, at: &mut At<'_>) {
        reach_tls(self.tls.as_ref(), at);
        if let Err(why) = self.library_subject() {
            at.error("subject", why, "for example `letters.orders`");
        }
    }
}

impl NatsOutput {
    /// Where to connect, and as whom.
    pub(crate) fn server(&self) -> NatsServer {
        NatsServer {
            domain: self.domain.clone(),
            connect_within: self.connect_within,
            ..server(&self.servers, self.auth.as_ref(), self.tls.as_ref())
        }
    }

    /// As the library has it.
    ///
    /// # Errors
    /// A subject that is none; a configuration that was checked has none.
    pub(crate) fn options(&self) -> Result<NatsSinkOptions, String> {
        let subject = self.subject.parse().map_err(|error: BadSubject| error.to_string())?;
        Ok(NatsSinkOptions {
            mode: match self.mode {
                NatsMode::Binary => NatsSinkMode::Binary,
                NatsMode::Structured => NatsSinkMode::Structured,
            },
            concurrency: self.concurrency,
            backoff: Backoff::new(self.backoff.from, self.backoff.to),
            probe: Backoff::new(self.probe.from, self.probe.to),
            ..NatsSinkOptions::new(subject)
        })
    }
}

impl NatsLetters {
    /// Where to connect, and as whom.
    pub(crate) fn server(&self) -> NatsServer {
        NatsServer {
            domain: self.domain.clone(),
            connect_within: self.connect_within,
            ..server(&self.servers, self.auth.as_ref(), self.tls.as_ref())
        }
    }

    /// As the library has it.
    ///
    /// # Errors
    /// It is no subject, or one of events, which not every letter has.
    pub(crate) fn library_subject(&self) -> Result<NatsSubject, String> {
        if self.subject.contains('{') {
            return Err(
                "a letter may have no event, so no field of one can be in its subject".to_owned()
            );
        }
        self.subject.parse().map_err(|error: BadSubject| error.to_string())
    }
}

impl NatsInput {
    /// Where to connect, and as whom.
    pub(crate) fn server(&self) -> NatsServer {
        NatsServer {
            domain: self.domain.clone(),
            connect_within: self.connect_within,
            ..server(&self.servers, self.auth.as_ref(), self.tls.as_ref())
        }
    }

    /// As the library has it. What is taken and not settled is with the input and the pools, which
    /// decide how much that may be.
    ///
    /// # Errors
    /// A key that is none; a configuration that was checked has none.
    fn options(&self, setup: &InputSetup) -> Result<NatsSourceOptions, String> {
        Ok(NatsSourceOptions {
            filters: self.subjects.clone().unwrap_or_default(),
            partitions: self.partitions.clone().map_or_else(Vec::new, |partitions| partitions.0),
            start: self.start,
            capacity: self.capacity.unwrap_or(setup.room),
            batch: self.batch,
            batch_bytes: self.batch_bytes,
            ack_wait: self.ack_wait,
            hold_bytes: self.hold,
            key: self.key.as_ref().map(NatsKeyFrom::to_library).transpose()?,
            records: setup.records.clone().map(Arc::new),
            ..NatsSourceOptions::new(&self.stream, &self.consumer)
        })
    }
}

impl NatsKeyFrom {
    /// As the library has it.
    ///
    /// # Errors
    /// A template that is none.
    pub(crate) fn to_library(&self) -> Result<NatsKey, String> {
        Ok(match self {
            Self::Subject => NatsKey::Subject,
            Self::Token(number) => NatsKey::Token(*number),
            Self::Template(text) => {
                NatsKey::Template(text.parse().map_err(|error| format!("key: {error}"))?)
            }
            Self::Header(name) => NatsKey::Header(name.clone()),
        })
    }
}

impl NatsAuth {
    fn to_library(&self) -> greenroom_nats::NatsAuth {
        use greenroom_nats::NatsAuth as Auth;
        match self {
            Self::Token(token) => Auth::Token(token.to_string()),
            Self::User(user) => {
                Auth::User { user: user.name.to_string(), password: user.password.to_string() }
            }
            Self::NKey(seed) => Auth::NKey(seed.to_string()),
            Self::Credentials(text) => Auth::Credentials(text.to_string()),
        }
    }
}

fn server(servers: &[String], auth: Option<&NatsAuth>, tls: Option<&NatsTls>) -> NatsServer {
    let mut server = NatsServer::at("");
    server.servers = servers.to_vec();
    server.auth = auth.map_or(greenroom_nats::NatsAuth::None, NatsAuth::to_library);
    if let Some(tls) = tls {
        server.require_tls = tls.required;
        server.root_certificates.clone_from(&tls.ca);
        server.client_certificate = tls.cert.clone().zip(tls.key.clone());
    }
    server
}
