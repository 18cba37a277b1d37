//! A look at a process that has nothing in hand: nobody waits for it, and it may end all the same.

use std::time::Duration;

use tokio::{process::Child, task::JoinHandle, time::sleep};

use super::group::Group;

/// How often it is looked whether the process still runs. What it leaves behind lives on for as
/// long as that.
const LOOK: Duration = Duration::from_secs(1);

/// Ends what a process leaves behind that ends by itself, for as long as this is kept.
#[derive(Debug)]
pub(super) struct Watch(JoinHandle<()>);

impl Watch {
    /// Watches the leader of a group. What the leader has started gets `patience` to end.
    pub(super) fn over(child: &Child, group: &Group, patience: Duration) -> Self {
        let (leader, group) = (child.id(), group.number());
        Self(tokio::spawn(async move {
            let (Some(leader), Some(group)) = (leader, group) else { return };
            while !has_ended(leader) {
                sleep(LOOK).await;
            }
            group.ask();
            sleep(patience).await;
            // The group has its number for as long as nobody has waited for its leader.
            if has_ended(leader) {
                group.kill();
            }
        }))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whether a process has ended and nobody has waited for it. It still can be waited for afterwards.
#[cfg(unix)]
fn has_ended(id: u32) -> bool {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let id = i32::try_from(id).ok().and_then(Pid::from_raw);
    id.is_some_and(|id| matches!(waitid(WaitId::Pid(id), how), Ok(Some(_))))
}

#[cfg(not(unix))]
fn has_ended(_id: u32) -> bool {
    false
}
