//! A build without the feature `otlp`, which refuses a configuration of it.

use std::sync::Arc;

use greenroom_bus::trace::Recorder;

use super::{TelemetrySource, counts::SignalCounts};
use crate::config::Config;

/// Exports nothing.
pub(crate) struct Telemetry;

impl Telemetry {
    pub(crate) fn start(_config: &Config) -> Result<Self, String> {
        Ok(Self)
    }

    pub(crate) fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        None
    }

    pub(crate) fn counts(&self) -> Option<Arc<SignalCounts>> {
        None
    }

    pub(crate) fn measure(&self, _source: TelemetrySource) {}

    pub(crate) fn finish(self) {}
}
