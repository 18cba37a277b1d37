//! The common part of consumers and producers: their configuration, and their errors.

use parking_lot::Mutex;
use rdkafka::{
    ClientConfig,
    config::RDKafkaLogLevel,
    error::{KafkaError, RDKafkaErrorCode},
    util::get_rdkafka_version,
};

use crate::{connection::Access, properties::Properties, unusable::Unusable};

/// Before this version, librdkafka loses its assignment when it commits during a cooperative
/// rebalance.
const OLDEST: i32 = 0x02_0a_00_00;

/// The configuration of a client: our properties, and then those that the user has set.
///
/// # Errors
/// The linked librdkafka is too old, or the user set a property that is ours, or one of the
/// `refused` ones, which would break a promise; and the next step.
pub(crate) fn config(
    Access { brokers, properties }: &Access,
    ours: &[(&'static str, String)],
    refused: &[&'static str],
    defaults: &[(&'static str, &'static str)],
) -> Result<ClientConfig, Unusable> {
    let (version, name) = get_rdkafka_version();
    if version < OLDEST {
        return Err(format!(
            "this program is linked with librdkafka {name}, which may lose partitions in a \
             rebalance; build it with 2.10 or newer"
        )
        .into());
    }
    let mut config = ClientConfig::new();
    // Some connection failures are logged at this level only.
    config.set_log_level(RDKafkaLogLevel::Info);
    // The name by which brokers know us, by default.
    config.set("client.id", "greenroom").set("bootstrap.servers", brokers);
    config.extend(defaults.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    for (name, value) in properties.iter() {
        let is_ours = ours.iter().any(|(ours, _)| *ours == name)
            || ["bootstrap.servers", "metadata.broker.list"].contains(&name);
        if is_ours || refused.contains(&name) {
            let because = match is_ours {
                true => "Greenroom sets it itself, by its own options",
                false => "what Greenroom promises would not hold with another value",
            };
            let why = format!("property `{name}` cannot be set here: {because}");
            return Err(Unusable::property(name, why));
        }
        config.set(name, value);
    }
    config.extend(ours.iter().map(|(name, value)| (name.to_string(), value.clone())));
    Ok(config)
}

/// Why a client could not be made, without the value of any property.
pub(crate) fn creation_error(error: KafkaError, properties: &Properties) -> Unusable {
    match error {
        KafkaError::ClientConfig(_, _, name, _) => Unusable::property(
            &name,
            format!(
                "librdkafka does not take property `{name}`: it does not know it, or not this value, or \
             this program was built without what it needs (cargo features `tls` and `zstd`)"
            ),
        ),
        // It may quote a value.
        other => {
            let text = other.to_string();
            let is_quoted = |value: &&str| value.len() > 3 && text.contains(value);
            match properties.iter().map(|(_, value)| value).find(is_quoted) {
                Some(_) => "the client could not be made with these properties".to_owned().into(),
                None => text.into(),
            }
        }
    }
}

/// What went wrong, for librdkafka.
pub(crate) fn code(error: &KafkaError) -> RDKafkaErrorCode {
    error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail)
}

/// librdkafka's own log lines.
pub(crate) fn log(client: &str, level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg
        | RDKafkaLogLevel::Alert
        | RDKafkaLogLevel::Critical
        | RDKafkaLogLevel::Error
        | RDKafkaLogLevel::Warning => {
            tracing::warn!("{client}: librdkafka: {facility}: {message}");
        }
        RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info | RDKafkaLogLevel::Debug => {
            tracing::debug!("{client}: librdkafka: {facility}: {message}");
        }
    }
}

/// Errors of connections: librdkafka reports these only in its log, once for each attempt.
#[derive(Default)]
pub(crate) struct Failures(Mutex<Option<String>>);

/// The prefix of librdkafka's line about such a failure.
const FAIL: &str = "FAIL";

impl Failures {
    /// Like [`log`], and remembers the last failure instead of logging each.
    pub(crate) fn log(&self, client: &str, level: RDKafkaLogLevel, facility: &str, message: &str) {
        if facility != FAIL {
            return log(client, level, facility, message);
        }
        tracing::debug!("{client}: librdkafka: {facility}: {message}");
        let failure = plain(message);
        let mut last = self.0.lock();
        // Among several attempts at one thing, not every error says what to correct.
        let says_more = last.as_deref().and_then(to_correct).is_some();
        if !says_more || to_correct(&failure).is_some() {
            *last = Some(failure);
        }
    }

    pub(crate) fn last(&self) -> Option<String> {
        self.0.lock().clone()
    }

    /// Brokers answer again.
    pub(crate) fn forget(&self) {
        *self.0.lock() = None;
    }
}

/// The effect of plain text on a TLS port.
const ENDED_AT_ONCE: &str = "it ends the connection before it has said a word";

/// Without the thread, and how long it took.
fn plain(message: &str) -> String {
    let named = message.strip_prefix("[thrd:").and_then(|rest| rest.split_once("]: "));
    let named = named.map_or(message, |(_, message)| message);
    let (failure, state) = named.split_once(" (after ").unwrap_or((named, ""));
    let failure = failure.replacen("/bootstrap: ", ": ", 1);
    let is_plain = !failure.starts_with("ssl") && !failure.starts_with("sasl_ssl");
    let ends = failure.contains("Disconnected") && state.contains("state APIVERSION_QUERY");
    if is_plain && ends { format!("{failure}: {ENDED_AT_ONCE}") } else { failure }
}

/// The correction that an operator has to make, from a connection's error; `None` if the error may
/// pass.
pub(crate) fn to_correct(failure: &str) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 7] = [
        (
            ENDED_AT_ONCE,
            "the broker speaks TLS at this port: set `tls: {}`, or name its port without TLS",
        ),
        (
            "connecting to a PLAINTEXT broker listener?",
            "the broker does not speak TLS at this port: name its port for TLS, or leave out `tls`",
        ),
        ("broker might require SASL authentication", "the broker wants a login: set `sasl`"),
        (
            "Unsupported SASL mechanism",
            "set `sasl.mechanism` to one that the broker takes: correct the credentials or the \
             broker's access rules",
        ),
        ("SASL", "correct the credentials or the broker's access rules"),
        ("SSL handshake failed", "correct `tls`: whom this side trusts, and what it shows"),
        ("certificate", "correct `tls`: whom this side trusts, and what it shows"),
    ];
    KNOWN.iter().find(|(words, _)| failure.contains(words)).map(|(_, next)| *next)
}

