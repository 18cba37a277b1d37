//! The events beside one pool whose shares have no room in it, in order.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use crate::engine::{
    account::order_audit::OrderLine,
    process::{
        job::PoolJob,
        share_rooms::{ShareName, ShareRooms},
    },
};

/// An event, and the partition in whose turn it is handed over.
type AsideJob = (PoolJob, Option<u32>);

/// Of one input and one pool.
#[derive(Default)]
pub(crate) struct Aside {
    by_share: BTreeMap<ShareName, VecDeque<AsideJob>>,
    len: usize,
}

impl Aside {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PoolJob> {
        self.by_share.values().flatten().map(|(job, _)| job)
    }

    /// The share with most events here.
    pub(crate) fn longest(&self) -> Option<(&ShareName, usize)> {
        let lens = self.by_share.iter().map(|(share, waiting)| (share, waiting.len()));
        lens.max_by_key(|(_, events)| *events)
    }

    /// Keeps an event that has no room, or one before it in its line; otherwise returns it.
    pub(crate) fn keep(
        &mut self,
        rooms: &Arc<ShareRooms>,
        mut job: PoolJob,
        turn: Option<u32>,
    ) -> Option<PoolJob> {
        let before = job.line.as_ref().and_then(|line| rooms.aside(line));
        let share = before.unwrap_or_else(|| job.share().cloned());
        if !self.by_share.contains_key(&share) && job.enters(rooms) {
            return Some(job);
        }
        job.waits_beside(rooms, share.clone());
        self.by_share.entry(share).or_default().push_back((job, turn));
        self.len += 1;
        None
    }

    /// Takes out the next event whose share has room by now.
    pub(crate) fn next(&mut self, rooms: &Arc<ShareRooms>) -> Option<AsideJob> {
        let share = rooms.open(|share| self.by_share.contains_key(share))?;
        let waiting = self.by_share.get_mut(&share)?;
        // Another input may have taken the room.
        let next = waiting.pop_front_if(|(first, _)| first.enters(rooms))?;
        if waiting.is_empty() {
            self.by_share.remove(&share);
        }
        self.left(rooms, next.0.line.as_ref());
        Some(next)
    }

    pub(crate) fn retain(&mut self, rooms: &ShareRooms, stays: impl Fn(&PoolJob) -> bool) {
        let mut gone = Vec::new();
        for waiting in self.by_share.values_mut() {
            waiting.retain(|(job, _)| {
                let stays = stays(job);
                if !stays {
                    gone.push(job.line.clone());
                }
                stays
            });
        }
        self.by_share.retain(|_, waiting| !waiting.is_empty());
        gone.iter().for_each(|line| self.left(rooms, line.as_ref()));
    }

    fn left(&mut self, rooms: &ShareRooms, line: Option<&OrderLine>) {
        self.len -= 1;
        line.into_iter().for_each(|line| rooms.steps_in(line));
    }
}
