//! Reads the file.

use std::path::Path;

use greenroom_bus::source::{
    Pull, Source, Taken,
    file::{FileSet, FileSetSource, FileSource, FileSourceOptions},
};

use super::{lot::Read, stop::Stop, tally::Tally};

/// The files to read.
pub(super) struct Reader {
    source: Box<dyn Source>,
    taken: Vec<Taken>,
}

impl Reader {
    /// # Errors
    /// The file that cannot be read, and why.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let options = FileSourceOptions::default();
        let set = FileSet::find(path).map_err(|why| format!("file:{}: {why}", path.display()))?;
        let source: Box<dyn Source> = match set {
            None => Box::new(FileSource::open(path, options).map_err(|error| error.to_string())?),
            Some(set) => {
                let source = FileSetSource::open(path, &set, options);
                Box::new(source.map_err(|error| error.to_string())?)
            }
        };
        Ok(Self { source, taken: Vec::new() })
    }

    /// New counters, which know the places of its events.
    pub(super) fn tally(&self) -> Tally {
        Tally::new(self.source.places(), self.source.describe())
    }

    /// Reads the next events. The second value is the result, once reading has ended.
    pub(super) async fn read(
        &mut self,
        skips_bad: bool,
        tally: &Tally,
    ) -> (Vec<Read>, Option<Result<(), Stop>>) {
        let pulled = self.source.pull(&mut self.taken).await;
        let mut events = Vec::new();
        for taken in self.taken.drain(..) {
            match taken.event {
                Ok(event) => events.push(Read { event, position: taken.position }),
                Err(malformed) => {
                    let why = format!("{}: {}", tally.place(taken.position), malformed.reason);
                    if !skips_bad {
                        return (events, Some(Err(Stop::BadEvent(why))));
                    }
                    tally.rejected(&why);
                }
            }
        }
        tally.read(self.source.progress());
        let end = match pulled {
            Ok(Pull::End) => Some(Ok(())),
            Ok(_) => None,
            Err(error) => Some(Err(Stop::Failed(error.to_string()))),
        };
        (events, end)
    }
}
