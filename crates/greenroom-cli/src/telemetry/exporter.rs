//! Sends the contents of the queues: on a thread with its own runtime, so that it neither takes a
//! worker's turn nor waits for one.

use std::{
    env,
    sync::{Arc, OnceLock, mpsc},
    thread,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use greenroom_bus::{
    http::{NotPosted, Posted, Poster},
    metrics::EVERY,
    trace::Recorder,
};
use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::ExportLogsServiceResponse, metrics::v1::ExportMetricsServiceResponse,
        trace::v1::ExportTraceServiceResponse,
    },
    resource::v1::Resource,
};
use prost::Message;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, sleep},
};

use super::{
    TelemetrySource,
    counts::{Signal, SignalCounts},
    logs,
    measured::{self, Times},
    queue::Queue,
    reach::{EndpointReach, Sent},
    settings::Settings,
    spans::{self, Spans},
    values::{nanos, resource},
};
use crate::config::Config;

/// Waiting items are sent after this time, even if they do not fill a request.
const WITHIN: Duration = Duration::from_secs(1);

/// The wait after a failed attempt: the first one, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// How long the end of a run waits for the rest.
const AT_THE_END: Duration = Duration::from_secs(5);

/// Export by OTLP, if the configuration enables it.
pub(crate) struct Telemetry(Option<Running>);

struct Running {
    recorder: Option<Arc<dyn Recorder>>,
    counts: Arc<SignalCounts>,
    source: Arc<OnceLock<TelemetrySource>>,
    stop: watch::Sender<bool>,
    /// Carries no message; closed once the thread has ended.
    ended: mpsc::Receiver<()>,
}

impl Telemetry {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// The settings that cannot be used, without secret parts.
    pub(crate) fn start(config: &Config) -> Result<Self, String> {
        let Some(otlp) = config.otlp() else { return Ok(Self(None)) };
        let settings = Settings::read(otlp, |name| env::var(name).ok());
        let running = settings.and_then(|settings| Running::start(&settings));
        Ok(Self(Some(running.map_err(|why| format!("telemetry.otlp: {why}"))?)))
    }

    /// The receiver of spans, if they are exported.
    pub(crate) fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        self.0.as_ref()?.recorder.clone()
    }

    /// Counts of exported and dropped items, if any are exported.
    pub(crate) fn counts(&self) -> Option<Arc<SignalCounts>> {
        self.0.as_ref().map(|running| running.counts.clone())
    }

    /// Exports these figures from now on. Called once.
    pub(crate) fn measure(&self, source: TelemetrySource) {
        if let Some(running) = &self.0 {
            let _ = running.source.set(source);
        }
    }

    /// Sends the rest, and waits for that, for a limited time.
    pub(crate) fn finish(self) {
        let Some(Running { recorder, counts, source, stop, ended }) = self.0 else { return };
        logs::go_to(None);
        let _ = stop.send(true);
        if ended.recv_timeout(AT_THE_END) == Err(mpsc::RecvTimeoutError::Timeout) {
            tracing::warn!("the last telemetry is not exported: its endpoint takes too long");
        }
        drop((recorder, counts, source));
    }
}