/// The problem, as far as an operator can do something about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matter {
    NotThere,
    /// It is not let in.
    NotLetIn,
    /// It may not do that.
    Forbidden,
    Unreachable,
    Other,
}

impl Matter {
    pub(crate) fn from_code(code: RDKafkaErrorCode) -> Self {
        use RDKafkaErrorCode as Code;
        match code {
            Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition => {
                Self::NotThere
            }
            Code::TopicAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::ClusterAuthorizationFailed => Self::Forbidden,
            Code::SaslAuthenticationFailed | Code::Authentication | Code::SSL => Self::NotLetIn,
            Code::AllBrokersDown
            | Code::BrokerTransportFailure
            | Code::Resolve
            | Code::OperationTimedOut
            | Code::RequestTimedOut => Self::Unreachable,
            _ => Self::Other,
        }
    }

    pub(crate) fn is_known(self) -> bool {
        self != Self::Other
    }

    /// It concerns connections only, and not the data.
    pub(crate) fn is_of_connections(self) -> bool {
        matches!(self, Self::NotLetIn | Self::Unreachable)
    }
}

/// A broker refuses the login, or the operation.
pub(crate) fn is_refused(code: RDKafkaErrorCode) -> bool {
    matches!(Matter::from_code(code), Matter::Forbidden | Matter::NotLetIn)
}

