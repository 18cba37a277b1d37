//! The data sent to OpenTelemetry.

use std::time::Duration;

use greenroom_bus::http::HttpTls;
use greenroom_config::{
    Secret, duration, flag, group, number, options, text, units::DAY_MS, url, variables,
};

options! {
    /// Traces, metrics and logs for OpenTelemetry. docs/tracing.md describes them.
    pub struct TelemetryConfig = "telemetry" {
        /// Sends them by OTLP. Needs a greenroom that was built with `otlp`.
        otlp: Option<OtlpConfig> = group().optional();
    }
}

options! {
    /// OTLP over HTTP, as protobuf. An endpoint that does not answer delays no event: data that
    /// does not fit into the queues is dropped and counted.
    pub struct OtlpConfig = "otlp" {
        /// The endpoint for all three, to which `/v1/traces` and the like are appended. By default,
        /// the environment variable `OTEL_EXPORTER_OTLP_ENDPOINT`, or else `http://localhost:4318`.
        endpoint: Option<Secret<String>> = url().secret().optional();
        /// Headers to add to each request. Write `${NAME}` or `file:PATH` for secrets. By default,
        /// those of `OTEL_EXPORTER_OTLP_HEADERS`.
        headers: Secret<Vec<(String, String)>> = variables().secret().default("{}");
        /// The authorities to trust, and the certificate to present. By default, the authorities
        /// that the system trusts. Its files are read only at startup.
        tls: Option<HttpTls> = group().optional();
        /// How long a request may take.
        timeout: Duration = duration(1..=DAY_MS).default("10s");
        /// The name of this greenroom there. By default, the environment variable
        /// `OTEL_SERVICE_NAME`, or `service.name` of `OTEL_RESOURCE_ATTRIBUTES`, or else
        /// `greenroom`.
        service_name: Option<String> = text().optional();
        /// Whether spans of deliveries are sent.
        traces: bool = flag().default("true");
        /// The share of deliveries whose spans are sent, for events without a `traceparent`. An
        /// event with one is recorded if its producer says so there, whatever this is.
        sample: f64 = number(0.0..=1.0).default("0.01");
        /// With `false`, spans contain neither the key of an event nor its subject.
        keys: bool = flag().default("true");
        /// Whether the figures of `/metrics` are sent.
        metrics: bool = flag().default("true");
        /// How often the figures are sent.
        every: Duration = duration(1_000..=DAY_MS).default("60s");
        /// Whether log lines are sent, those that `--log-level` shows.
        logs: bool = flag().default("true");
    }
}
