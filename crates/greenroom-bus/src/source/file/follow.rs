//! Files that grow: each line is an event as soon as it is whole (B01).
//!
//! ```text
//! look:   which files are there, in which order, how long     nothing new ─▶ wait, and look again
//! step:   read a chunk of the first that has grown, cut it at a line feed, parse it
//! pull:   events ◀── in order, each with the file that it is of
//! ```
//!
//! Looks and steps run on a blocking thread, one at a time; the next step begins while the engine
//! has the events of the last one. Growth is found by polling, not by notifications: network file
//! systems do not send these, they get lost in large numbers, and a look at a few files costs
//! microseconds.
//!
//! # Why nothing is lost or overtakes when a file is replaced
//!
//! A file is identified by its inode, and stays open until it is done, even if it is renamed. Files
//! are kept in order of appearance. A look first finds out which files there are, then how long
//! they are, *from the last to the first*; the new data is then read from the first to the last. A
//! writer that has begun a new file no longer writes to the old one. So if a look has seen data in
//! the new file, it has seen all of the old one, and that is read first. Data that is written to
//! the old one later, against this rule, is read at the next look: late, not lost.
//!
//! A file is done when it has no name any more, or another one than is followed, when a later one
//! has been written to, and when it was quiet for [`GRACE`](piece::GRACE). Only then is an
//! unfinished last line taken for whole.
//!
//! # Positions
//!
//! They rise over all files, as in a [set](super::set), but files may take turns: each line's
//! position is its number plus an offset for the lines of that turn.

mod content;
mod followed;
mod found;
mod piece;
mod reader;
mod successors;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, path::Path, sync::Arc, time::Duration};

use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use self::{
    piece::{Piece, Visited},
    reader::{FollowReader, ReadStep},
};
use super::{
    FileSourceOptions,
    checkpoint::Checkpoint,
    keeper::Keeper,
    lines::Items,
    positions::FilePositions,
    turns::{OfTurn, Turns},
};
use crate::{
    BoxFuture,
    source::{Committer, Places, Pull, Pulling, Receipts, Source, SourceError, Taken},
};

/// Reads files that grow, until it is dropped: one file, or those that a directory or a pattern
/// names, even if they do not exist yet.
///
/// A line is taken once its line feed is there. A renamed file is read to its end, then the one
/// that replaced it; a cut file is read from its start, with a warning about data that may be lost;
/// a removed file is read as far as possible. New files are taken as they appear: those that appear
/// together, and those that exist at the start, in order of last write, then of name. A compressed
/// file is read once, when it has stopped growing.
pub struct FollowSource {
    name: String,
    steps: ReadSteps,
    /// The results of the last step, in order.
    ready: VecDeque<Piece>,
    /// Whose turn it is.
    turn: Option<FollowTurn>,
    /// The last position that was given.
    last: u64,
    places: Arc<Turns>,
    receipts: Option<Arc<dyn Receipts>>,
    keeper: Option<Keeper>,
    is_committed: bool,
    /// Only the present data is wanted.
    looks: bool,
    behind: u64,
    at_risk: usize,
}

/// The reader, and when it takes the next step.
struct ReadSteps {
    /// Not while it takes one.
    reader: Option<Box<FollowReader>>,
    stepping: Option<JoinHandle<Stepped>>,
    /// It has more to read before it looks again.
    has_more: bool,
    /// When to look again.
    look_at: Option<Instant>,
    /// When it was last heard of.
    heard: Option<Instant>,
    /// Why it cannot continue, until that is returned.
    failed: Option<SourceError>,
    poll: Duration,
}

/// The reader, back from a step, and the step's result.
type Stepped = (Box<FollowReader>, Stepping);

type Stepping = Result<ReadStep, SourceError>;

struct FollowTurn {
    of: Arc<Visited>,
    /// Added to the number of a line. It may be below zero, and wraps.
    base: u64,
}

impl FollowSource {
    /// Follows the files that `path` names, and looks for more each `poll`.
    ///
    /// # Errors
    /// It names standard input or something other than a regular file, or the existing file is
    /// compressed.
    pub fn open(
        path: impl AsRef<Path>,
        poll: Duration,
        options: FileSourceOptions,
    ) -> Result<Self, SourceError> {
        Self::build(path.as_ref(), poll, options, None, false)
    }

