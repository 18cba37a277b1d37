//! Values in OTLP, and their scope.

use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    resource::v1::Resource,
};

/// A text.
pub(super) fn text(key: &str, text: impl Into<String>) -> KeyValue {
    value(key, Value::StringValue(text.into()))
}

/// A whole number.
pub(super) fn whole(key: &str, number: impl Into<i64>) -> KeyValue {
    value(key, Value::IntValue(number.into()))
}

/// Any value.
pub(super) fn value(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// Nanoseconds since 1970.
pub(super) fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The scope: this program.
pub(super) fn scope() -> Option<InstrumentationScope> {
    Some(InstrumentationScope {
        name: "greenroom".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    })
}

/// The identity of this greenroom: attributes of the environment, and its own.
pub(super) fn resource(service_name: &str, attributes: &[(String, String)]) -> Resource {
    let own = [
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", instance()),
        ("telemetry.sdk.name", "greenroom".to_owned()),
        ("telemetry.sdk.language", "rust".to_owned()),
        ("telemetry.sdk.version", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let mut all = vec![text("service.name", service_name)];
    all.extend(attributes.iter().map(|(key, value)| text(key, value)));
    let is_new = |key: &str| !attributes.iter().any(|(known, _)| known == key);
    all.extend(own.into_iter().filter(|(key, _)| is_new(key)).map(|(key, value)| text(key, value)));
    all.push(whole("process.pid", std::process::id()));
    Resource { attributes: all, ..Resource::default() }
}

/// A random UUID, of version 4.
fn instance() -> String {
    let random: u128 = rand::random();
    let uuid = random & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{uuid:032x}");
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o06_an_instance_is_a_uuid_of_version_4() {
        let uuid = instance();
        assert_eq!(uuid.len(), 36);
        assert_eq!(&uuid[14..15], "4", "{uuid}");
        assert!("89ab".contains(&uuid[19..20]), "{uuid}");
        assert_ne!(uuid, instance());
    }
}
