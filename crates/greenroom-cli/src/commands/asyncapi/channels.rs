//! The channels of a document, the operations on them and the servers behind them.

use std::path::Path;

use serde_json::{Map, Value, json};
use url::Url;

use super::messages::{ANY, DEAD_LETTER, Messages, generated};
use crate::config::{
    AttributeFrom, AttributeRule, Config, HandlerConfig, HandlerKind, HttpInput, HttpMode,
    InputConfig, InputKind, Kinds, LayerConfig, LettersTo, OutputConfig, OutputKind, RecordsConfig,
    RotateConfig, Word,
};

/// A place that events come from or go to.
pub(super) struct Channel {
    /// Its name in the document, and that of its operation: `input.NAME`, `handler.NAME`, ...
    pub(super) key: String,
    action: &'static str,
    title: String,
    /// A path; `null` in the document, where there is none that a reader could use.
    address: Option<String>,
    /// The types and patterns that pass; none for the dead letters, which have a message of their
    /// own.
    types: Vec<String>,
    /// The URL of an HTTP target, without what may be secret.
    target: Option<ChannelTarget>,
    /// Answers carry events, which go to the outputs.
    answers: bool,
    /// What AsyncAPI has no word for.
    details: Value,
}

struct ChannelTarget {
    name: String,
    protocol: String,
    host: String,
}

impl Channel {
    pub(super) fn all(config: &Config) -> Vec<Self> {
        let inputs = config.inputs.iter().map(|input| Self::input(input, config));
        let handlers = config.handlers.iter().map(Self::handler);
        let outputs = config.outputs.iter().map(Self::output);
        inputs.chain(handlers).chain(outputs).chain([Self::dead_letters(config)]).collect()
    }

    fn input(input: &InputConfig, config: &Config) -> Self {
        let known = input.records.as_ref().and_then(RecordsConfig::known_type);
        let (address, types, target) = match &input.kind {
            // What a file holds is not known, unless a rule says it; what of it is handled is.
            InputKind::File(file) => {
                let types = known.map_or_else(|| handled(config), |ty| vec![ty.to_owned()]);
                (address(&file.path), types, None)
            }
            // CloudEvents are taken beside what a rule makes.
            InputKind::Http(http) => (
                Some(http.path.clone()),
                handled(config),
                Some(ChannelTarget::listening(input, http)),
            ),
            InputKind::Kafka(kafka) => {
                let types = known.map_or_else(|| handled(config), |ty| vec![ty.to_owned()]);
                let topic = match kafka.topics.as_slice() {
                    [topic] if !topic.starts_with('^') => Some(topic.clone()),
                    _ => None,
                };
                let brokers = Brokers { brokers: &kafka.brokers, is_secure: kafka.tls.is_some() };
                (topic, types, Some(brokers.target(format!("input.{}", input.name))))
            }
            InputKind::Nats(nats) => {
                let types = known.map_or_else(|| handled(config), |ty| vec![ty.to_owned()]);
                let subject = match nats.subjects.as_deref() {
                    Some([subject]) => Some(subject.clone()),
                    _ => None,
                };
                let name = format!("input.{}", input.name);
                (subject, types, Some(ChannelTarget::nats(name, &nats.servers)))
            }
            InputKind::Generator(_) => (None, generated(config).cloned().collect(), None),
        };
        let kind = input.kind.key();
        let title = format!("The input `{}`", input.name);
        let mut details = json!({ "kind": kind });
        if let InputKind::Kafka(kafka) = &input.kind {
            details["topics"] = json!(kafka.topics);
            details["group"] = json!(kafka.group);
        }
        if let InputKind::Nats(nats) = &input.kind {
            details["stream"] = json!(nats.stream);
            details["consumer"] = json!(nats.consumer);
        }
        if let Some(records) = &input.records {
            details["records"] = self::records(records);
        }
        let key = format!("input.{}", input.name);
        Self { address, types, target, details, ..Self::new(key, "receive", title) }
    }

    fn handler(handler: &HandlerConfig) -> Self {
        let title = format!("The handler `{}`", handler.name);
        let target = match &handler.kind {
            HandlerKind::Http(http) => Url::parse(&http.url).ok(),
            _ => None,
        };
        Self {
            address: target.as_ref().map(|url| url.path().to_owned()),
            types: handler.on.clone(),
            target: target.map(|url| ChannelTarget::of(&handler.name, &url)),
            answers: matches!(handler.kind, HandlerKind::Http(_) | HandlerKind::Exec(_)),
            details: details(handler),
            ..Self::new(format!("handler.{}", handler.name), "send", title)
        }
    }

