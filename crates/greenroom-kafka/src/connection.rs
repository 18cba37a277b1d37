//! How to connect, by the options that inputs, outputs and dead letters share.

use std::path::PathBuf;

#[cfg(feature = "client")]
use greenroom_bus::kind::are_readable;
#[cfg(feature = "client")]
use greenroom_config::Word;
use greenroom_config::{At, Secret, flag, options, path, text, word, words};

use crate::properties::Properties;
#[cfg(feature = "client")]
use crate::unusable::Unusable;

/// What a client connects with.
#[cfg(feature = "client")]
#[derive(Debug, Clone)]
pub(crate) struct Access {
    /// Without any, a client connects to no broker.
    pub(crate) brokers: String,
    /// Those of the user, and those that follow from other options.
    pub(crate) properties: Properties,
}

#[cfg(feature = "client")]
impl Access {
    /// The same, connecting to no broker: for a look at whether all of it can be used.
    pub(crate) fn disconnected(self) -> Self {
        Self { brokers: String::new(), ..self }
    }

    /// For another client, without properties that begin so, and without `ours`, which it sets.
    pub(crate) fn without(&self, prefixes: &[&str], ours: &[(&'static str, String)]) -> Self {
        let mut properties = self.properties.without(prefixes);
        ours.iter().for_each(|(name, _)| _ = properties.unset(name));
        Self { brokers: self.brokers.clone(), properties }
    }
}

/// The options that inputs, outputs and dead letters share.
pub(crate) struct KafkaConnection<'a> {
    pub(crate) brokers: &'a [String],
    pub(crate) tls: Option<&'a KafkaTls>,
    pub(crate) sasl: Option<&'a KafkaSasl>,
    pub(crate) properties: &'a Properties,
    /// Properties that have an option in this place only.
    pub(crate) own: &'static [(&'static str, &'static str)],
}

options! {
    /// Files are PEM, and are read at the start.
    pub struct KafkaTls = "tls", then KafkaTls::cert_with_its_key {
        /// A file with the certificates of the authorities to trust, instead of the system's.
        ca: Option<PathBuf> = path().optional();
        /// A file with the certificate to present to the brokers.
        cert: Option<PathBuf> = path().optional();
        /// The file with its private key.
        key: Option<PathBuf> = path().optional();
        /// The passphrase of that file, if it is encrypted.
        key_password: Option<Secret<String>> = text().secret().optional();
        /// Whether the certificate of a broker must name its host.
        check_host: bool = flag().default("true");
    }
}

options! {
    /// The credentials. Set other mechanisms by `properties`.
    pub struct KafkaSasl = "sasl" {
        /// The SASL mechanism. `PLAIN` sends the password, so use it only with `tls`.
        mechanism: KafkaMechanism = word().default("SCRAM-SHA-512");
        /// The user.
        user: Secret<String> = text().secret();
        /// The password. Write `${NAME}` or `file:PATH` for secrets.
        password: Secret<String> = text().secret();
    }
}

words! {
    /// How a password is shown to be known.
    pub enum KafkaMechanism {
        /// It is sent.
        Plain = "PLAIN",
        /// By a challenge, with SHA-256.
        ScramSha256 = "SCRAM-SHA-256",
        /// By a challenge, with SHA-512.
        ScramSha512 = "SCRAM-SHA-512",
    }
}

impl KafkaTls {
    /// The files that it names, each with its option.
    #[cfg(feature = "client")]
    fn files(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let files = [("ca", &self.ca), ("cert", &self.cert), ("key", &self.key)];
        files.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?)))
    }

    fn cert_with_its_key(self, at: &mut At<'_>) -> Option<Self> {
        let help = "a broker is shown a certificate with its key: name both files";
        at.both(("cert", self.cert.is_some()), ("key", self.key.is_some()), help)?;
        Some(self)
    }
}

/// Properties that have an option of their own, by what they begin with.
const HAVE_AN_OPTION: [(&str, &str); 10] = [
    ("bootstrap.servers", "brokers"),
    ("metadata.broker.list", "brokers"),
    ("group.id", "group"),
    ("group.instance.id", "instance_id"),
    ("group.protocol", "protocol"),
    ("isolation.level", "isolation"),
    ("auto.offset.reset", "start"),
    ("compression.type", "compression"),
    ("compression.codec", "compression"),
    ("key.password", "tls.key_password"),
];