    /// Like [`open`](Self::open), with the settled lines of each file kept in `checkpoint`. A file
    /// is identified by its inode and its content, so one that was replaced while no process
    /// followed it is found under its new name in the same directory, and read to its end first.
    ///
    /// # Errors
    /// Like there; or the checkpoint is in use, damaged, belongs to another input or is not a
    /// checkpoint.
    pub fn with_checkpoint(
        path: impl AsRef<Path>,
        checkpoint: impl AsRef<Path>,
        poll: Duration,
        options: FileSourceOptions,
    ) -> Result<Self, SourceError> {
        let claimed = Checkpoint::at_path(checkpoint.as_ref()).claimed();
        let claimed = claimed.map_err(|why| SourceError::new(named(path.as_ref()), why))?;
        Self::build(path.as_ref(), poll, options, Some(claimed), false)
    }

    /// Reads the present data, from the position of a checkpoint, if one is named, and ends.
    /// Nothing may be committed.
    ///
    /// # Errors
    /// As in [`with_checkpoint`](Self::with_checkpoint).
    pub fn looking(
        path: impl AsRef<Path>,
        checkpoint: Option<&Path>,
        options: FileSourceOptions,
    ) -> Result<Self, SourceError> {
        let checkpoint = checkpoint.map(Checkpoint::at_path);
        Self::build(path.as_ref(), Duration::ZERO, options, checkpoint, true)
    }

    fn build(
        path: &Path,
        poll: Duration,
        options: FileSourceOptions,
        checkpoint: Option<Checkpoint>,
        looks: bool,
    ) -> Result<Self, SourceError> {
        let name = named(path);
        let reader = FollowReader::begin(path, name.clone(), options, checkpoint);
        let reader = reader.map_err(|why| SourceError::new(name.clone(), why))?;
        let places = Turns::new(&name);
        Ok(Self {
            name,
            keeper: reader.keeper(),
            steps: ReadSteps {
                reader: Some(Box::new(reader)),
                stepping: None,
                has_more: false,
                look_at: None,
                heard: None,
                failed: None,
                poll,
            },
            ready: VecDeque::new(),
            turn: None,
            last: 0,
            places,
            receipts: None,
            is_committed: false,
            looks,
            behind: 0,
            at_risk: 0,
        })
    }

    /// Has the reader do this, unless it does something.
    fn begin(&mut self, work: impl FnOnce(&mut FollowReader) -> Stepping + Send + 'static) {
        if let Some(mut reader) = self.steps.reader.take() {
            self.steps.stepping = Some(tokio::task::spawn_blocking(move || {
                let step = work(&mut reader);
                (reader, step)
            }));
        }
    }

    fn begin_step(&mut self) {
        let now = Instant::now();
        self.begin(move |reader| reader.step(now));
    }

    /// The result of the step under way.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing that the next call does not find.
    async fn end_step(&mut self) {
        let Some(stepping) = &mut self.steps.stepping else {
            return self.failed("its reader is gone: see the log".to_owned());
        };
        let stepped = stepping.await;
        self.steps.stepping = None;
        let now = Instant::now();
        self.steps.heard = Some(now);
        let (reader, step) = match stepped {
            Ok(stepped) => stepped,
            Err(error) => return self.failed(format!("its reader failed: {error}")),
        };
        self.steps.reader = Some(reader);
        match step {
            Ok(ReadStep { pieces, has_more, behind, at_risk }) => {
                self.ready.extend(pieces);
                self.tell_at_risk(at_risk);
                (self.steps.has_more, self.behind, self.at_risk) = (has_more, behind, at_risk);
                self.steps.look_at = (!has_more).then(|| now + self.steps.poll);
            }
            Err(error) => self.steps.failed = Some(error),
        }
    }

    fn tell_at_risk(&self, files: usize) {
        if files > 0 && self.at_risk == 0 {
            tracing::warn!(
                input = self.name,
                files,
                "so many files have something to be read and are not open, since too few descriptors are free: one that is \
                 removed before it is its turn is lost; allow more open files"
            );
        }
    }

    fn failed(&mut self, why: String) {
        self.steps.failed = Some(SourceError::new(self.name.clone(), why));
    }

