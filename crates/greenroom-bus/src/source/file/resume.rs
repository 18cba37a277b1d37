//! Where to begin in a file that an earlier run has partly read.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Seek, SeekFrom},
};

use super::{
    checkpoint::{StoredCheckpoint, Unusable},
    marks::Mark,
};
use crate::{source::Resumed, watermark::Positions};

/// Where to begin.
#[derive(Debug)]
pub(super) struct Start {
    /// The place to read from.
    pub(super) mark: Mark,
    /// The lines to be skipped.
    pub(super) done: Positions,
    /// The progress of an earlier run; `None` if there was none.
    pub(super) resumed: Option<Resumed>,
}

/// Why a stored record does not apply to a file.
pub(super) enum NoStart {
    /// It is another file, or one of another content.
    Differs(String),
    /// It cannot be used.
    Unusable(Unusable),
    /// The file cannot be read.
    Unreadable(io::Error),
}

impl Start {
    pub(super) fn at_the_beginning() -> Self {
        let done = Positions::starting_at(Mark::START.line);
        Self { mark: Mark::START, done, resumed: None }
    }

    /// After the settled lines. `seeks`: the file is not compressed. Moves its cursor.
    ///
    /// # Errors
    /// The file is not the one of this record; or one of the two cannot be read.
    pub(super) fn after(
        stored: &StoredCheckpoint,
        file: &mut File,
        seeks: bool,
    ) -> Result<Self, NoStart> {
        let done = stored.positions().map_err(NoStart::Unusable)?;
        let differs = stored.identity.difference(file, &stored.tail);
        if let Some(why) = differs.map_err(NoStart::Unreadable)? {
            return Err(NoStart::Differs(why));
        }
        let taken_below = match seeks && stored.taken_below > done.next() {
            true => lines_below(file, stored.mark, stored.taken_below),
            false => Ok(stored.taken_below),
        };
        let taken_below = taken_below.map_err(NoStart::Unreadable)?;
        let again = done.count_open() + taken_below.saturating_sub(done.next());
        let resumed =
            Resumed { partitions: 1, files: 1, done: done.count_done(), again_at_most: again };
        Ok(Self { mark: stored.mark, done, resumed: Some(resumed) })
    }
}

/// Above the last line that the file has, looking from this place on and no further than to `most`:
/// a checkpoint allows for more lines than there may be.
fn lines_below(file: &mut File, mark: Mark, most: u64) -> io::Result<u64> {
    file.seek(SeekFrom::Start(mark.byte))?;
    let (mut lines, mut below) = (BufReader::new(file), mark.line);
    while below < most && lines.skip_until(b'\n')? > 0 {
        below += 1;
    }
    Ok(below)
}
