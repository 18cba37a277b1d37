//! Traces of real runs (O06).

use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use serde_json::{Value, json};

use crate::otlp::{
    receiver::{Receiver, attribute},
    server::{Answer, Server},
    stage::{Stage, event},
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PRODUCER: &str = "00f067aa0ba902b7";

/// A configuration that sends traces alone, with more options.
fn sending(receiver: &Receiver, options: &str, rest: &str) -> String {
    format!(
        "inputs: {{ orders: {{ file: {{ path: in }} }} }}
outputs: {{ o: {{ file: {{ path: out }} }} }}
telemetry: {{ otlp: {{ endpoint: '{}', metrics: false, logs: false, {options} }} }}
{rest}",
        receiver.url
    )
}

fn with(mut event: Value, traceparent: &str) -> Value {
    event["traceparent"] = json!(traceparent);
    event
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn traceparent(span: &Span) -> String {
    format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id))
}

#[test]
fn o06_a_receiver_gets_the_whole_trace_of_a_delivery() {
    let receiver = Receiver::start();
    let service = Server::start(|number, _| match number {
        0 => Answer::Status(503, ""),
        _ => Answer::Status(
            200,
            "ce-specversion: 1.0\r\nce-id: bill-1\r\nce-source: /bills\r\nce-type: bill.sent\r\n",
        ),
    });
    let handlers = format!(
        "pools: {{ erp: {{ workers: 2 }} }}
handlers:
  bills: {{ on: '**', pool: erp, order_by: subject, retry: {{ backoff: 1ms..2ms }}, http: {{ url: '{}' }} }}",
        service.url
    );
    let stage = Stage::with(&sending(&receiver, "sample: 0, service_name: shop", &handlers));
    let order = event("o-1", "order.placed", "customer-7", json!({}));
    stage.write_events("in", &[with(order, &format!("00-{TRACE}-{PRODUCER}-01"))]);
    stage.run().counted(0, [1, 1, 0, 0]);
    let seen = receiver.seen();
    let [wait, first, second] = &seen.spans[..] else { panic!("{seen:#?}") };
    assert_eq!(attribute(&seen.resources[0], "service.name").as_deref(), Some("shop"));
    assert!(seen.spans.iter().all(|span| hex(&span.trace_id) == TRACE), "{seen:#?}");
    // producer, waiting, attempts
    assert_eq!(hex(&wait.parent_span_id), PRODUCER);
    assert_eq!((&*wait.name, wait.kind()), ("wait bills", SpanKind::Internal));
    for attempt in [first, second] {
        assert_eq!((&*attempt.name, attempt.kind()), ("process bills", SpanKind::Consumer));
        assert_eq!(attempt.parent_span_id, wait.span_id);
        assert_eq!(hex(&attempt.links[0].span_id), PRODUCER);
        assert!(attempt.start_time_unix_nano >= wait.end_time_unix_nano);
        assert!(attempt.end_time_unix_nano > attempt.start_time_unix_nano);
    }
    assert!(second.start_time_unix_nano >= first.end_time_unix_nano);
    let of = |span: &Span, name| attribute(&span.attributes, name).unwrap_or_default();
    for (name, value) in [
        ("greenroom.handler", "bills"),
        ("greenroom.pool", "erp"),
        ("greenroom.key", "customer-7"),
        ("messaging.destination.name", "orders"),
        ("messaging.message.id", "o-1"),
        ("cloudevents.event_type", "order.placed"),
        ("greenroom.attempt", "1"),
        ("greenroom.outcome", "retry"),
        ("error.type", "retry"),
    ] {
        assert_eq!(of(first, name), value, "{name}");
    }
    let status = first.status.as_ref().unwrap();
    assert!(status.code == 2 && status.message.contains("503"), "{status:?}");
    assert_eq!(
        (of(second, "greenroom.attempt"), of(second, "error.type")),
        ("2".into(), "".into())
    );
    assert_eq!((of(second, "greenroom.outcome"), &second.status), ("handled".into(), &None));
    // Each request comes after its attempt, what is made of the event after the last.
    let requests = service.requests.lock().unwrap();
    for (request, attempt) in requests.iter().zip([first, second]) {
        assert_eq!(request.header("traceparent"), Some(&*traceparent(attempt)));
        assert_eq!(request.header("ce-traceparent"), Some(&*traceparent(attempt)));
    }
    let out = stage.read("out");
    assert_eq!(
        (&out[0]["id"], &out[0]["traceparent"]),
        (&json!("bill-1"), &json!(traceparent(second)))
    );
}