    /// Looks for new files each `poll`, so that those are open that are removed before it is their
    /// turn. Never ends.
    ///
    /// # Cancel safety
    /// Like [`end_step`](Self::end_step).
    async fn watch(&mut self) {
        while self.steps.failed.is_none() {
            if self.steps.stepping.is_none() {
                if let Some(heard) = self.steps.heard {
                    sleep_until(heard + self.steps.poll).await;
                }
                self.begin(|reader| Ok(reader.watch()));
            }
            self.end_step().await;
        }
        std::future::pending().await
    }

    /// Takes the piece at hand, once there is room for it. Whether that gave any.
    async fn take(&mut self, into: &mut Vec<Taken>) -> bool {
        if let (Some(Piece::Items(of, items)), true) = (self.ready.front(), self.is_committed)
            && let (Some(positions), Some(last)) = (&of.positions, items.items.last())
        {
            positions.resume();
            positions.room_for(last.position).await;
        }
        match self.ready.pop_front() {
            Some(Piece::Items(of, items)) => self.give(of, items, into),
            Some(Piece::CaughtUp(of)) => {
                of.positions.iter().for_each(FilePositions::caught_up);
                false
            }
            Some(Piece::Quiet { of, read, is_left }) => {
                if let Some(positions) = &of.positions {
                    positions.end(read);
                    positions.set_followed(!is_left);
                }
                false
            }
            None => false,
        }
    }

    fn give(&mut self, of: Arc<Visited>, mut items: Items, into: &mut Vec<Taken>) -> bool {
        let first = items.items.first().map(|item| item.position);
        if let Some(positions) = &of.positions {
            positions.resume();
        }
        if let Some(first) = first
            && self.turn.as_ref().is_none_or(|turn| !Arc::ptr_eq(&turn.of, &of))
        {
            self.begin_turn(&of, first);
        }
        if let Some(positions) = &of.positions {
            positions.received(&mut items);
        }
        let base = self.turn.as_ref().map_or(0, |turn| turn.base);
        let before = into.len();
        for mut item in items.items {
            item.position = base.wrapping_add(item.position);
            self.last = item.position;
            into.push(item);
        }
        into.len() > before
    }

    fn begin_turn(&mut self, of: &Arc<Visited>, first: u64) {
        // Of one file, positions are the numbers of its lines.
        let next = if self.last == 0 { first } else { self.last.wrapping_add(1) };
        let base = next.wrapping_sub(first);
        self.receipts = of.positions.clone().map(|positions| {
            positions.begins_behind(base);
            Arc::new(OfTurn { base, positions }) as _
        });
        let oldest = self.keeper.iter().flat_map(Committer::partitions).map(|of| of.oldest_open);
        self.places.begin(self.last, base, of.name.clone(), oldest.min());
        self.turn = Some(FollowTurn { of: of.clone(), base });
    }
}

fn named(path: &Path) -> String {
    format!("file:{}", path.display())
}

impl Source for FollowSource {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            loop {
                while !self.ready.is_empty() {
                    if self.steps.has_more && self.ready.len() == 1 {
                        self.begin_step();
                    }
                    if self.take(into).await {
                        return Ok(Pull::More);
                    }
                }
                if let Some(failed) = self.steps.failed.take() {
                    return Err(failed);
                }
                if self.steps.stepping.is_none() {
                    if let Some(at) = self.steps.look_at {
                        if self.looks {
                            return Ok(Pull::End);
                        }
                        sleep_until(at).await;
                        self.steps.look_at = None;
                    }
                    self.begin_step();
                }
                self.end_step().await;
            }
        })
    }

    fn held_up(&mut self) -> Option<BoxFuture<'_, ()>> {
        if self.looks {
            return None;
        }
        Some(Box::pin(self.watch()))
    }

    fn behind(&self) -> Option<u64> {
        Some(self.behind)
    }

    fn files_at_risk(&self) -> usize {
        self.at_risk
    }

    fn replayable(&self) -> bool {
        true
    }

    fn places(&self) -> Option<Arc<dyn Places>> {
        Some(self.places.clone())
    }

    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        self.is_committed = true;
        self.keeper.clone().map(|keeper| Arc::new(keeper) as _)
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        self.receipts.clone()
    }
}

impl Drop for FollowSource {
    fn drop(&mut self) {
        self.keeper.iter().for_each(Keeper::end_all);
    }
}
