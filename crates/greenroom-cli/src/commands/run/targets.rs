//! The targets of `http` outputs, whose options change while greenroom runs.

use std::{collections::HashMap, sync::Arc};

use greenroom_bus::{
    http::TargetConfig,
    sink::{
        Sink,
        file::{FileSink, FileSinkOptions},
        http::{Batching, HttpSink, HttpSinkConfig, HttpSinkMode},
    },
};
use parking_lot::Mutex;

use super::assemble::{backoff, status_map};
use crate::config::{HttpBatch, HttpOutput, HttpOutputMode, OutputConfig, OutputKind};

/// Those that there are, by name.
#[derive(Default)]
pub(crate) struct Targets {
    outputs: Mutex<HashMap<String, Arc<HttpSink>>>,
}

impl Targets {
    /// The sink of an output. Called on the runtime of the engine.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(super) fn sink(&self, output: &OutputConfig) -> Result<Arc<dyn Sink>, String> {
        match &output.kind {
            OutputKind::File(file) => {
                let options = FileSinkOptions { truncate: file.truncate };
                let sink = FileSink::open(&file.path, options);
                Ok(Arc::new(sink.map_err(|error| error.to_string())?))
            }
            OutputKind::Http(http) => {
                let sink = HttpSink::open(config(http)?).map_err(|error| error.to_string())?;
                let sink = Arc::new(sink);
                self.outputs.lock().insert(output.name.clone(), sink.clone());
                Ok(sink)
            }
        }
    }

    /// It was not added, or is removed: what it holds ends by itself.
    pub(super) fn forget_output(&self, name: &str) {
        self.outputs.lock().remove(name);
    }

    /// Delivers by other options from now on; false where they are the same.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub(super) fn reconfigure_output(&self, name: &str, http: &HttpOutput) -> Result<bool, String> {
        let sink = self.outputs.lock().get(name).cloned();
        let Some(sink) = sink else { return Ok(false) };
        sink.reconfigure(config(http)?).map_err(|error| error.to_string())
    }
}

fn config(http: &HttpOutput) -> Result<HttpSinkConfig, String> {
    Ok(HttpSinkConfig {
        target: TargetConfig {
            url: http.url.to_string(),
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
