//! A URL as an output of a configuration.

use std::sync::Arc;

use greenroom::Backoff;
use greenroom_config::{AnyOptions, At, Listing};

use super::{HttpOutput, HttpOutputMode, HttpSink, HttpSinkConfig, HttpSinkMode};
use crate::{
    BoxFuture,
    kind::Live,
    sink::{OpenOutput, OutputKind, output},
    stand_in::StandIn,
};

/// Its line in the registry.
pub const OUTPUT: Listing<dyn OutputKind> =
    output::<HttpOutput>("http", "Posts to a URL, as CloudEvents over HTTP.").live();

impl OutputKind for HttpOutput {
    fn status(&self) -> Option<&[(String, String)]> {
        Some(&self.status)
    }

    fn reach(&self, at: &mut At<'_>) {
        if let Some(tls) = &self.tls {
            tls.reach(&mut at.inside("tls"));
        }
    }

    fn open(&self) -> BoxFuture<'_, Result<OpenOutput, String>> {
        Box::pin(async {
            let sink = HttpSink::open(config(self)?).map_err(|error| error.to_string())?;
            let sink = Arc::new(sink);
            let live = Arc::downgrade(&sink) as _;
            Ok(OpenOutput { sink, live: Some(live) })
        })
    }

    /// Certificates are not read: nothing is connected to.
    fn stand_in(&self, answers: StandIn) -> Result<OpenOutput, String> {
        let config = config(&Self { tls: None, ..self.clone() })?;
        let sink = HttpSink::standing_in(config, answers).map_err(|error| error.to_string())?;
        Ok(OpenOutput::fixed(sink))
    }
}

impl Live for HttpSink {
    fn reconfigure(&self, wanted: &dyn AnyOptions) -> Result<bool, String> {
        let Some(wanted) = wanted.as_any().downcast_ref::<HttpOutput>() else { return Ok(false) };
        HttpSink::reconfigure(self, config(wanted)?).map_err(|error| error.to_string())
    }
}

/// As the sink has it, with what its files hold.
fn config(http: &HttpOutput) -> Result<HttpSinkConfig, String> {
    let posting = http.posting();
    Ok(HttpSinkConfig {
        target: posting.target(http.timeout)?,
        mode: match http.mode {
            HttpOutputMode::Binary => HttpSinkMode::Binary,
            HttpOutputMode::Structured => HttpSinkMode::Structured,
            HttpOutputMode::Batch => HttpSinkMode::Batch(http.batch),
        },
        concurrency: http.concurrency,
        backoff: Backoff::new(http.backoff.from, http.backoff.to),
        status: posting.status_map()?,
        ..HttpSinkConfig::default()
    })
}
