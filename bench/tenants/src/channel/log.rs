//! The durable log.

use std::sync::Arc;

use greenroom_bus::{
    BoxFuture,
    source::Source,
    store::log::{EventLog, LogOptions, SegmentLog},
};
use tempfile::TempDir;
use tokio::runtime::Handle;

use super::{Channel, Publisher};
use crate::{Failure, event, load::Job};

pub struct Log {
    log: Arc<SegmentLog>,
    /// Removed with it.
    _directory: TempDir,
}

impl Log {
    pub fn open() -> Result<Self, Failure> {
        let directory = TempDir::new()?;
        let log = Arc::new(SegmentLog::open(directory.path(), LogOptions::default())?);
        Ok(Self { log, _directory: directory })
    }
}

impl Channel for Log {
    fn source(&self) -> BoxFuture<'_, Result<Box<dyn Source>, Failure>> {
        Box::pin(async { Ok(Box::new(self.log.source("bench")?) as _) })
    }

    fn publisher(&self) -> BoxFuture<'_, Result<Arc<dyn Publisher>, Failure>> {
        let (log, handle) = (self.log.clone(), Handle::current());
        Box::pin(async { Ok(Arc::new(Appending { log, handle }) as _) })
    }

    fn remove(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async {
            self.log.close().await;
            Ok(())
        })
    }
}

struct Appending {
    log: Arc<SegmentLog>,
    handle: Handle,
}

impl Publisher for Appending {
    fn publish(&self, jobs: Vec<Job>) -> BoxFuture<'static, Result<(), Failure>> {
        let log = self.log.clone();
        let stored = self.handle.spawn(async move {
            let events = jobs.iter().map(event::of_job).collect::<Result<_, _>>()?;
            log.append(events).await?;
            Ok(())
        });
        Box::pin(async { stored.await? })
    }
}
