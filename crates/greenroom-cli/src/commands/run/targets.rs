//! What is posted to: the targets of `http` handlers and outputs, and greenroom itself by `http`
//! inputs. Their options change while greenroom runs.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use greenroom::Backoff;
use greenroom_bus::{
    handler::{
        HandlerFactory,
        http::{self as handler, HttpFactory},
    },
    http::{HttpAuth, HttpTls, NoRow, NoVerdict, On, StatusMap, TargetConfig, Tls, Verdict},
    sink::{
        Rotate, Sink,
        file::{FileSink, FileSinkOptions},
        http::{Batching, HttpSink, HttpSinkConfig, HttpSinkMode},
    },
    source::{InputKind, InputServer, InputSetup},
};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{kafka, nats};
use crate::config::{
    DurationRange, HttpBatch, HttpConfig, HttpMode, HttpOutput, HttpOutputMode, OutputConfig,
    OutputKind, RotateConfig,
};
use crate::report::{AllAnswers, Answers};

/// Those that there are, by name.
#[derive(Default)]
pub(crate) struct Targets {
    handlers: Mutex<HashMap<String, HttpFactory>>,
    /// Of each name the last one, which its engine holds: also while it is removed and not done.
    outputs: Mutex<HashMap<String, Weak<HttpSink>>>,
    /// Of inputs that others send to.
    servers: Mutex<HashMap<String, Arc<dyn InputServer>>>,
    /// Dead letters that go to a topic.
    letters: Mutex<Option<Arc<kafka::Letters>>>,
}

impl Targets {
    /// The factory of a handler.
    ///
    /// # Errors
    /// Why its options cannot be used.
    pub(super) fn factory(
        &self,
        name: &str,
        http: &HttpConfig,
    ) -> Result<Arc<dyn HandlerFactory>, String> {
        let factory = HttpFactory::new(handler_config(http)?)?;
        self.handlers.lock().insert(name.to_owned(), factory.clone());
        Ok(Arc::new(factory))
    }

    /// Posts by other options from now on; false where they are the same.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub(super) fn reconfigure_handler(
        &self,
        name: &str,
        http: &HttpConfig,
    ) -> Result<bool, String> {
        let factory = self.handlers.lock().get(name).cloned();
        factory.map_or(Ok(false), |factory| factory.reconfigure(handler_config(http)?))
    }

    /// The sink of an output. Called on the runtime of the engine.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(super) async fn sink(&self, output: &OutputConfig) -> Result<Arc<dyn Sink>, String> {
        match &output.kind {
            OutputKind::File(file) => {
                let options =
                    FileSinkOptions { truncate: file.truncate, rotate: file.rotate.map(rotate) };
                let sink = FileSink::open(&file.path, options);
                Ok(Arc::new(sink.map_err(|error| error.to_string())?))
            }
            OutputKind::Http(http) => {
                let sink =
                    HttpSink::open(output_config(http)?).map_err(|error| error.to_string())?;
                let sink = Arc::new(sink);
                self.outputs.lock().insert(output.name.clone(), Arc::downgrade(&sink));
                Ok(sink)
            }
            OutputKind::Kafka(config) => kafka::sink(config),
            OutputKind::Nats(config) => nats::sink(config).await,
        }
    }

    /// Delivers by other options from now on; false where they are the same.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub(super) fn reconfigure_output(&self, name: &str, http: &HttpOutput) -> Result<bool, String> {
        let sink = self.outputs.lock().get(name).and_then(Weak::upgrade);
        let Some(sink) = sink else { return Ok(false) };
        sink.reconfigure(output_config(http)?).map_err(|error| error.to_string())
    }
}

impl Targets {
    /// Where dead letters go, which is a topic.
    pub(super) fn letters(&self, letters: Arc<kafka::Letters>) {
        *self.letters.lock() = Some(letters);
    }

    /// Where dead letters go, if that is a topic.
    pub(super) fn known_letters(&self) -> Option<Arc<kafka::Letters>> {
        self.letters.lock().clone()
    }

    /// The server of an input, which is there from now on.
    pub(super) fn server(&self, name: &str, server: Arc<dyn InputServer>) {
        self.servers.lock().insert(name.to_owned(), server);
    }