impl KafkaConnection<'_> {
    /// What is wrong in the option of this name, and what to do next.
    pub(crate) fn check(&self, at: &mut At<'_>) -> Option<()> {
        for broker in self.brokers {
            let port = broker.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
            let is_plain = !broker.contains([',', ' ', '/']) && !broker.starts_with(':');
            if port.is_none() || !is_plain {
                let shown = at.written("brokers").show(broker);
                let text = format!("`{shown}` is no broker");
                at.error(
                    "brokers",
                    text,
                    "a host and a port, such as `localhost:9092`; several are a list",
                );
                return None;
            }
        }
        if let Some((name, option)) = self.said_twice() {
            let key = format!("properties.{name}");
            let text = format!("`{name}` has an option of its own, `{option}`");
            at.error(&key, text, format!("leave it out, and write `{option}`"));
            return None;
        }
        Some(())
    }

    /// A property that has an option of its own, and that option.
    fn said_twice(&self) -> Option<(&str, &'static str)> {
        let (tls, sasl) = (self.tls.is_some(), self.sasl.is_some());
        self.properties.names().find_map(|name| {
            let belongs = |of: &str, given: bool| given && name.starts_with(of);
            let named = HAVE_AN_OPTION.iter().chain(self.own).find(|(own, _)| *own == name);
            let option = match named {
                Some((_, option)) => option,
                None if belongs("ssl.", tls) => "tls",
                None if belongs("sasl.", sasl) => "sasl",
                None if belongs("security.protocol", tls || sasl) => "tls` and `sasl",
                None => return None,
            };
            Some((name, option))
        })
    }

    /// Reports certificates that cannot be read, and what else `unusable` says of the options.
    #[cfg(feature = "client")]
    pub(crate) fn reach(&self, at: &mut At<'_>, unusable: impl FnOnce() -> Option<Unusable>) {
        let files = self.tls.into_iter().flat_map(KafkaTls::files);
        if !are_readable(&mut at.inside("tls"), files) {
            return;
        }
        let Some(Unusable { property, option, why }) = unusable() else { return };
        // Where the property or the option was written, if it was.
        let written = property.map(|name| format!("properties.{name}")).or(option);
        let written = written.filter(|name| at.has(name)).unwrap_or_default();
        let help =
            "docs/kafka.md says what can be set; librdkafka's CONFIGURATION.md has all properties";
        at.error(&written, why, help);
    }

    /// With these properties of the place.
    ///
    /// # Errors
    /// No broker is named, or a property has an option of its own.
    #[cfg(feature = "client")]
    pub(crate) fn access(&self, own: &[(&str, &str)]) -> Result<Access, Unusable> {
        if self.brokers.iter().all(|broker| broker.trim().is_empty()) {
            return Err("`brokers` is empty; name at least one, as HOST:PORT".to_owned().into());
        }
        if let Some((name, option)) = self.said_twice() {
            let why = format!("property `{name}` has an option of its own, `{option}`");
            return Err(Unusable::property(name, why));
        }
        let mut properties = self.properties.clone();
        for (name, value) in own {
            properties.set(*name, *value);
        }
        match (self.tls, self.sasl) {
            (None, None) => {}
            (Some(_), None) => _ = properties.set("security.protocol", "ssl"),
            (None, Some(_)) => _ = properties.set("security.protocol", "sasl_plaintext"),
            (Some(_), Some(_)) => _ = properties.set("security.protocol", "sasl_ssl"),
        }
        if let Some(tls) = self.tls {
            for (option, file) in tls.files() {
                let property = match option {
                    "ca" => "ssl.ca.location",
                    "cert" => "ssl.certificate.location",
                    _ => "ssl.key.location",
                };
                properties.set(property, file.display().to_string());
            }
            if let Some(password) = &tls.key_password {
                properties.set("ssl.key.password", password.as_str());
            }
            let checks = if tls.check_host { "https" } else { "none" };
            properties.set("ssl.endpoint.identification.algorithm", checks);
        }
        if let Some(sasl) = self.sasl {
            properties.set("sasl.mechanism", sasl.mechanism.word());
            properties.set("sasl.username", sasl.user.as_str());
            properties.set("sasl.password", sasl.password.as_str());
        }
        Ok(Access { brokers: self.brokers.join(","), properties })
    }
}