    fn output(output: &OutputConfig) -> Self {
        let name = format!("output.{}", output.name);
        let (address, target, details) = match &output.kind {
            OutputKind::File(file) => (address(&file.path), None, written(file.rotate)),
            OutputKind::Http(http) => {
                let url = Url::parse(&http.url).ok();
                let details = json!({ "kind": "http", "mode": http.mode.word() });
                let path = url.as_ref().map(|url| url.path().to_owned());
                (path, url.map(|url| ChannelTarget::of(&name, &url)), details)
            }
            OutputKind::Kafka(kafka) => {
                let brokers = Brokers { brokers: &kafka.brokers, is_secure: kafka.tls.is_some() };
                let details = json!({ "kind": "kafka", "mode": kafka.mode.word() });
                (Some(kafka.topic.clone()), Some(brokers.target(name)), details)
            }
            OutputKind::Nats(nats) => {
                let details = json!({ "kind": "nats", "mode": nats.mode.word() });
                (
                    Some(nats.subject.clone()),
                    Some(ChannelTarget::nats(name, &nats.servers)),
                    details,
                )
            }
        };
        Self {
            address,
            types: output.on.clone(),
            target,
            details,
            ..Self::new(
                format!("output.{}", output.name),
                "send",
                format!("The output `{}`", output.name),
            )
        }
    }

    fn dead_letters(config: &Config) -> Self {
        let (address, target, details) = match config.dead_letters.to() {
            LettersTo::Store(store) => (address(&store.path), None, json!({ "kind": "store" })),
            LettersTo::File(file) => (address(&file.path), None, written(file.rotate)),
            LettersTo::Kafka(kafka) => {
                let brokers = Brokers { brokers: &kafka.brokers, is_secure: kafka.tls.is_some() };
                let target = brokers.target(DEAD_LETTER.to_owned());
                (Some(kafka.topic.clone()), Some(target), json!({ "kind": "kafka" }))
            }
            LettersTo::Nats(nats) => {
                let target = ChannelTarget::nats(DEAD_LETTER.to_owned(), &nats.servers);
                (Some(nats.subject.clone()), Some(target), json!({ "kind": "nats" }))
            }
        };
        Self {
            address,
            target,
            details,
            ..Self::new(
                DEAD_LETTER.to_owned(),
                "send",
                "Events that could not be handled".to_owned(),
            )
        }
    }

    fn new(key: String, action: &'static str, title: String) -> Self {
        let (types, details) = (Vec::new(), Value::Null);
        Self { key, action, title, address: None, types, target: None, answers: false, details }
    }

    /// The channel, and that of its answers.
    pub(super) fn channels(&self, messages: &Messages) -> Vec<(String, Value)> {
        let mut channel = json!({
            "address": self.address,
            "title": self.title,
            "messages": references(self.keys(messages)),
        });
        if let Some(target) = &self.target {
            channel["servers"] = json!([{ "$ref": format!("#/servers/{}", target.name) }]);
        }
        let answers = self.answers.then(|| {
            let answers = json!({
                "address": null,
                "title": format!("{}: events that it answers with, which go to the outputs", self.title),
                "messages": references(vec![messages.key(ANY)]),
            });
            (self.answers_key(), answers)
        });
        [(self.key.clone(), channel)].into_iter().chain(answers).collect()
    }

    pub(super) fn operation(&self, messages: &Messages) -> Value {
        let channel = format!("#/channels/{}", self.key);
        let passing = self
            .keys(messages)
            .into_iter()
            .map(|key| json!({ "$ref": format!("{channel}/messages/{key}") }));
        let mut operation = json!({
            "action": self.action,
            "channel": { "$ref": channel },
            "title": self.title,
            "messages": passing.collect::<Vec<_>>(),
            "x-greenroom": self.details,
        });
        if self.target.as_ref().is_some_and(|target| target.protocol.starts_with("http")) {
            operation["bindings"] =
                json!({ "http": { "method": "POST", "bindingVersion": "0.3.0" } });
        }
        if self.answers {
            operation["reply"] =
                json!({ "channel": { "$ref": format!("#/channels/{}", self.answers_key()) } });
        }
        operation
    }

    pub(super) fn server(&self) -> Option<(String, Value)> {
        let target = self.target.as_ref()?;
        Some((target.name.clone(), json!({ "host": target.host, "protocol": target.protocol })))
    }

    fn answers_key(&self) -> String {
        format!("{}.answers", self.key)
    }

    fn keys<'a>(&self, messages: &'a Messages) -> Vec<&'a str> {
        match self.types.as_slice() {
            [] => vec![DEAD_LETTER],
            types => types.iter().map(|ty| messages.key(ty)).collect(),
        }
    }
}

impl ChannelTarget {
    /// Credentials and the query stay out: either may be a secret.
    fn of(name: &str, url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default();
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        Self {
            name: name.to_owned(),
            protocol: url.scheme().to_owned(),
            host: format!("{host}{port}"),
        }
    }
}

