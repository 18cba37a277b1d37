//! The durable log (B03): one consumer of one log, whose directory is opened anew for each source.

use std::{path::PathBuf, sync::Arc, time::Duration};

use greenroom_bus::{
    BoxFuture,
    source::{Partition, Source},
    store::log::{AppendError, EventLog, LogOptions, SegmentLog},
    watermark::Positions,
};
use greenroom_test::{
    conformance,
    conformance::{Ability, Body, Check, Connector, Item, Place, Stored, not_applicable},
};
use tempfile::TempDir;

const CONSUMER: &str = "conformance";

conformance!(of_segments: Logs { segment_bytes: 64 * 1024 * 1024 });
conformance!(of_small_segments: Logs { segment_bytes: 16 * 1024 });

#[derive(Clone, Copy)]
struct Logs {
    segment_bytes: u64,
}

impl Connector for Logs {
    fn name(&self) -> String {
        format!("log with segments of {} bytes", self.segment_bytes)
    }

    fn lacks(&self, ability: Ability) -> Option<&'static str> {
        match ability {
            Ability::Partitions | Ability::Revokes => Some("a log is one partition"),
            Ability::HoldsMalformed => Some("it is given events, which are well-formed"),
            Ability::HasGaps => Some("its sequence numbers are dense"),
            _ => None,
        }
    }

    fn place(&self) -> Result<Box<dyn Place>, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        Ok(Box::new(LogPlace { logs: *self, directory, log: None }))
    }
}

struct LogPlace {
    logs: Logs,
    directory: TempDir,
    log: Option<SegmentLog>,
}

impl LogPlace {
    fn path(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    fn opened(&mut self) -> Result<SegmentLog, String> {
        if let Some(log) = &self.log {
            return Ok(log.clone());
        }
        let options = LogOptions {
            segment_bytes: self.logs.segment_bytes,
            keep_for: Duration::ZERO,
            ..LogOptions::default()
        };
        let log = SegmentLog::open(self.path(), options).map_err(|error| error.to_string())?;
        self.log = Some(log.clone());
        Ok(log)
    }
}

impl Place for LogPlace {
    fn publish<'a>(&'a mut self, items: &'a [Item]) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let log = self.opened()?;
            for items in items.chunks(50) {
                let events = items.iter().filter_map(|item| match &item.body {
                    Body::Event(event) => Some(event.clone()),
                    _ => None,
                });
                let appended = log.append(events.collect()).await;
                appended.map_err(|error: AppendError| error.to_string())?;
            }
            Ok(())
        })
    }

    fn open<'a>(&'a mut self) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        Box::pin(async move {
            if let Some(log) = self.log.take() {
                log.close().await;
            }
            let source = self.opened()?.source(CONSUMER).map_err(|error| error.to_string())?;
            Ok(Box::new(source) as _)
        })
    }

    fn stored(&self) -> Option<Stored> {
        let path = self.path().join("consumers").join(format!("{CONSUMER}.checkpoint"));
        Some(Arc::new(move || stored(&path)))
    }
}

/// Above all events that were taken, and the turns of those that are done and those that are open.
fn stored(checkpoint: &std::path::Path) -> Vec<(Partition, Positions)> {
    let Ok(text) = std::fs::read(checkpoint) else { return Vec::new() };
    let stored: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let (of, mut at) = (&stored["of"], 0);
    let turns: Vec<u64> = serde_json::from_value(of["open"].clone()).unwrap();
    let open = turns.chunks(2).map(|turn| {
        let start = at + turn[0];
        at = start + turn[1];
        start..at
    });
    let positions = Positions::new(of["next"].as_u64().unwrap(), open).unwrap();
    vec![(Partition::ONLY, positions)]
}

#[test]
fn v01_what_a_log_cannot_do_is_told() {
    let logs = Logs { segment_bytes: 16 * 1024 };
    let told = Check::ALL.map(|check| (check, not_applicable(&logs, check)));
    let not: Vec<_> =
        told.into_iter().filter(|(_, why)| why.is_some()).map(|told| told.0).collect();
    assert_eq!(not, [Check::MalformedEvents, Check::Gaps, Check::RevokeDuringLoad]);
}
