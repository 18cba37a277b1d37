//! The signals, the endpoint and the credentials: from the configuration, or else from the
//! variables of OpenTelemetry.

use std::time::Duration;

use greenroom_bus::http::{Poster, TargetConfig, Tls, check_header, check_url};
use percent_encoding::percent_decode_str;
use url::Url;

use super::counts::Signal;
use crate::config::OtlpConfig;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// The default endpoint of a collector.
const USUAL_ENDPOINT: &str = "http://localhost:4318";

/// The signals, the endpoint and the credentials.
pub(super) struct Settings {
    /// The endpoint of all signals.
    endpoint: Url,
    headers: Vec<(String, String)>,
    tls: Tls,
    timeout: Duration,
    pub(super) service_name: String,
    /// Attributes of the resource besides that name.
    pub(super) attributes: Vec<(String, String)>,
    pub(super) traces: bool,
    pub(super) sample: f64,
    pub(super) keys: bool,
    pub(super) metrics: bool,
    pub(super) every: Duration,
    pub(super) logs: bool,
}

impl Settings {
    /// # Errors
    /// The settings that cannot be used, without secret parts.
    pub(super) fn read(
        config: &OtlpConfig,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let env = |name: &str| env(name).filter(|value| !value.trim().is_empty());
        let endpoint = match &config.endpoint {
            Some(endpoint) => parsed("`endpoint`", endpoint)?,
            None => parsed(ENDPOINT, &env(ENDPOINT).unwrap_or_else(|| USUAL_ENDPOINT.to_owned()))?,
        };
        let headers = match config.headers.is_empty() {
            false => config.headers.to_vec(),
            true => headers(&env(HEADERS).unwrap_or_default())?,
        };
        let attributes = pairs(ATTRIBUTES, &env(ATTRIBUTES).unwrap_or_default())?;
        let (named, attributes): (Vec<_>, Vec<_>) =
            attributes.into_iter().partition(|(key, _)| key == "service.name");
        let service_name = config.service_name.clone().or_else(|| env(SERVICE_NAME));
        let named = named.into_iter().next().map(|(_, name)| name);
        let service_name = service_name.or(named).unwrap_or_else(|| "greenroom".to_owned());
        let tls = config.tls.as_ref().map(|tls| tls.read().map_err(|unread| unread.to_string()));
        Ok(Self {
            endpoint,
            headers,
            tls: tls.transpose()?.unwrap_or_default(),
            timeout: config.timeout,
            service_name,
            attributes,
            traces: config.traces,
            sample: config.sample,
            keys: config.keys,
            metrics: config.metrics,
            every: config.every,
            logs: config.logs,
        })
    }

    /// The poster of this signal. Connects to nothing yet.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn poster(&self, signal: Signal) -> Result<Poster, String> {
        Poster::new(&TargetConfig {
            url: self.url(signal).into(),
            timeout: self.timeout,
            headers: self.headers.clone(),
            tls: self.tls.clone(),
            ..TargetConfig::default()
        })
    }

    /// The endpoint of a signal.
    fn url(&self, signal: Signal) -> Url {
        let mut url = self.endpoint.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["v1", signal.name()]);
        }
        url
    }
}

/// The endpoint, which may contain credentials: no message repeats it.
fn parsed(from: &str, text: &str) -> Result<Url, String> {
    let wrong = |why: String| format!("{from} cannot be used: {why}");
    check_url(text).map_err(|why| wrong(why.to_string()))?;
    Url::parse(text).map_err(|why| wrong(why.to_string()))
}

fn headers(text: &str) -> Result<Vec<(String, String)>, String> {
    let headers = pairs(HEADERS, text)?;
    for (name, value) in &headers {
        check_header(name, value).map_err(|why| format!("{HEADERS}: {why}"))?;
    }
    Ok(headers)
}

/// `key=value,key=value`, with percent-encoded values (W3C Baggage, as in OpenTelemetry).
///
/// # Errors
/// The place of an invalid pair, without its text.
fn pairs(from: &str, text: &str) -> Result<Vec<(String, String)>, String> {
    let parts = text.split(',').map(str::trim).enumerate().filter(|(_, part)| !part.is_empty());
    let pair = |(place, part): (usize, &str)| {
        let wrong = || format!("{from}: entry {} is no `name=value`", place + 1);
        let (key, value) = part.split_once('=').ok_or_else(wrong)?;
        let value = percent_decode_str(value.trim()).decode_utf8().map_err(|_| wrong())?;
        let key = key.trim();
        if key.is_empty() { Err(wrong()) } else { Ok((key.to_owned(), value.into_owned())) }
    };
    parts.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options in this text.
    fn config(text: &str) -> OtlpConfig {
        let text = format!(
            "inputs: {{ i: {{ generator: {{ count: 1, types: [a] }} }} }}\n\
             handlers: {{ h: {{ on: a, pass: {{}} }} }}\ntelemetry: {{ otlp: {text} }}\n"
        );
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("greenroom.yaml");
        std::fs::write(&file, text).unwrap();
        let (config, problems) = crate::config::load_as_written(&file, &[]);
        config.unwrap_or_else(|| panic!("{}", problems.render(false))).otlp().unwrap().clone()
    }

    fn with(text: &str, env: &[(&str, &str)]) -> Result<Settings, String> {
        let find = |name: &str| {
            let found = env.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Settings::read(&config(text), find)
    }

    #[test]
    fn o06_the_variables_of_opentelemetry_count_where_the_configuration_is_silent() {
        let env = [
            (ENDPOINT, "https://collector:4318/otlp/"),
            (HEADERS, "x-tenant=blue, authorization=Basic%20c2VjcmV0"),
            (SERVICE_NAME, "orders"),
            (ATTRIBUTES, "service.name=other,deployment.environment.name=eu%2Fwest"),
        ];
        let found = with("{}", &env).unwrap();
        assert_eq!(found.url(Signal::Logs).as_str(), "https://collector:4318/otlp/v1/logs");
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let sent = [header("x-tenant", "blue"), header("authorization", "Basic c2VjcmV0")];
        assert_eq!(found.headers, sent);
        assert_eq!(found.service_name, "orders");
        assert_eq!(found.attributes, [header("deployment.environment.name", "eu/west")]);
        let written = "{ endpoint: 'http://here:1', headers: { a: b }, service_name: mine }";
        let found = with(written, &env).unwrap();
        assert_eq!(found.url(Signal::Traces).as_str(), "http://here:1/v1/traces");
        assert_eq!(found.headers, [header("a", "b")]);
        assert_eq!(found.service_name, "mine");
        assert_eq!(with("{}", &env[3..]).unwrap().service_name, "other");
        let usual = with("{}", &[(ENDPOINT, " ")]).unwrap();
        assert_eq!(usual.url(Signal::Metrics).as_str(), "http://localhost:4318/v1/metrics");
        assert_eq!(usual.service_name, "greenroom");
    }

    #[test]
    fn o06_a_variable_that_cannot_be_used_is_named_without_its_value() {
        for (name, value) in [
            (ENDPOINT, "secret"),
            (ENDPOINT, "ftp://user:secret@host"),
            (HEADERS, "secret"),
            (HEADERS, "content-type=secret"),
            (HEADERS, "a=%FFsecret"),
            (ATTRIBUTES, "=secret"),
        ] {
            let Err(why) = with("{}", &[(name, value)]) else { panic!("{name}={value} is taken") };
            assert!(why.contains(name) && !why.contains("secret"), "{why}");
        }
    }
}