#[test]
fn o06_nothing_is_sent_of_what_is_not_sampled() {
    let receiver = Receiver::start();
    let pass = "handlers: { all: { on: '**', pass: {} } }";
    let stage = Stage::with(&sending(&receiver, "sample: 0", pass));
    let unsampled = format!("00-{TRACE}-{PRODUCER}-00");
    stage.write_events(
        "in",
        &[
            event("a", "t", "s", json!({})),
            with(event("b", "t", "s", json!({})), &unsampled),
            with(event("c", "t", "s", json!({})), "malformed"),
        ],
    );
    stage.run().counted(0, [3, 3, 0, 0]);
    assert!(receiver.seen().headers.is_empty(), "{:?}", receiver.seen());
    let out = stage.read("out");
    assert_eq!(
        out.iter().map(|event| event.get("traceparent")).collect::<Vec<_>>(),
        [None, Some(&json!(unsampled)), Some(&json!("malformed")),]
    );
}

#[test]
fn o06_a_traceparent_that_is_malformed_or_missing_begins_a_trace_without_keys_where_they_are_not_wanted()
 {
    let receiver = Receiver::start();
    let pass = "handlers: { all: { on: '**', order_by: subject, pass: {} } }";
    let stage = Stage::with(&sending(&receiver, "sample: 1, keys: false", pass));
    stage.write_events(
        "in",
        &[
            event("a", "t", "private", json!({})),
            with(event("b", "t", "private", json!({})), "00-malformed"),
            with(event("c", "t", "private", json!({})), &format!("00-{TRACE}-{PRODUCER}-00")),
        ],
    );
    stage.run().counted(0, [3, 3, 0, 0]);
    let seen = receiver.seen();
    assert_eq!(seen.spans.len(), 4, "{seen:#?}");
    let waiting: Vec<_> = seen.spans.iter().filter(|span| span.name == "wait all").collect();
    assert!(waiting.iter().all(|span| span.parent_span_id.is_empty()));
    assert_ne!(waiting[0].trace_id, waiting[1].trace_id);
    assert!(!format!("{seen:?}").contains("private"), "{seen:#?}");
    for event in &stage.read("out")[..2] {
        let id = event["id"].as_str().unwrap();
        let of = |span: &&Span| {
            attribute(&span.attributes, "cloudevents.event_id").as_deref() == Some(id)
        };
        let attempt = seen.spans.iter().filter(of).find(|span| span.name == "process all").unwrap();
        assert_eq!(event["traceparent"], traceparent(attempt));
    }
}

/// Keeps each line that it is given, and answers that it is done.
const WORKER: &str = r#"while read -r line; do
  echo "$line" >>lines
  rest=${line#*:\"}
  echo "{\"token\":\"${rest%%\"*}\",\"outcome\":\"success\"}"
done"#;

#[test]
fn o06_the_line_of_a_worker_process_comes_after_its_attempt() {
    let receiver = Receiver::start();
    let exec = "handlers: { all: { on: '**', exec: { command: [sh, worker.sh] } } }";
    let stage = Stage::with(&sending(&receiver, "sample: 1", exec));
    stage.write("worker.sh", WORKER);
    stage.write_events("in", &[event("a", "t", "s", json!({}))]);
    let run = stage.run();
    run.counted(0, [1, 1, 0, 0]);
    let spans = receiver.seen().spans;
    let attempt = spans.iter().find(|span| span.name == "process all").unwrap();
    let lines = stage.read("lines");
    assert_eq!(lines[0]["event"]["traceparent"], traceparent(attempt), "{lines:?}");
}
