//! A file that grows.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use greenroom_bus::{
    BoxFuture,
    source::{
        Source,
        file::{FileSourceOptions, FollowSource},
    },
};
use tempfile::TempDir;

use super::{Channel, Publisher};
use crate::{Failure, event, load::Job};

/// How often the source looks for more. The usual 200 ms would hide what the flood costs.
const POLL: Duration = Duration::from_millis(10);

pub struct GrowingFile {
    path: PathBuf,
    /// Removed with it.
    directory: TempDir,
}

impl GrowingFile {
    pub fn open() -> Result<Self, Failure> {
        let directory = TempDir::new()?;
        let path = directory.path().join("events.ndjson");
        File::create(&path)?;
        Ok(Self { path, directory })
    }

    fn appending(&self) -> Result<Arc<dyn Publisher>, Failure> {
        Ok(Arc::new(Appending(OpenOptions::new().append(true).open(&self.path)?)))
    }

    fn following(&self) -> Result<Box<dyn Source>, Failure> {
        let checkpoint = self.directory.path().join("checkpoint");
        let options = FileSourceOptions::default();
        Ok(Box::new(FollowSource::with_checkpoint(&self.path, checkpoint, POLL, options)?))
    }
}

impl Channel for GrowingFile {
    fn source(&self) -> BoxFuture<'_, Result<Box<dyn Source>, Failure>> {
        Box::pin(async { self.following() })
    }

    fn publisher(&self) -> BoxFuture<'_, Result<Arc<dyn Publisher>, Failure>> {
        Box::pin(async { self.appending() })
    }

    fn remove(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }
}

struct Appending(File);

impl Appending {
    /// Whole lines at once: no other writer comes between.
    fn append(&self, jobs: &[Job]) -> Result<(), Failure> {
        let mut lines = Vec::new();
        for job in jobs {
            lines.extend(event::json(job)?);
            lines.push(b'\n');
        }
        Ok((&self.0).write_all(&lines)?)
    }
}

impl Publisher for Appending {
    fn publish(&self, jobs: Vec<Job>) -> BoxFuture<'static, Result<(), Failure>> {
        let done = self.append(&jobs);
        Box::pin(async { done })
    }
}
