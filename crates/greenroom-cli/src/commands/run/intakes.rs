//! `http` inputs: a log, the server that appends to it, and the source that reads it.

use std::{sync::Arc, time::Duration};

use greenroom_bus::{
    source::{
        Source,
        http::{HttpSettings, HttpSource, Intake, ServerTls, listen},
        memory,
    },
    store::log::{LogOptions, SegmentLog},
};

use crate::{
    config::{HttpInput, InputConfig, RecordsConfig, ServerTlsConfig, WebhookConfig},
    report::Answers,
};

/// Who of the log is told what is done. There is one reader of each log.
const CONSUMER: &str = "greenroom";

/// Segments are a fourth of what the log may have at most: retention removes whole ones.
const SEGMENTS: u64 = 4;

/// The server of an input, with the log that it appends to.
#[derive(Clone)]
pub(super) struct HttpIntake {
    server: Arc<Intake>,
    log: SegmentLog,
}

impl HttpIntake {
    /// Takes nothing more. What is being stored is stored and answered.
    pub(super) fn close(&self) {
        self.server.close();
    }

    /// Closes, and waits until what was being stored is answered, but no longer than this.
    pub(super) async fn answered(&self, within: Duration) {
        self.server.closed(within).await;
    }

    /// As [`answered`](Self::answered), and until nothing more is written. With its source ended,
    /// another input can have its address and its log then.
    pub(super) async fn ended(self, within: Duration) {
        self.answered(within).await;
        self.log.close().await;
    }

    /// How many requests it has answered with each status.
    pub(super) fn answers(&self) -> Answers {
        self.server.answers()
    }

    /// What of it finds no room, and why.
    pub(super) fn trouble(&self) -> Option<String> {
        self.log.trouble()
    }

    /// Goes by other settings from now on; false where they are the same.
    ///
    /// # Errors
    /// Why they cannot be used; those from before hold.
    pub(super) fn reconfigure(&self, settings: HttpSettings) -> Result<bool, String> {
        self.server.reconfigure(settings)
    }
}

/// Opens the log and takes the address; events are taken in from the first pull on.
///
/// # Errors
/// What could not be opened, and what to do next.
pub(super) fn source(
    input: &InputConfig,
    http: &HttpInput,
) -> Result<(Box<dyn Source>, HttpIntake), String> {
    // Taken first: who cannot listen has opened nothing.
    let listener = listen(http.listen.0).map_err(|error| error.to_string())?;
    let settings = settings(input, http)?;
    let log = log(http)?;
    let source = log.source(CONSUMER).map_err(|error| error.to_string())?;
    let server = Intake::new(listener, &http.path, settings, Arc::new(log.clone()));
    let server = Arc::new(server.map_err(|error| error.to_string())?);
    let source = HttpSource::new(server.clone(), Box::new(source));
    Ok((Box::new(source), HttpIntake { server, log }))
}

/// What is stored and not handled, up to its end. Nobody is listened to, and nothing is settled.
///
/// # Errors
/// The log cannot be opened; another process has it, for example.
pub(super) fn looking(http: &HttpInput) -> Result<Box<dyn Source>, String> {
    if !http.store.exists() {
        let (_, nothing) = memory::channel("nothing", 1);
        return Ok(Box::new(nothing));
    }
    // The log is closed with the end of this function, which is how its source comes to an end.
    let source = log(http)?.source(CONSUMER).map_err(|error| error.to_string())?;
    Ok(Box::new(source))
}

fn log(http: &HttpInput) -> Result<SegmentLog, String> {
    let usual = LogOptions::default();
    let options = LogOptions {
        segment_bytes: usual.segment_bytes.min(http.retention.size / SEGMENTS),
        max_bytes: http.retention.size,
        keep_for: http.retention.age,
        max_append_bytes: usual.max_append_bytes.max(http.max_body.saturating_mul(2)).min(1 << 30),
        remember_for: http.deduplicate.within,
        remember_events: http.deduplicate.events,
        ..usual
    };
    SegmentLog::open(&http.store, options).map_err(|error| error.to_string())
}

/// What a request is judged by, with what the files of `tls` hold.
///
/// # Errors
/// A file that cannot be read.
pub(super) fn settings(input: &InputConfig, http: &HttpInput) -> Result<HttpSettings, String> {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let tls = http.tls.as_ref().map(ServerTlsConfig::read).transpose();
    let tls: Option<ServerTls> = tls.map_err(|unread| unread.to_string())?;
    Ok(HttpSettings {
        access: http.access(),
        webhook: http.webhook.as_ref().map(WebhookConfig::to_bus),
        tls,
        records: input.records.as_ref().map(RecordsConfig::mapping).transpose()?.map(Arc::new),
        max_event: bytes(http.max_event),
        max_body: bytes(http.max_body),
        max_batch: http.max_batch,
        connections: http.connections,
        bodies: bytes(http.bodies),
        header_timeout: http.header_timeout,
        body_timeout: http.body_timeout,
    })
}