impl Running {
    fn start(settings: &Settings) -> Result<Self, String> {
        let counts = Arc::<SignalCounts>::default();
        let (stop, stopped) = watch::channel(false);
        let shared = Arc::new(Shared {
            resource: resource(&settings.service_name, &settings.attributes),
            reach: EndpointReach::default(),
            counts: counts.clone(),
            stopped,
        });
        let way = |signal: Signal| {
            Ok(SignalWay { signal, poster: settings.poster(signal)?, shared: shared.clone() })
        };
        let ways: Result<[SignalWay; 3], String> =
            [way(Signal::Traces), way(Signal::Logs), way(Signal::Metrics)]
                .into_iter()
                .collect::<Result<Vec<_>, String>>()
                .map(|ways| ways.try_into().unwrap_or_else(|_| unreachable!("three were made")));
        let [traces, lines, metrics] = ways?;
        let of_spans = settings.traces.then(|| queue(Signal::Traces, &counts));
        let of_lines = settings.logs.then(|| queue(Signal::Logs, &counts));
        let source = Arc::<OnceLock<TelemetrySource>>::default();
        let measured = settings.metrics.then(|| (settings.every, source.clone()));
        let (spans, records) = (of_spans.clone(), of_lines.clone());
        let all = async move {
            tokio::join!(
                async {
                    let Some(queue) = spans else { return };
                    traces
                        .send_all(&queue, |of, items| spans::request(of, items).encode_to_vec())
                        .await;
                },
                async {
                    let Some(queue) = records else { return };
                    lines
                        .send_all(&queue, |of, items| logs::request(of, items).encode_to_vec())
                        .await;
                },
                async {
                    let Some((every, source)) = measured else { return };
                    metrics.measure(every, &source).await;
                },
            );
        };
        let ended = on_a_thread(all)?;
        logs::go_to(of_lines);
        let recorder = of_spans.map(|queue| {
            let spans = Spans { queue, sample: settings.sample, keys: settings.keys };
            Arc::new(spans) as Arc<dyn Recorder>
        });
        Ok(Self { recorder, counts, source, stop, ended })
    }
}

fn queue<T>(signal: Signal, counts: &Arc<SignalCounts>) -> Arc<Queue<T>> {
    Arc::new(Queue::new(signal, counts.clone()))
}

/// Runs this on a separate thread. The returned value ends with it.
fn on_a_thread(
    all: impl Future<Output = ()> + Send + 'static,
) -> Result<mpsc::Receiver<()>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let (ends, ended) = mpsc::channel();
    let run = move || {
        logs::leave_this_thread_out();
        runtime.block_on(all);
        // A name lookup may hang, so it is not waited for.
        runtime.shutdown_background();
        drop::<mpsc::Sender<()>>(ends);
    };
    let thread = thread::Builder::new().name("otlp".to_owned()).spawn(run);
    thread.map(|_| ended).map_err(|error| format!("no thread: {error}"))
}

/// Shared by all signals.
struct Shared {
    resource: Resource,
    reach: EndpointReach,
    counts: Arc<SignalCounts>,
    /// The run has ended: the rest is sent once.
    stopped: watch::Receiver<bool>,
}

/// The path of one signal to its endpoint.
struct SignalWay {
    signal: Signal,
    poster: Poster,
    shared: Arc<Shared>,
}

impl SignalWay {
    /// Sends the contents of the queue until the run has ended, and then the rest.
    async fn send_all<T>(&self, queue: &Queue<T>, encode: impl Fn(Resource, Vec<T>) -> Vec<u8>) {
        let mut stopped = self.shared.stopped.clone();
        loop {
            let is_last = *stopped.borrow_and_update();
            loop {
                let items = queue.take();
                if items.is_empty() {
                    break;
                }
                let count = items.len() as u64;
                let body = encode(self.shared.resource.clone(), items).into();
                self.deliver(body, count).await;
            }
            if is_last {
                return;
            }
            tokio::select! {
                _ = stopped.changed() => {}
                () = sleep(WITHIN) => {}
                () = queue.enough() => {}
            }
        }
    }

    /// Exports the figures at this interval, and once more at the end.
    async fn measure(&self, every: Duration, source: &OnceLock<TelemetrySource>) {
        let mut stopped = self.shared.stopped.clone();
        let began = nanos(SystemTime::now());
        let (mut looks, mut sends) = (interval(EVERY), interval(every));
        for ticks in [&mut looks, &mut sends] {
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks.reset();
        }
        loop {
            let is_last = *stopped.borrow_and_update();
            let is_due = tokio::select! {
                biased;
                () = std::future::ready(()), if is_last => true,
                _ = stopped.changed() => continue,
                _ = sends.tick() => true,
                _ = looks.tick() => false,
            };
            match source.get() {
                Some(source) if is_due => self.send_figures(source, began).await,
                Some(TelemetrySource { look: Some(look), .. }) => look(),
                _ => {}
            }
            if is_last {
                return;
            }
        }
    }

