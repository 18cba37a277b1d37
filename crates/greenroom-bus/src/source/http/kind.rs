//! Posted events as an input of a configuration: a log, the server that appends to it, and the
//! source that reads it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use greenroom_config::{AnyOptions, At, Listen, Listing};

use super::{HttpInput, HttpSource, Intake, listen};
use crate::{
    BoxFuture,
    kind::{FileRole, FileUse, Live},
    source::{
        InputKind, InputServer, InputSetup, OpenInput, RecordShape, Source, input,
        log::{LogOptions, SegmentLog},
        memory,
    },
};

/// Its line in the registry.
pub const INPUT: Listing<dyn InputKind> =
    input::<HttpInput>("http", "Takes events over HTTP, and answers once they are on disk.");

/// Who of the log is told what is done. There is one reader of each log.
const CONSUMER: &str = "greenroom";

/// Segments are a fourth of what the log may have at most: retention removes whole ones.
const SEGMENTS: u64 = 4;

impl InputKind for HttpInput {
    fn record(&self) -> Option<RecordShape> {
        Some(RecordShape { one: "a request", parts: &["pointer", "header", "path"] })
    }

    fn keeps_positions(&self) -> bool {
        true
    }

    /// CloudEvents are taken beside the records.
    fn types<'a>(&'a self, _: Option<&'a str>) -> Option<Vec<&'a str>> {
        None
    }

    fn files(&self) -> Vec<FileUse<'_>> {
        vec![FileUse { option: "store", path: &self.store, role: FileRole::Log }]
    }

    fn listens(&self) -> Option<SocketAddr> {
        Some(self.listen.0)
    }

    fn reach(&self, at: &mut At<'_>) {
        if let Some(tls) = &self.tls {
            tls.reach(&mut at.inside("tls"));
        }
    }

    /// Opens the log and takes the address; events are taken in from the first pull on.
    fn open<'a>(&'a self, setup: &'a InputSetup) -> BoxFuture<'a, Result<OpenInput, String>> {
        Box::pin(async {
            // Taken first: who cannot listen has opened nothing.
            let listener = listen(self.listen.0).map_err(|error| error.to_string())?;
            let settings = self.settings(setup.records.clone())?;
            let log = open_log(self)?;
            let source = log.source(CONSUMER).map_err(|error| error.to_string())?;
            let server = Intake::new(listener, &self.path, settings, Arc::new(log.clone()));
            let intake = Arc::new(server.map_err(|error| error.to_string())?);
            let source = Box::new(HttpSource::new(intake.clone(), source));
            let server =
                Arc::new(HttpServer { intake, log, listen: self.listen, setup: setup.clone() });
            let live = Arc::downgrade(&server) as _;
            Ok(OpenInput { source, server: Some(server), live: Some(live) })
        })
    }

    /// What is stored and not handled, up to its end.
    fn look<'a>(&'a self, _: &'a InputSetup) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        Box::pin(async {
            if !self.store.exists() {
                let (_, nothing) = memory::channel("nothing", 1);
                return Ok(Box::new(nothing) as _);
            }
            // The log is closed with the end of this function, which is how its source comes to an
            // end.
            let source = open_log(self)?.source(CONSUMER).map_err(|error| error.to_string())?;
            Ok(Box::new(source) as _)
        })
    }

    fn looked(&self) -> Option<&'static str> {
        Some("nothing was listened to: what `http` inputs have stored was read")
    }
}

fn open_log(http: &HttpInput) -> Result<SegmentLog, String> {
    let usual = LogOptions::default();
    let most = usual.max_append_bytes.max(http.max_body.saturating_mul(2));
    let options = LogOptions {
        segment_bytes: usual.segment_bytes.min(http.retention.size / SEGMENTS),
        max_bytes: http.retention.size,
        keep_for: http.retention.age,
        max_append_bytes: most.min(1 << 30),
        remember_for: http.deduplicate.within,
        remember_events: http.deduplicate.events,
        ..usual
    };
    SegmentLog::open(&http.store, options).map_err(|error| error.to_string())
}

/// The server of an input, with the log that it appends to.
struct HttpServer {
    intake: Arc<Intake>,
    log: SegmentLog,
    /// It listens here until its end, whatever a reload says.
    listen: Listen,
    setup: InputSetup,
}

impl InputServer for HttpServer {
    fn close(&self) {
        self.intake.close();
    }

    fn answered(&self, within: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.intake.closed(within))
    }

    fn ended(&self, within: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.intake.closed(within).await;
            self.log.close().await;
        })
    }

    fn answers(&self) -> Vec<(u16, u64)> {
        self.intake.answers()
    }

    fn trouble(&self) -> Option<String> {
        self.log.trouble()
    }
}

impl Live for HttpServer {
    fn reconfigure(&self, wanted: &dyn AnyOptions) -> Result<bool, String> {
        let Some(wanted) = wanted.as_any().downcast_ref::<HttpInput>() else { return Ok(false) };
        if wanted.is_open_to_others(self.listen) {
            return Err(format!(
                "it still listens at {}, where other machines reach it, and would need no `auth` any \
                 more: restart greenroom to change both",
                self.listen.0
            ));
        }
        self.intake.reconfigure(wanted.settings(self.setup.records.clone())?)
    }
}
