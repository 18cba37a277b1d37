//! Reads the file and distributes its events to lines.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    sync::Arc,
};

use greenroom_bus::{
    event::Event,
    source::{
        Places, Pull, Source,
        file::{FileSet, FileSetSource, FileSource, FileSourceOptions},
    },
};
use tokio::sync::mpsc::Sender;

use super::{lot::Read, stop::Stop, tally::Tally};
use crate::cli::SendArgs;

/// The files to read.
pub(super) struct Reader {
    source: Box<dyn Source>,
    places: Option<Arc<dyn Places>>,
    name: String,
}

impl Reader {
    /// # Errors
    /// The file that cannot be read, and why.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let options = FileSourceOptions::default();
        let set = FileSet::at(path).map_err(|why| format!("file:{}: {why}", path.display()))?;
        let source: Box<dyn Source> = match set {
            None => Box::new(FileSource::open(path, options).map_err(|error| error.to_string())?),
            Some(set) => {
                let source = FileSetSource::open(path, &set, options);
                Box::new(source.map_err(|error| error.to_string())?)
            }
        };
        let (places, name) = (source.places(), source.describe());
        Ok(Self { source, places, name })
    }

    /// Reads to the end, and sends each event to the line of its subject.
    pub(super) async fn share_out(
        &mut self,
        queues: &[Sender<Vec<Read>>],
        args: &SendArgs,
        tally: &Tally,
    ) -> Result<(), Stop> {
        tally.is_read_by(self.places.clone(), &self.name);
        let mut batch = Vec::new();
        loop {
            let pulled = self.source.pull(&mut batch).await;
            let mut shares: Vec<Vec<Read>> = queues.iter().map(|_| Vec::new()).collect();
            let mut bad = None;
            for taken in batch.drain(..) {
                match taken.event {
                    Ok(event) => {
                        let line = line_of(&event, queues.len());
                        shares[line].push(Read { event, position: taken.position });
                    }
                    Err(malformed) => {
                        let why = format!("{}: {}", tally.place(taken.position), malformed.reason);
                        if !args.skip_bad {
                            bad = Some(Stop::BadEvent(why));
                            break;
                        }
                        tally.rejected(&why);
                    }
                }
            }
            for (queue, share) in queues.iter().zip(shares) {
                // A line that has ended reports the reason itself.
                if !share.is_empty() && queue.send(share).await.is_err() {
                    return Ok(());
                }
            }
            tally.read(self.source.progress());
            if let Some(stop) = bad {
                return Err(stop);
            }
            match pulled {
                Ok(Pull::End) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(Stop::Failed(error.to_string())),
            }
        }
    }
}

/// Events of one subject share a line, and so do those without any.
fn line_of(event: &Event, lines: usize) -> usize {
    if lines == 1 {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    event.subject().hash(&mut hasher);
    (hasher.finish() % lines as u64) as usize
}
