//! The process group of a worker: the worker itself, and all that it started and that did not leave
//! the group.
//!
//! A group is ended in two steps: SIGTERM, and after a while SIGKILL for the remaining members. Its
//! number is that of the worker. The system does not reuse it while the group has a member, and a
//! worker that has not been waited for is one. After that, a signal is sent at once or while there
//! are members; within the 10 ms between two looks, the number cannot realistically wrap around all
//! others and become that of a new group.

use std::{collections::BTreeSet, time::Duration};

use parking_lot::Mutex;
use tokio::{
    process::Child,
    time::{Instant, sleep},
};

/// How often it is looked whether a group that was told to end is gone.
const LOOK: Duration = Duration::from_millis(10);

/// The groups of this program that were not ended: they would survive if the program ended now.
static ALIVE: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Kills every worker process of this program, with all that they started, at once.
///
/// For the moment before [`std::process::exit`], which runs no destructors. A handler that is
/// stopped or dropped has seen to its own process.
pub fn kill_all() {
    let alive = std::mem::take(&mut *ALIVE.lock());
    alive.into_iter().for_each(system::kill);
}

/// A group that may have members. Dropped, it is killed.
#[derive(Debug)]
pub(super) struct ProcessGroup(Option<i32>);

impl ProcessGroup {
    /// The group that a process leads which was started as its leader.
    pub(super) fn led_by(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(id) = id {
            ALIVE.lock().insert(id);
        }
        Self(id)
    }

    /// Asks all members to end. True if there are any.
    pub(super) fn ask(&self) -> bool {
        self.0.is_some_and(system::terminate)
    }

    /// Kills all members. The group is still there to be asked while its leader was not waited for.
    pub(super) fn kill(&self) {
        if let Some(id) = self.0 {
            system::kill(id);
        }
    }

    /// Ends the remains of a group whose leader is gone, and waits until they are gone; kills them
    /// after `patience`.
    pub(super) async fn end(self, patience: Duration) {
        let end = Instant::now() + patience;
        let mut is_there = self.ask();
        while is_there && Instant::now() < end {
            sleep(LOOK).await;
            is_there = self.0.is_some_and(system::is_there);
        }
        match is_there {
            true => drop(self),
            false => self.forget(),
        }
    }

    /// Like [`end`](Self::end), in the background.
    pub(super) fn end_in_background(self, patience: Duration) {
        match self.ask() {
            true => drop(tokio::spawn(self.end(patience))),
            false => self.forget(),
        }
    }

    /// No process is left to be killed.
    fn forget(mut self) {
        if let Some(id) = self.0.take() {
            ALIVE.lock().remove(&id);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(id) = self.0.take() {
            system::kill(id);
            ALIVE.lock().remove(&id);
        }
    }
}

mod system {
    use rustix::process::{
        Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpgid,
    };

    /// An error means that the group is gone.
    pub(super) fn kill(id: i32) {
        let _ = Pid::from_raw(id).map(|group| kill_process_group(group, Signal::KILL));
    }

    pub(super) fn terminate(id: i32) -> bool {
        Pid::from_raw(id).is_some_and(|group| kill_process_group(group, Signal::TERM).is_ok())
    }

    /// A dead process stays a member until its parent has waited for it. As the first process of a
    /// container, greenroom is the parent of its workers' orphans.
    pub(super) fn is_there(id: i32) -> bool {
        Pid::from_raw(id).is_some_and(|group| {
            while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
            test_kill_process_group(group).is_ok()
        })
    }
}
