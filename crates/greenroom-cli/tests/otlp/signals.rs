//! Metrics and logs, and who is told what (O06).

use opentelemetry_proto::tonic::metrics::v1::{metric::Data, number_data_point::Value as Number};

use crate::otlp::{
    daemon::{Daemon, wait},
    receiver::{Receiver, attribute, shown},
    stage::{Stage, events},
};

const RUN: &str = "inputs: { in: { file: { path: in } } }
handlers: { all: { on: '**', order_by: subject, pass: {} } }
outputs: { o: { file: { path: out } } }
";

#[test]
fn o06_metrics_and_logs_arrive_the_last_of_them_too() {
    let receiver = Receiver::start();
    let otlp = format!(
        "telemetry: {{ otlp: {{ endpoint: '{}', traces: false, every: 1h }} }}",
        receiver.url
    );
    let stage = Stage::with(&format!("{RUN}{otlp}"));
    stage.write_events("in", &events(100));
    let run = stage.command("--log-level trace run greenroom.yaml").output().unwrap();
    assert!(run.status.success(), "{run:?}");
    let seen = receiver.seen();
    let value = |name: &str, label: &str| {
        let found = seen.metrics.iter().rfind(|metric| metric.name == name);
        let Some(Data::Sum(sum)) = found.and_then(|metric| metric.data.clone()) else {
            panic!("{name} in {seen:#?}")
        };
        let has = |value: &str| label.is_empty() || value == label;
        let mut points = sum.data_points.into_iter();
        points
            .find(|point| {
                let mut values = point.attributes.iter().filter_map(|of| shown(of.value.as_ref()));
                label.is_empty() || values.any(|value| has(&value))
            })
            .map(|point| (point.value, point.start_time_unix_nano))
            .unwrap()
    };
    let (taken, began) = value("greenroom_events_taken_total", "");
    assert_eq!(taken, Some(Number::AsInt(100)));
    assert!(began > 1_700_000_000_000_000_000, "{began}");
    assert_eq!(value("greenroom_events_settled_total", "handled").0, Some(Number::AsInt(100)));
    assert!(seen.metrics.iter().any(|metric| matches!(metric.data, Some(Data::Histogram(_)))));
    assert!(!seen.logs.is_empty(), "{seen:#?}");
    for line in &seen.logs {
        assert!(line.severity_number > 0 && line.time_unix_nano > 1_700_000_000_000_000_000);
    }
}

#[test]
fn o06_logs_are_those_that_the_log_shows() {
    let receiver = Receiver::start();
    let otlp = format!(
        "telemetry: {{ otlp: {{ endpoint: '{}', traces: false, metrics: false }} }}",
        receiver.url
    );
    let stage = Stage::with(&format!("{RUN}admin: {{ listen: '127.0.0.1:0' }}\n{otlp}"));
    stage.write_events("in", &[]);
    let daemon = Daemon::start(&stage);
    let line = wait(|| {
        let is = |line: &&_| body(line).contains("the admin listener is open");
        receiver.seen().logs.iter().find(is).cloned()
    });
    assert_eq!((line.severity_text.as_str(), line.severity_number), ("INFO", 9));
    assert_eq!(attribute(&line.attributes, "address").unwrap(), daemon.address);
    drop(daemon);
    let quiet = stage.command("--log-level off run greenroom.yaml").output().unwrap();
    assert!(quiet.status.success());
}

fn body(line: &opentelemetry_proto::tonic::logs::v1::LogRecord) -> String {
    shown(line.body.as_ref()).unwrap_or_default()
}

#[test]
fn o06_secrets_go_to_the_endpoint_and_nowhere_else() {
    let receiver = Receiver::start();
    let url = receiver.url.replace("http://", "http://user:hunter2@");
    let otlp = format!(
        "admin: {{ listen: '127.0.0.1:0' }}
telemetry: {{ otlp: {{ endpoint: '{url}', headers: {{ x-api-key: '${{KEY}}' }}, every: 1s }} }}"
    );
    let stage =
        Stage::with(&format!("{}{otlp}", RUN.replace("path: in", "path: in, follow: true")));
    stage.write_events("in", &events(3));
    let daemon = Daemon::start_with(&stage, |command| {
        command.env("KEY", "s3cr3t").env("RUST_LOG", "trace");
    });
    wait(|| (!receiver.seen().metrics.is_empty()).then_some(()));
    let headers = receiver.seen().headers;
    assert!(headers.iter().all(|head| head.contains("x-api-key: s3cr3t")), "{headers:?}");
    assert!(headers.iter().all(|head| head.contains("authorization: basic ")), "{headers:?}");
    receiver.answer(401);
    wait(|| daemon.log().contains("refuses the data").then_some(()));
    let log = daemon.log();
    let run = daemon.stop();
    let seen = receiver.seen();
    let told = format!("{log}{run:?}{:?}{:?}", seen.logs, seen.metrics);
    for secret in ["s3cr3t", "hunter2", "dXNlcjpodW50ZXIy"] {
        assert!(!told.contains(secret), "{secret} is told");
    }
}
