//! What the options open.

use std::{path::PathBuf, sync::Arc};

use greenroom_bus::{
    dead_letter::{
        DeadLetterStore,
        redrive::{InputOfLetters, LetterChoice, Redriven},
    },
    kind::are_readable,
    record::Mapping,
    sink::Sink,
    source::{InputSetup, Source},
};
use greenroom_config::{At, Word};

use super::{KafkaConnection, KafkaInput, KafkaLetters, KafkaOutput, KafkaPartitioner, KafkaTls};
use crate::{
    Kept, KeptHeaders, Properties, RecordFormat, RedriveOptions, Unusable,
    output::{KafkaDeadLetters, KafkaDeadLettersOptions, KafkaSink, KafkaSinkOptions},
    source::{KafkaLooking, KafkaSource, KafkaSourceOptions},
};

/// Joins the group, in the background.
pub(super) fn source(kafka: &KafkaInput, setup: &InputSetup) -> Result<Box<dyn Source>, String> {
    let source = KafkaSource::open(kafka.options(setup.records.clone()));
    Ok(Box::new(source.map_err(|error| error.to_string())?))
}

/// What the group has not done, up to what is there now. The group is not joined.
pub(super) fn looking(kafka: &KafkaInput, setup: &InputSetup) -> Result<Box<dyn Source>, String> {
    let source = KafkaLooking::new(kafka.options(setup.records.clone()));
    Ok(Box::new(source.map_err(|error| error.to_string())?))
}

/// Reports files that cannot be read, and properties that cannot be used.
pub(super) fn reach_input(kafka: &KafkaInput, at: &mut At<'_>) {
    if reach_tls(kafka.tls.as_ref(), at)
        && let Err(why) = KafkaSource::check(&kafka.options(None))
    {
        unusable(at, why);
    }
}

fn reach_tls(tls: Option<&KafkaTls>, at: &mut At<'_>) -> bool {
    are_readable(&mut at.inside("tls"), tls.iter().flat_map(|tls| tls.files()))
}

/// Where the property or the option was written, if it was.
fn unusable(at: &mut At<'_>, Unusable { property, option, why }: Unusable) {
    let written = property.map(|name| format!("properties.{name}")).or(option);
    let written = written.filter(|name| at.has(name)).unwrap_or_default();
    let help =
        "docs/kafka.md says what can be set; librdkafka's CONFIGURATION.md has all properties";
    at.error(&written, why, help);
}

/// Connects in the background.
pub(super) fn sink(kafka: &KafkaOutput) -> Result<Arc<dyn Sink>, String> {
    let sink = KafkaSink::open(kafka.options()?);
    Ok(Arc::new(sink.map_err(|error| error.to_string())?))
}

/// Reports files that cannot be read, and properties that cannot be used.
pub(super) fn reach_output(kafka: &KafkaOutput, at: &mut At<'_>) {
    if reach_tls(kafka.tls.as_ref(), at)
        && let Ok(options) = kafka.options()
        && let Err(why) = KafkaSink::check(&options)
    {
        unusable(at, why);
    }
}

/// Reports files that cannot be read, and properties that cannot be used.
pub(super) fn reach_letters(kafka: &KafkaLetters, at: &mut At<'_>) {
    if reach_tls(kafka.tls.as_ref(), at)
        && let Err(why) = KafkaDeadLetters::check(&kafka.options())
    {
        unusable(at, why);
    }
}

/// Connects in the background.
pub(super) fn letters(kafka: &KafkaLetters) -> Result<Arc<dyn DeadLetterStore>, String> {
    let letters = KafkaDeadLetters::open(&kafka.options());
    Ok(Arc::new(letters.map_err(|error| error.to_string())?))
}

