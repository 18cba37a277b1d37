//! The one thread that writes a log: all pending appends become one block, one write and one sync.

use std::{
    collections::HashSet,
    io,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use rand::random;

use super::{
    AppendError, Appended,
    active::Active,
    clock::{LogClock, millis},
    format::{BlockBuilder, SEGMENT_HEADER, SegmentHeader},
    identities::Identities,
    retention::{RetentionMoment, retain},
    roll::{NoSegment, begin_segment},
    shared::{Held, Shared, WriterState},
    waiting::{Append, Waiting, Work},
};

/// How often it is looked whether something has become old, and whether a log that is full has
/// room.
const LOOK: Duration = Duration::from_secs(10);

/// A log that is full becomes less so when a consumer commits, which takes about a second.
const LATER: Duration = Duration::from_secs(5);

/// Writes a log.
pub(super) struct LogCommitter {
    pub(super) shared: Arc<Shared>,
    pub(super) log: u64,
    pub(super) active: Active,
    /// The sequence number of the next event.
    pub(super) next: u64,
    pub(super) clock: LogClock,
    pub(super) identities: Identities,
    pub(super) has_spare: bool,
    pub(super) held: Held,
    /// When it was looked last whether something has become old, by the log's clock.
    pub(super) looked: u64,
    /// Bytes of the block for which there was no room the last time, in a log that is full.
    pub(super) lacks: Option<u64>,
}

impl LogCommitter {
    /// Runs until the log is closed, or fails.
    pub(super) fn spawn(mut self) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name("greenroom-log".to_owned()).spawn(move || {
            let ending = CommitterEnding(self.shared.clone());
            let writer = self.run();
            // Let go of before anybody hears of the end: the directory is to be free then.
            drop(self.held);
            ending.has_come(writer);
        })
    }

    fn run(&mut self) -> WriterState {
        loop {
            let is_due = self.clock.now().saturating_sub(self.looked) >= millis(LOOK);
            let work = if is_due { Work::Retain } else { self.waiting().next(LOOK) };
            let done = match work {
                Work::Write(appends) => self.commit(appends),
                Work::Retain => self.look(),
                Work::End => {
                    self.retain(0);
                    return self.seal();
                }
            };
            if let Err(why) = done {
                self.waiting().fail(&why);
                return WriterState::Failed(why.to_string().into());
            }
        }
    }

    /// Removes old segments, and resumes a full log once there is room.
    fn look(&mut self) -> Result<(), AppendError> {
        self.retain(0);
        let Some(block) = self.lacks else { return Ok(()) };
        match self.roll(block, self.clock.now()) {
            Err(AppendError::Full { .. }) => Ok(()),
            rolled => rolled,
        }
    }

    fn waiting(&self) -> &Waiting {
        &self.shared.waiting
    }

    /// Makes appends durable and answers them.
    ///
    /// # Errors
    /// The log has failed; they were told.
    fn commit(&mut self, appends: Vec<Append>) -> Result<(), AppendError> {
        let time = self.clock.now();
        self.identities.expire(time);
        let (block, fresh, counts) = self.block_of(&appends);
        let written = if block.count() == 0 { Ok(()) } else { self.write(block, time) };
        if written.is_ok() {
            for identity in fresh {
                self.identities.insert(identity, time);
            }
        }
        for (append, counts) in appends.into_iter().zip(counts) {
            // If the receiver was dropped, no caller waits for the answer.
            let _ = append.answer.send(written.clone().map(|()| counts));
        }
        match written {
            Err(AppendError::Full { .. }) => Ok(()),
            written => written,
        }
    }

    /// The new events among these, and the answer to each append.
    fn block_of(
        &self,
        appends: &[Append],
    ) -> (BlockBuilder, Vec<super::identities::EventIdentity>, Vec<Appended>) {
        let remembers = self.identities.most() > 0;
        let mut block = BlockBuilder::new(self.next);
        let (mut fresh, mut in_block) = (Vec::new(), HashSet::new());
        let count = |append: &Append| {
            let mut counts = Appended::default();
            for (event, checksum, identity) in append.prepared.events() {
                let is_repeated = remembers
                    && (self.identities.contains(identity) || !in_block.insert(*identity));
                if is_repeated {
                    counts.repeated += 1;
                    continue;
                }
                counts.stored += 1;
                block.push(event, checksum);
                fresh.push(*identity);
            }
            counts
        };
        let counts = appends.iter().map(count).collect();
        (block, fresh, counts)
    }

    fn write(&mut self, block: BlockBuilder, time: u64) -> Result<(), AppendError> {
        let count = u64::from(block.count());
        self.make_room(block.length(), time)?;
        let bytes = block.finish(time, self.active.segment.header.salt);
        if let Err(error) = self.active.append(&bytes) {
            return Err(failed(&self.active.segment.path.display().to_string(), &error));
        }
        self.shared.count_sync();
        self.next += count;
        let next = self.next;
        self.shared.durable.send_modify(|durable| durable.next = next);
        Ok(())
    }

    /// Makes room for a block of this many bytes in the segment that is written.
    fn make_room(&mut self, block: u64, time: u64) -> Result<(), AppendError> {
        let fits = self.active.fits(block);
        if fits && !self.is_outsized() {
            return Ok(());
        }
        match self.roll(block, time) {
            // The disk is full, so the large segment is used for as long as it has room.
            Err(AppendError::Full { .. }) if fits => Ok(()),
            Err(AppendError::Full { reason, retry_after }) => {
                self.found_full(block, &reason);
                Err(AppendError::Full { reason, retry_after })
            }
            rolled => rolled,
        }
    }

    fn found_full(&mut self, block: u64, reason: &str) {
        self.lacks = Some(block);
        let told = self.shared.trouble.lock().full.replace(reason.to_owned()).is_some();
        if !told {
            let log = self.shared.directory.display();
            tracing::error!(%log, reason, "the log is full: events are refused");
        }
    }

    fn found_room(&mut self) {
        if self.lacks.take().is_some() {
            self.shared.trouble.lock().full = None;
            let log = self.shared.directory.display();
            tracing::info!(%log, "the log has room again");
        }
    }

    /// Whether the segment that is written leaves no room for another one. It was begun when
    /// `max_bytes` was higher, and cannot be removed before there is another.
    fn is_outsized(&self) -> bool {
        self.active.segment.length > self.shared.options.max_bytes / 2
    }

    /// Continues in a new segment, with room for a block of this many bytes.
    fn roll(&mut self, block: u64, time: u64) -> Result<(), AppendError> {
        let usual = self.shared.options.segment_bytes;
        let length = usual.max(SEGMENT_HEADER as u64 + block);
        self.retain(length);
        let bytes = self.shared.segments.lock().bytes();
        if bytes + length > self.shared.options.max_bytes && !self.is_outsized() {
            return Err(self.full(bytes));
        }
        let recycle = self.has_spare && length == usual;
        let (log, base, salt) = (self.log, self.next, random());
        let header = SegmentHeader { log, base, created: time, salt, length };
        let Shared { disk, directory, .. } = &*self.shared;
        let active = begin_segment(&**disk, directory, header, recycle);
        self.active = active.map_err(|why| match why {
            NoSegment::Full(error) => disk_full(&directory.display().to_string(), &error),
            NoSegment::Failed(error) => failed(&directory.display().to_string(), &error),
        })?;
        self.has_spare &= !recycle;
        self.shared.segments.lock().0.push_back(self.active.segment.clone());
        self.found_room();
        Ok(())
    }

    fn retain(&mut self, wanted: u64) {
        self.looked = self.clock.now();
        let moment = RetentionMoment { now: self.looked, next: self.next, wanted };
        if let Err(error) = retain(&self.shared, &self.identities, &mut self.has_spare, moment) {
            tracing::warn!(
                log = %self.shared.directory.display(),
                %error,
                "a segment that nobody needs could not be removed: it is looked at again when the log is opened"
            );
        }
    }

    fn full(&self, bytes: u64) -> AppendError {
        let most = self.shared.options.max_bytes;
        let consumers = self.shared.consumers.all();
        let slowest = consumers.iter().min_by_key(|(_, stored, _)| stored.positions.lowest());
        let who = match slowest {
            Some((name, stored, is_read)) => {
                let (lowest, idle) = (
                    stored.positions.lowest(),
                    if *is_read { "" } else { ", for which nothing reads," },
                );
                format!(
                    "the consumer `{name}`{idle} still needs everything from event {lowest} on: let it catch up, or remove it \
                     if it is not used any more"
                )
            }
            None => "no consumer has read it yet".to_owned(),
        };
        let reason = format!(
            "the log has {bytes} bytes, a new segment would be more than max_bytes ({most}) allows, and {who}; or raise max_bytes"
        );
        AppendError::Full { reason, retry_after: LATER }
    }

    /// Says that all before is durable, so that damage to the last block can be told from a crash.
    fn seal(&mut self) -> WriterState {
        let block = BlockBuilder::new(self.next);
        if self.active.fits(block.length()) {
            let bytes = block.finish(self.clock.now(), self.active.segment.header.salt);
            if let Err(error) = self.active.append(&bytes) {
                // All that was acknowledged is durable without it.
                tracing::warn!(log = %self.shared.directory.display(), %error, "the log could not be sealed");
            }
        }
        WriterState::Closed
    }
}

fn failed(path: &str, error: &io::Error) -> AppendError {
    AppendError::Failed(format!(
        "{path} cannot be written: {error}; the log stores nothing more, because a second try might only seem to succeed. What \
         was acknowledged is kept: mend the disk, then start again"
    ))
}

fn disk_full(path: &str, error: &io::Error) -> AppendError {
    let reason =
        format!("{path}: {error}: no room for a new segment; free some space, or lower max_bytes");
    AppendError::Full { reason, retry_after: LATER }
}

/// Notifies readers and appenders that the writer has ended, even by a panic.
struct CommitterEnding(Arc<Shared>);

impl CommitterEnding {
    fn has_come(self, writer: WriterState) {
        self.0.durable.send_modify(|durable| durable.writer = writer);
    }
}

impl Drop for CommitterEnding {
    fn drop(&mut self) {
        let is_open = self.0.durable.borrow().writer == WriterState::Open;
        if is_open {
            let why = "its writing thread ended unexpectedly; start again";
            self.0.waiting.fail(&AppendError::Failed(why.to_owned()));
            self.0.durable.send_modify(|durable| durable.writer = WriterState::Failed(why.into()));
        }
    }
}
