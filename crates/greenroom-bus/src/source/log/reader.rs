//! Reads events of a log in their order, a block at a time.

use std::{collections::VecDeque, sync::Arc};

use super::{
    error::{Damage, LogError},
    recovery::missing,
    segment::Segment,
    shared::Shared,
    walk::{Step, Walk},
};
use crate::{event::Event, source::Taken};

/// The reading position of one consumer.
pub(super) struct ConsumerReader {
    shared: Arc<Shared>,
    /// The sequence number of the next event.
    next: u64,
    walk: Option<Walk>,
}

impl ConsumerReader {
    /// From this sequence number on.
    pub(super) fn new(shared: Arc<Shared>, next: u64) -> Self {
        Self { shared, next, walk: None }
    }

    /// The sequence number of the next event.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Reads the block with the next event, which is durable. Takes as long as the disk takes.
    pub(super) fn read(&mut self) -> Result<VecDeque<Taken>, LogError> {
        let mut walk = self.walk_to_next()?;
        let block = loop {
            match walk.step(true)? {
                Step::Block(block) if block.next() > self.next => break block,
                Step::Block(_) => {}
                Step::Damaged { damage, .. } => return Err(LogError::Damaged(damage)),
                Step::End(_) => {
                    let damage = walk.damage("it ends there, and more was durable");
                    return Err(LogError::Damaged(damage));
                }
            }
        };
        let mut taken = VecDeque::with_capacity(block.header.count as usize);
        for (position, stored) in block.records().filter(|(sequence, _)| *sequence >= self.next) {
            let event = Event::read_stored(stored).map_err(|error| {
                let (file, what) = (walk.segment.path.clone(), error.to_string());
                let damage = Damage { file, offset: walk.offset, sequence: position, what };
                LogError::Damaged(damage)
            })?;
            taken.push_back(Taken { position, event: Ok(event) });
        }
        self.next = block.next();
        self.walk = Some(walk);
        Ok(taken)
    }

    /// In the segment with the next event, near its block.
    fn walk_to_next(&mut self) -> Result<Walk, LogError> {
        let segment = self.shared.segments.lock().containing(self.next).cloned();
        let Some(segment) = segment else { return Err(self.gone()) };
        if let Some(walk) = self.walk.take() {
            if walk.segment == segment {
                return Ok(walk);
            }
            if walk.next != segment.header.base {
                return Err(LogError::Damaged(missing(&walk, segment.header.base)));
            }
        }
        let base = segment.header.base;
        let (segment, file) = Segment::open(&*self.shared.disk, &segment.path, base, false)?;
        let mut walk = Walk::new(segment, file);
        while walk.skip_block_before(self.next)? {}
        Ok(walk)
    }

    fn gone(&self) -> LogError {
        let (file, first) = (self.shared.directory.clone(), self.shared.segments.lock().first());
        let what = format!("the log begins with event {first}");
        LogError::Damaged(Damage { file, offset: 0, sequence: self.next, what })
    }
}