/// The meaning of an error for an operator, if librdkafka's own words do not say what to do.
pub(crate) fn advice(code: RDKafkaErrorCode) -> &'static str {
    match Matter::from_code(code) {
        Matter::NotThere => {
            "; it is looked for again until it is there: create it, or correct its name"
        }
        Matter::Forbidden | Matter::NotLetIn => {
            "; it is tried again until the broker allows it: correct the credentials or the \
             broker's access rules"
        }
        Matter::Unreachable => "; it is tried again, and nothing is lost meanwhile",
        Matter::Other => "",
    }
}

/// The same for an error that is not retried.
pub(crate) fn advice_at_once(code: RDKafkaErrorCode) -> &'static str {
    match Matter::from_code(code) {
        Matter::NotThere => "; create it, or correct its name",
        Matter::Forbidden | Matter::NotLetIn => {
            "; correct the credentials or the broker's access rules"
        }
        Matter::Unreachable => "; see that a broker runs there and can be reached",
        Matter::Other => "",
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::consumer::BaseConsumer;

    use super::*;

    fn failed(properties: &Properties) -> String {
        let ours = [("group.id", "g".into())];
        let access = Access { brokers: "127.0.0.1:1".to_owned(), properties: properties.clone() };
        let config = match config(&access, &ours, &["enable.partition.eof"], &[]) {
            Ok(config) => config,
            Err(unusable) => return unusable.why,
        };
        match config.create::<BaseConsumer>() {
            Ok(_) => panic!("it is taken"),
            Err(error) => creation_error(error, properties).why,
        }
    }

    #[test]
    fn f09_no_value_of_a_property_is_shown() {
        for (name, value) in [
            ("security.protocol", "hunter2-secret"),
            ("sasl.pasword", "hunter2-secret"),
            ("socket.timeout.ms", "hunter2-secret"),
            ("group.id", "hunter2-secret"),
        ] {
            let properties = Properties::from_iter([(name, value)]);
            let shown = format!("{properties:?}");
            assert!(shown.contains(name) && !shown.contains("hunter2"), "{shown}");
            let why = failed(&properties);
            assert!(!why.contains("hunter2") && why.len() > 20, "{why}");
            assert!(why.contains(name), "{why}");
        }
    }

    #[test]
    fn f10_a_failure_is_told_without_its_thread_and_with_what_to_correct() {
        let failures = Failures::default();
        let log = |message: &str| failures.log("kafka", RDKafkaLogLevel::Error, FAIL, message);
        let last = || failures.last().unwrap();
        log(
            "[thrd:b:1/bootstrap]: b:1/bootstrap: Connect to ipv4#b:1 failed: refused (after 0ms in state CONNECT)",
        );
        assert_eq!(
            (&*last(), to_correct(&last())),
            ("b:1: Connect to ipv4#b:1 failed: refused", None)
        );
        let ended = "Disconnected: connection closed by peer: receive 0 after POLLIN (after 1ms in state APIVERSION_QUERY)";
        log(&format!("[thrd:b:1/bootstrap]: b:1/bootstrap: {ended}"));
        assert!(to_correct(&last()).unwrap().contains("set `tls: {}`"), "{}", last());
        log(
            "[thrd:b:1/bootstrap]: b:1/bootstrap: Disconnected (after 9ms in state APIVERSION_QUERY)",
        );
        assert!(last().contains(ENDED_AT_ONCE), "{}", last());
        log("[thrd:b:1/bootstrap]: b:1/bootstrap: Connect failed (after 9ms in state CONNECT)");
        assert!(last().contains(ENDED_AT_ONCE), "it says more");
        failures.forget();
        assert_eq!(failures.last(), None);
    }

    #[test]
    fn f09_what_has_an_option_of_its_own_is_refused_as_a_property() {
        let properties = Properties::from_iter([("bootstrap.servers", "x:1")]);
        assert!(failed(&properties).contains("`bootstrap.servers` cannot be set here"));
        let properties = Properties::from_iter([("group.id", "x")]);
        assert!(failed(&properties).contains("`group.id` cannot be set here"));
        let properties = Properties::from_iter([("enable.partition.eof", "true")]);
        let why = failed(&properties);
        assert!(why.contains("cannot be set here: what Greenroom promises"), "{why}");
    }
}