impl ChannelTarget {
    /// greenroom itself.
    fn listening(input: &InputConfig, http: &HttpInput) -> Self {
        let protocol = if http.tls.is_some() { "https" } else { "http" };
        Self {
            name: format!("input.{}", input.name),
            protocol: protocol.to_owned(),
            host: http.listen.0.to_string(),
        }
    }
}

impl ChannelTarget {
    /// The first of the servers, without the credentials that its URL may have.
    fn nats(name: String, servers: &[String]) -> Self {
        let first = servers.first().map_or("", String::as_str);
        let (scheme, rest) = first.split_once("://").unwrap_or(("nats", first));
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        let host = host.split('/').next().unwrap_or_default();
        Self { name, protocol: scheme.to_owned(), host: host.to_owned() }
    }
}

/// Where topics are.
struct Brokers<'a> {
    brokers: &'a [String],
    is_secure: bool,
}

impl Brokers<'_> {
    /// A server of a document has one host: the first, by which the others are found.
    fn target(&self, name: String) -> ChannelTarget {
        let protocol = if self.is_secure { "kafka-secure" } else { "kafka" };
        let host = self.brokers.first().cloned().unwrap_or_default();
        ChannelTarget { name, protocol: protocol.to_owned(), host }
    }
}

/// A file, a directory or a pattern; none for standard input and output.
fn address(path: &Path) -> Option<String> {
    (path != Path::new("-")).then(|| path.display().to_string())
}

/// Of a file that is written: what it is, and when it is put aside.
fn written(rotate: Option<RotateConfig>) -> Value {
    let mut details = json!({ "kind": "file" });
    if let Some(rotate) = rotate {
        details["rotate"] = json!({
            "bytes": rotate.size,
            "seconds": rotate.every.map(|every| every.as_secs()),
            "keep": rotate.keep,
        });
    }
    details
}

fn references(keys: Vec<&str>) -> Map<String, Value> {
    let reference = |key: &str| json!({ "$ref": format!("#/components/messages/{key}") });
    keys.into_iter().map(|key| (key.to_owned(), reference(key))).collect()
}

/// What becomes an attribute of a record, and what the record is. Texts that the rule names itself
/// may be secret.
fn records(records: &RecordsConfig) -> Value {
    let from = |rule: &AttributeRule| match &rule.from {
        AttributeFrom::Pointer(pointer) => json!({ "pointer": pointer }),
        AttributeFrom::Header(name) => json!({ "header": name }),
        other => json!(other.key()),
    };
    let named = [("subject", &records.subject), ("id", &records.id), ("time", &records.time)];
    let named = named.into_iter().filter_map(|(name, rule)| Some((name, rule.as_ref()?)));
    let extensions = records.extensions.iter().map(|rule| (rule.attribute.as_str(), rule));
    let required = [("type", &records.ty), ("source", &records.source)];
    let rules = required.into_iter().chain(named).chain(extensions);
    let rules: Map<_, _> = rules.map(|(name, rule)| (name.to_owned(), from(rule))).collect();
    json!({ "content_type": records.content_type, "attributes": rules })
}

/// Every type and pattern that a handler is `on`, each once, in the order of the file.
fn handled(config: &Config) -> Vec<String> {
    let mut types: Vec<String> = Vec::new();
    for ty in config.handlers.iter().flat_map(|handler| &handler.on) {
        if !types.contains(ty) {
            types.push(ty.clone());
        }
    }
    types
}

/// Of a handler: what it is, where it runs and what orders its events. Arguments and variables of
/// a program may be secret and are left out.
fn details(handler: &HandlerConfig) -> Value {
    let mut details = json!({
        "kind": kind(&handler.kind),
        "pool": handler.pool,
        "order_by": handler.order_by,
        "attempts": handler.retry.attempts,
    });
    if let HandlerKind::Exec(exec) = &handler.kind {
        details["program"] = json!(exec.command.first());
    }
    if let HandlerKind::Http(http) = &handler.kind {
        details["mode"] = match http.mode {
            HttpMode::Binary => json!("binary"),
            HttpMode::Structured => json!("structured"),
        };
    }
    let schemas = handler.layers.iter().filter_map(|layer| match layer {
        LayerConfig::Validation(schemas) => Some(schemas),
        _ => None,
    });
    let schemas: Map<_, _> = schemas
        .flat_map(|schemas| schemas.iter())
        .map(|schema| (schema.on.clone(), json!(schema.path.display().to_string())))
        .collect();
    if !schemas.is_empty() {
        details["validation"] = Value::Object(schemas);
    }
    details
}

fn kind(kind: &HandlerKind) -> &'static str {
    match kind {
        HandlerKind::Pass => "pass",
        HandlerKind::Log => "log",
        HandlerKind::Drop => "drop",
        HandlerKind::Simulate { .. } => "simulate",
        HandlerKind::Exec(_) => "exec",
        HandlerKind::Http(_) => "http",
    }
}
