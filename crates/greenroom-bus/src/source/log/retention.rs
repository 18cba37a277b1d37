//! Removes the oldest segments, whole, once no consumer needs anything of them.
//!
//! A segment is removed when it is older than [`keep_for`](super::LogOptions::keep_for), or when
//! its room is needed. A log without consumers keeps everything, because the needs of a later
//! consumer are unknown. The *stored* positions of the consumers decide, not their progress since.

use std::io;

use super::{
    clock::millis,
    disk::replace,
    identities::Identities,
    recovery::{IDENTITIES, identities_file},
    segment::{SPARE, Segment},
    shared::Shared,
};

/// The other inputs of the decision, besides the consumers.
#[derive(Clone, Copy)]
pub(super) struct RetentionMoment {
    /// Of the log's clock.
    pub(super) now: u64,
    /// The sequence number of the next event.
    pub(super) next: u64,
    /// This many bytes are wanted for a new segment.
    pub(super) wanted: u64,
}

/// Removes segments that are not needed. Keeps one file as a spare, unless there is one.
pub(super) fn retain(
    shared: &Shared,
    identities: &Identities,
    has_spare: &mut bool,
    moment: RetentionMoment,
) -> io::Result<()> {
    while let Some((segment, end)) = oldest_to_remove(shared, moment) {
        let spares = !*has_spare && segment.length == shared.options.segment_bytes;
        let removed = remove(shared, identities, spares, &segment, (end, moment.next));
        if let Err(error) = removed {
            // Without it there would be a gap as soon as the next one is removed.
            shared.segments.lock().0.push_front(segment);
            return Err(error);
        }
        shared.disk.sync_directory(&shared.directory)?;
        // Not before: a crash may give the file its old name back, and then it has to be whole.
        *has_spare |= spares;
    }
    Ok(())
}

fn remove(
    shared: &Shared,
    identities: &Identities,
    spares: bool,
    segment: &Segment,
    (end, next): (u64, u64),
) -> io::Result<()> {
    keep_identities(shared, identities, segment, (end, next))?;
    match spares {
        true => shared.disk.rename(&segment.path, &shared.directory.join(SPARE)),
        false => shared.disk.remove(&segment.path),
    }
}

/// Takes the oldest segment out of the log, if it may go, and says where the next one begins.
/// Decided under the lock under which a new consumer begins.
fn oldest_to_remove(shared: &Shared, moment: RetentionMoment) -> Option<(Segment, u64)> {
    let options = &shared.options;
    let mut segments = shared.segments.lock();
    let second = segments.0.get(1)?.header;
    if shared.consumers.lowest()? < second.base {
        return None;
    }
    // The second one was begun when the first one ended.
    let is_old = moment.now.saturating_sub(second.created) >= millis(options.keep_for);
    let is_crowded = segments.bytes() + moment.wanted > options.max_bytes;
    let goes = is_old || is_crowded;
    let oldest = if goes { segments.0.pop_front() } else { None };
    oldest.map(|oldest| (oldest, second.base))
}

/// Its identities are remembered longer than its events.
fn keep_identities(
    shared: &Shared,
    identities: &Identities,
    segment: &Segment,
    (end, next): (u64, u64),
) -> io::Result<()> {
    if identities.most() == 0 {
        return Ok(());
    }
    let entries = identities.below(end, next);
    let bytes = identities_file(segment.header.log, end, &entries);
    replace(&*shared.disk, &shared.directory.join(IDENTITIES), &bytes)
}
