//! Lines of the log, as OTLP has them.

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

/// Where lines go, while they are exported: logging begins before the configuration is read.
static LINES: RwLock<Option<Arc<Queue<LogRecord>>>> = RwLock::new(None);

thread_local! {
    /// What this thread logs is not exported: it exports.
    static IS_EXPORTING: Cell<bool> = const { Cell::new(false) };
}

/// Exports lines from now on, or no more.
pub(super) fn go_to(queue: Option<Arc<Queue<LogRecord>>>) {
    *LINES.write() = queue;
}

/// Keeps what the calling thread logs out of what is exported, so that no line is about itself.
pub(super) fn leave_this_thread_out() {
    IS_EXPORTING.set(true);
}

/// Hands the lines that it is given to their queue, while they are exported.
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

/// What a line says.
#[derive(Default)]
struct Parts {
    message: String,
    fields: Vec<KeyValue>,
}

impl Parts {
    fn add(&mut self, field: &Field, found: Value) {
        match (field.name(), found) {
            ("message", Value::StringValue(message)) => self.message = message,
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
