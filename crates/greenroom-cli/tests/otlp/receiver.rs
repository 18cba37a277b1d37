//! An endpoint of OTLP over HTTP, which keeps what it is sent.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, Ordering},
    },
    thread,
    time::Duration,
};

use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::ExportLogsServiceRequest, metrics::v1::ExportMetricsServiceRequest,
        trace::v1::ExportTraceServiceRequest,
    },
    common::v1::{AnyValue, KeyValue, any_value::Value},
    logs::v1::LogRecord,
    metrics::v1::Metric,
    trace::v1::Span,
};
use prost::Message;

/// The status of an endpoint that takes a request and never answers.
pub(crate) const NEVER: u16 = 0;

/// What was sent and answered with 200.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) spans: Vec<Span>,
    pub(crate) metrics: Vec<Metric>,
    pub(crate) logs: Vec<LogRecord>,
    /// The resource of each request.
    pub(crate) resources: Vec<Vec<KeyValue>>,
    /// The headers of each request, in lower case, a line each.
    pub(crate) headers: Vec<String>,
}

/// A receiver that lives as long as the test.
pub(crate) struct Receiver {
    pub(crate) url: String,
    seen: Arc<Mutex<Seen>>,
    status: Arc<AtomicU16>,
}

impl Receiver {
    /// Takes all that it is sent.
    pub(crate) fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    /// The same on a listener of the test's own.
    pub(crate) fn on(listener: TcpListener) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (seen, status) = (Arc::<Mutex<Seen>>::default(), Arc::new(AtomicU16::new(200)));
        let (kept, answered) = (seen.clone(), status.clone());
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (kept, answered) = (kept.clone(), answered.clone());
                thread::spawn(move || serve(BufReader::new(connection), &kept, &answered));
            }
        });
        Self { url, seen, status }
    }

    /// Answers so from now on.
    pub(crate) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(mut reader: BufReader<impl Read + Write>, kept: &Mutex<Seen>, status: &AtomicU16) {
    while let Some((head, body)) = read(&mut reader) {
        let status = status.load(Ordering::SeqCst);
        match status {
            NEVER => thread::sleep(Duration::from_secs(60)),
            200 => kept.lock().unwrap().keep(&head, &body),
            _ => {}
        }
        let answer = format!("HTTP/1.1 {status} So\r\ncontent-length: 0\r\n\r\n");
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The head and the body of a request; none at the end of the connection.
fn read(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some(found) = line.to_lowercase().strip_prefix("content-length: ") {
            length = found.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

impl Seen {
    fn keep(&mut self, head: &str, body: &[u8]) {
        let path = head.split(' ').nth(1).unwrap();
        self.headers.push(head.to_lowercase());
        let resource = match path {
            "/v1/traces" => {
                let request = ExportTraceServiceRequest::decode(body).unwrap();
                let of = request.resource_spans.into_iter().next().unwrap();
                self.spans.extend(of.scope_spans.into_iter().flat_map(|scope| scope.spans));
                of.resource
            }
            "/v1/metrics" => {
                let request = ExportMetricsServiceRequest::decode(body).unwrap();
                let of = request.resource_metrics.into_iter().next().unwrap();
                self.metrics.extend(of.scope_metrics.into_iter().flat_map(|scope| scope.metrics));
                of.resource
            }
            "/v1/logs" => {
                let request = ExportLogsServiceRequest::decode(body).unwrap();
                let of = request.resource_logs.into_iter().next().unwrap();
                self.logs.extend(of.scope_logs.into_iter().flat_map(|scope| scope.log_records));
                of.resource
            }
            other => panic!("nothing of OTLP is at {other}"),
        };
        self.resources.push(resource.unwrap().attributes);
    }
}

/// The value of an attribute, as text.
pub(crate) fn attribute(of: &[KeyValue], key: &str) -> Option<String> {
    shown(of.iter().find(|found| found.key == key)?.value.as_ref())
}

/// A value, as text.
pub(crate) fn shown(value: Option<&AnyValue>) -> Option<String> {
    Some(match value?.value.as_ref()? {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    })
}
