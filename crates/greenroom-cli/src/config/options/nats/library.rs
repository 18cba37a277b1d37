//! Inputs and outputs as the library has them.

use std::sync::Arc;

use greenroom::Backoff;
use greenroom_nats::{
    NatsKey, NatsServer,
    output::{BadSubject, NatsSinkMode, NatsSinkOptions, NatsSubject},
    source::{NatsSourceOptions, NatsStart},
};

use super::{
    super::{pool::PoolConfig, records::RecordsConfig},
    NatsAuth, NatsInput, NatsKeyFrom, NatsLetters, NatsMode, NatsOutput, NatsTls, StartAt,
};

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
    /// A key or a rule for records that is none; a configuration that was checked has neither.
    pub(crate) fn options(
        &self,
        records: Option<&RecordsConfig>,
        run_ahead: usize,
        pools: &[PoolConfig],
    ) -> Result<NatsSourceOptions, String> {
        let held = |pool: &PoolConfig| {
            let workers = pool.autoscale.map_or(pool.workers, |autoscale| autoscale.max);
            pool.queue + workers * pool.batch.map_or(1, |batch| batch.events)
        };
        let all = pools.iter().map(held).fold(run_ahead, usize::saturating_add);
        let mapping = records.map(RecordsConfig::mapping).transpose()?;
        Ok(NatsSourceOptions {
            filters: self.subjects.clone().unwrap_or_default(),
            partitions: self.partitions.clone().map_or_else(Vec::new, |partitions| partitions.0),
            start: match self.start {
                StartAt::Earliest => NatsStart::Earliest,
                StartAt::Latest => NatsStart::Latest,
                StartAt::Time(time) => NatsStart::Time(time),
            },
            capacity: self.capacity.unwrap_or(all),
            batch: self.batch,
            batch_bytes: self.batch_bytes,
            ack_wait: self.ack_wait,
            hold_bytes: self.hold,
            key: self.key.as_ref().map(NatsKeyFrom::to_library).transpose()?,
            records: mapping.map(Arc::new),
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