    /// One attempt: the next figures are newer.
    async fn send_figures(&self, source: &TelemetrySource, began: u64) {
        let times = Times { began, now: nanos(SystemTime::now()) };
        let resource = self.shared.resource.clone();
        let (request, points) = measured::request(resource, &(source.families)(), times);
        let (sent, _) = self.attempt(request.encode_to_vec().into(), points).await;
        if sent != Sent::Taken {
            self.shared.counts.dropped(self.signal, points);
        }
    }

    /// Sends a request until it is accepted or refused; after the run's end, one attempt is left.
    async fn deliver(&self, body: Bytes, items: u64) {
        let mut stopped = self.shared.stopped.clone();
        let mut wait = BACKOFF.0;
        loop {
            let is_last = *stopped.borrow_and_update();
            let (sent, asked) = self.attempt(body.clone(), items).await;
            match sent {
                Sent::Taken => return,
                Sent::NotNow(_) if !is_last => {}
                _ => return self.shared.counts.dropped(self.signal, items),
            }
            tokio::select! {
                _ = stopped.changed() => {}
                () = sleep(asked.map_or(wait, |asked| asked.min(BACKOFF.1))) => {}
            }
            wait = (wait * 2).min(BACKOFF.1);
        }
    }

    /// Sends a request once, and reports a change in the endpoint's state. Returns the wait that it
    /// asks for.
    async fn attempt(&self, body: Bytes, items: u64) -> (Sent, Option<Duration>) {
        let posted = self.poster.post_body("application/x-protobuf", body).await;
        let asked = posted.as_ref().ok().and_then(|posted| posted.retry_after);
        let sent = sent(&posted);
        self.shared.reach.note(self.signal, &sent);
        if let (Sent::Taken, Ok(posted)) = (&sent, posted) {
            let rejected = rejected(self.signal, posted.body).min(items);
            self.shared.counts.exported(self.signal, items - rejected);
            self.shared.counts.dropped(self.signal, rejected);
        }
        (sent, asked)
    }
}

/// The meaning of an answer (OTLP, "OTLP/HTTP Response"). The endpoint's text is not repeated: it
/// may quote the request.
fn sent(posted: &Result<Posted, NotPosted>) -> Sent {
    match posted {
        Err(not) => Sent::NotNow(not.text.clone()),
        Ok(posted) => match posted.status {
            200..=299 => Sent::Taken,
            429 | 502..=504 => Sent::NotNow(format!("it answers {}", posted.status)),
            status => Sent::Refused(format!("it answers {status}")),
        },
    }
}

/// How many items of an accepted request were rejected.
fn rejected(signal: Signal, body: Bytes) -> u64 {
    let rejected = match signal {
        Signal::Traces => ExportTraceServiceResponse::decode(body)
            .ok()
            .and_then(|answer| Some(answer.partial_success?.rejected_spans)),
        Signal::Logs => ExportLogsServiceResponse::decode(body)
            .ok()
            .and_then(|answer| Some(answer.partial_success?.rejected_log_records)),
        Signal::Metrics => ExportMetricsServiceResponse::decode(body)
            .ok()
            .and_then(|answer| Some(answer.partial_success?.rejected_data_points)),
    };
    u64::try_from(rejected.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o06_what_an_answer_means_is_as_otlp_says() {
        let posted = |status| Ok(Posted { status, retry_after: None, body: Bytes::new() });
        for (status, is) in [(200, "taken"), (204, "taken"), (400, "refused"), (401, "refused")]
            .into_iter()
            .chain([(404, "refused"), (429, "later"), (500, "refused"), (503, "later")])
        {
            let means = match sent(&posted(status)) {
                Sent::Taken => "taken",
                Sent::NotNow(_) => "later",
                Sent::Refused(_) => "refused",
            };
            assert_eq!(means, is, "{status}");
        }
    }
}
