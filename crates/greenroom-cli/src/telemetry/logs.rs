//! Lines of the log in OTLP form.

use std::{cell::Cell, fmt, sync::Arc, time::SystemTime};

use opentelemetry_proto::tonic::{
    collector::logs::v1::ExportLogsServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value::Value},
    logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber},
    resource::v1::Resource,
};
use parking_lot::RwLock;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::layer::{Context, Layer};

use super::{
    queue::Queue,
    values::{nanos, scope, text, value},
};

/// The queue of lines, while they are exported: logging begins before the configuration is read.
static LINES: RwLock<Option<Arc<Queue<LogRecord>>>> = RwLock::new(None);

thread_local! {
    /// Whether this thread exports: then its log lines are not exported.
    static IS_EXPORTING: Cell<bool> = const { Cell::new(false) };
}

/// Exports lines to this queue from now on, or ends the export.
pub(super) fn go_to(queue: Option<Arc<Queue<LogRecord>>>) {
    *LINES.write() = queue;
}

/// Excludes log lines of the calling thread from the export, so that no line is about itself.
pub(super) fn leave_this_thread_out() {
    IS_EXPORTING.set(true);
}

/// Passes its lines to their queue, while they are exported.
pub(crate) struct LogLines;

impl<S: Subscriber> Layer<S> for LogLines {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        if IS_EXPORTING.get() {
            return;
        }
        let queue = LINES.read().clone();
        if let Some(queue) = queue {
            queue.push(record(event));
        }
    }
}

fn record(event: &Event<'_>) -> LogRecord {
    let (now, metadata) = (nanos(SystemTime::now()), event.metadata());
    let mut parts = Parts::default();
    event.record(&mut parts);
    parts.fields.push(text("target", metadata.target()));
    LogRecord {
        time_unix_nano: now,
        observed_time_unix_nano: now,
        severity_number: severity(*metadata.level()).into(),
        severity_text: metadata.level().as_str().to_owned(),
        body: Some(AnyValue { value: Some(Value::StringValue(parts.message)) }),
        attributes: parts.fields,
        trace_id: parts.trace_id,
        ..LogRecord::default()
    }
}

fn severity(level: Level) -> SeverityNumber {
    match level {
        Level::ERROR => SeverityNumber::Error,
        Level::WARN => SeverityNumber::Warn,
        Level::INFO => SeverityNumber::Info,
        Level::DEBUG => SeverityNumber::Debug,
        Level::TRACE => SeverityNumber::Trace,
    }
}

/// The contents of a line.
#[derive(Default)]
struct Parts {
    message: String,
    /// For a line about an event that is in a trace.
    trace_id: Vec<u8>,
    fields: Vec<KeyValue>,
}

impl Parts {
    fn add(&mut self, field: &Field, found: Value) {
        match (field.name(), found) {
            ("message", Value::StringValue(message)) => self.message = message,
            ("trace_id", Value::StringValue(id)) => {
                let id = u128::from_str_radix(&id, 16).map(u128::to_be_bytes);
                self.trace_id = id.map_or_else(|_| Vec::new(), Vec::from);
            }
            (name, found) => self.fields.push(value(name, found)),
        }
    }
}

impl Visit for Parts {
    fn record_str(&mut self, field: &Field, text: &str) {
        self.add(field, Value::StringValue(text.to_owned()));
    }

    fn record_bool(&mut self, field: &Field, is_so: bool) {
        self.add(field, Value::BoolValue(is_so));
    }

    fn record_i64(&mut self, field: &Field, number: i64) {
        self.add(field, Value::IntValue(number));
    }

    fn record_u64(&mut self, field: &Field, number: u64) {
        self.add(
            field,
            match i64::try_from(number) {
                Ok(number) => Value::IntValue(number),
                Err(_) => Value::StringValue(number.to_string()),
            },
        );
    }

    fn record_f64(&mut self, field: &Field, number: f64) {
        self.add(field, Value::DoubleValue(number));
    }

    fn record_debug(&mut self, field: &Field, found: &dyn fmt::Debug) {
        self.add(field, Value::StringValue(format!("{found:?}")));
    }
}

/// A request with these lines.
pub(super) fn request(resource: Resource, lines: Vec<LogRecord>) -> ExportLogsServiceRequest {
    let scope_logs = vec![ScopeLogs { scope: scope(), log_records: lines, ..ScopeLogs::default() }];
    let of = ResourceLogs { resource: Some(resource), scope_logs, ..ResourceLogs::default() };
    ExportLogsServiceRequest { resource_logs: vec![of] }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct KeptLines(Arc<Mutex<Vec<LogRecord>>>);

    impl<S: Subscriber> Layer<S> for KeptLines {
        fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
            self.0.lock().push(record(event));
        }
    }

    #[test]
    fn o06_a_line_about_an_event_is_in_its_trace() {
        let kept = KeptLines::default();
        let subscriber = tracing_subscriber::registry().with(kept.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(id = "1", trace_id = "4bf92f3577b34da6a3ce929d0e0e4736", "dead letter");
            tracing::warn!(id = "2", trace_id = None::<&str>, "dead letter");
        });
        let kept = kept.0.lock();
        let traces: Vec<_> = kept.iter().map(|line| line.trace_id.as_slice()).collect();
        let id = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes();
        assert_eq!(traces, [&id[..], &[]]);
        let names: Vec<_> = kept[0].attributes.iter().map(|field| field.key.as_str()).collect();
        assert_eq!(names, ["id", "target"], "it has a field of its own in a record");
    }
}