/// Sends the records of letters back to the brokers of their inputs.
pub(super) fn redrive(
    letters: &KafkaLetters,
    choice: LetterChoice,
    inputs: &[InputOfLetters<'_>],
    tells: &mut dyn FnMut(&Redriven),
) -> Result<Redriven, String> {
    let inputs = inputs.iter().filter_map(|(kind, setup)| {
        let kafka = kind.as_any().downcast_ref::<KafkaInput>()?;
        Some((setup.name.clone(), kafka.options(setup.records.clone())))
    });
    let options = RedriveOptions {
        properties: letters.connection().library_properties(),
        inputs: inputs.collect(),
        choice,
        ..RedriveOptions::new(letters.brokers.join(","), &letters.topic)
    };
    crate::redrive(&options, tells).map_err(|why| why.to_string())
}

impl KafkaInput {
    /// As the library has it.
    pub(crate) fn options(&self, records: Option<Mapping>) -> KafkaSourceOptions {
        let mut properties = self.connection().library_properties();
        properties.set("group.protocol", self.protocol.word());
        properties.set("isolation.level", self.isolation.word());
        if let Some(id) = &self.instance_id {
            properties.set("group.instance.id", id);
        }
        KafkaSourceOptions {
            start: self.start,
            from: self.from,
            format: records.map_or(RecordFormat::CloudEvents, |mapping| {
                RecordFormat::Mapped(Box::new(mapping))
            }),
            keeps: Kept { headers: self.kept_headers(), timestamp: self.keep_timestamp },
            remembers_done: self.remember_done,
            metadata_limit: self.metadata_limit,
            drain_budget: self.drain_budget,
            guard: self.guard.clone(),
            properties,
            ..KafkaSourceOptions::new(self.brokers.join(","), &self.group, &self.topics)
        }
    }

    fn kept_headers(&self) -> KeptHeaders {
        match self.keep_headers.as_deref() {
            None => KeptHeaders::None,
            Some([all]) if all == "all" => KeptHeaders::All,
            Some(names) => KeptHeaders::Named(names.to_vec()),
        }
    }
}

impl KafkaOutput {
    /// As the library has it.
    ///
    /// # Errors
    /// A key that is none; a configuration that was checked has none.
    pub(crate) fn options(&self) -> Result<KafkaSinkOptions, String> {
        let mut properties = self.connection().library_properties();
        properties.set("compression.type", self.compression.word());
        properties.set("message.max.bytes", self.max_message.to_string());
        let partitioner = match self.partitioner {
            KafkaPartitioner::Murmur2 => "murmur2_random",
            KafkaPartitioner::Crc32 => "consistent_random",
            KafkaPartitioner::Fnv1a => "fnv1a_random",
        };
        properties.set("partitioner", partitioner);
        let key = self.key.as_ref().map(|key| key.parse()).transpose();
        Ok(KafkaSinkOptions {
            key: key.map_err(|error| format!("key: {error}"))?,
            mode: self.mode,
            properties,
            ..KafkaSinkOptions::new(self.brokers.join(","), &self.topic)
        })
    }
}

impl KafkaLetters {
    /// As the library has it.
    pub(crate) fn options(&self) -> KafkaDeadLettersOptions {
        let mut properties = self.connection().library_properties();
        properties.set("compression.type", self.compression.word());
        let options = KafkaDeadLettersOptions::new(self.brokers.join(","), &self.topic);
        KafkaDeadLettersOptions { properties, ..options }
    }
}

impl KafkaTls {
    /// The files that it names, each with its option.
    fn files(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let files = [("ca", &self.ca), ("cert", &self.cert), ("key", &self.key)];
        files.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?)))
    }
}

impl KafkaConnection<'_> {
    fn library_properties(&self) -> Properties {
        let mut properties: Properties = self.properties.iter().cloned().collect();
        let protocol = match (self.tls, self.sasl) {
            (None, None) => None,
            (Some(_), None) => Some("ssl"),
            (None, Some(_)) => Some("sasl_plaintext"),
            (Some(_), Some(_)) => Some("sasl_ssl"),
        };
        if let Some(protocol) = protocol {
            properties.set("security.protocol", protocol);
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
        properties
    }
}
