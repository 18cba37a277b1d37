//! A URL as an output of a configuration.

use std::sync::Arc;

use greenroom_config::{AnyOptions, At, Listing};

use super::{HttpOutput, HttpSink};
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
            let sink = HttpSink::open(self).map_err(|error| error.to_string())?;
            let sink = Arc::new(sink);
            let live = Arc::downgrade(&sink) as _;
            Ok(OpenOutput { sink, live: Some(live) })
        })
    }

    fn stand_in(&self, answers: StandIn) -> Result<OpenOutput, String> {
        let sink = HttpSink::standing_in(self, answers);
        sink.map(OpenOutput::fixed).map_err(|error| error.to_string())
    }
}

impl Live for HttpSink {
    fn reconfigure(&self, wanted: &dyn AnyOptions) -> Result<bool, String> {
        let Some(wanted) = wanted.as_any().downcast_ref::<HttpOutput>() else { return Ok(false) };
        HttpSink::reconfigure(self, wanted).map_err(|error| error.to_string())
    }
}