    /// It was not added, or is removed: what it is storing is stored, and it takes nothing more.
    pub(super) fn forget_server(&self, name: &str) -> Option<Arc<dyn InputServer>> {
        let server = self.servers.lock().remove(name)?;
        server.close();
        Some(server)
    }

    /// Judges what is sent to it by other options from now on; false where they are the same.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub(super) fn reconfigure_input(
        &self,
        wanted: &dyn InputKind,
        setup: &InputSetup,
    ) -> Result<bool, String> {
        let server = self.servers.lock().get(&setup.name).cloned();
        server.map_or(Ok(false), |server| server.reconfigure(wanted, setup))
    }

    /// How many requests an input that others send to has answered with each status.
    pub(super) fn answers(&self, input: &str) -> Option<Answers> {
        self.servers.lock().get(input).map(|server| server.answers())
    }

    /// What of such an input finds no room, and why.
    pub(super) fn trouble(&self, input: &str) -> Option<String> {
        self.servers.lock().get(input)?.trouble()
    }

    /// Takes nothing more, and waits until what was being stored is answered, but no longer than
    /// this. What each has answered, by its name.
    pub(super) async fn close_servers(&self, within: Duration) -> AllAnswers {
        let all: Vec<_> = self.servers.lock().drain().collect();
        all.iter().for_each(|(_, server)| server.close());
        let until = Instant::now() + within;
        let mut answers = AllAnswers::new();
        for (name, server) in all {
            server.answered(until.saturating_duration_since(Instant::now())).await;
            answers.insert(name, server.answers());
        }
        answers
    }
}

/// When a file is put aside.
pub(super) fn rotate(when: RotateConfig) -> Rotate {
    Rotate { size: when.size, every: when.every, keep: when.keep }
}

fn tls(tls: Option<&HttpTls>) -> Result<Tls, String> {
    tls.map_or(Ok(Tls::default()), |tls| tls.read().map_err(|unread| unread.to_string()))
}

/// The options of a handler, with what its files hold.
fn handler_config(http: &HttpConfig) -> Result<handler::HttpConfig, String> {
    let usual = handler::HttpConfig::default();
    Ok(handler::HttpConfig {
        url: http.url.to_string(),
        headers: http.headers.to_vec(),
        auth: http.auth.as_ref().map(HttpAuth::to_bus),
        tls: tls(http.tls.as_ref())?,
        timeout: http.timeout,
        max_response: usize::try_from(http.max_response).unwrap_or(usize::MAX),
        mode: match http.mode {
            HttpMode::Binary => handler::Mode::Binary,
            HttpMode::Structured => handler::Mode::Structured,
        },
        pass: http.pass,
        status: status_map(&http.status)?,
        ..usual
    })
}

/// The options of an output, with what its files hold.
fn output_config(http: &HttpOutput) -> Result<HttpSinkConfig, String> {
    Ok(HttpSinkConfig {
        target: TargetConfig {
            url: http.url.to_string(),
            headers: http.headers.to_vec(),
            auth: http.auth.as_ref().map(HttpAuth::to_bus),
            tls: tls(http.tls.as_ref())?,
            timeout: http.timeout,
            ..TargetConfig::default()
        },
        mode: match http.mode {
            HttpOutputMode::Binary => HttpSinkMode::Binary,
            HttpOutputMode::Structured => HttpSinkMode::Structured,
            HttpOutputMode::Batch => {
                let HttpBatch { events, bytes, within } = http.batch;
                HttpSinkMode::Batch(Batching { events, bytes, within })
            }
        },
        concurrency: http.concurrency,
        backoff: backoff(http.backoff),
        status: status_map(&http.status)?,
        ..HttpSinkConfig::default()
    })
}

/// The status map of an `http` handler or output.
///
/// # Errors
/// What is wrong with its rows; a configuration that was checked has none.
pub(crate) fn status_map(rows: &[(String, String)]) -> Result<StatusMap, String> {
    let rows = rows.iter().map(|(on, verdict)| {
        let on: On = on.parse().map_err(|error: NoRow| error.to_string())?;
        let verdict: Verdict = verdict.parse().map_err(|error: NoVerdict| error.to_string())?;
        Ok((on, verdict))
    });
    let rows = rows.collect::<Result<Vec<_>, String>>()?;
    StatusMap::with(rows).map_err(|error| error.to_string())
}

pub(super) fn backoff(waits: DurationRange) -> Backoff {
    Backoff::new(waits.from, waits.to)
}
