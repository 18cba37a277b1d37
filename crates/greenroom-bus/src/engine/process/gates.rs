//! The gates that an attempt passes before it begins, for one event and for a batch, in this order.
//!
//! | gate | holds | until |
//! |---|---|---|
//! | pause of the pool | the worker, with the event | it is resumed, or nobody waits for the event |
//! | fair share | the worker | it is the turn of its pool |
//! | lease | the worker | the input knows that its partition is its own, or nobody waits for the event |
//! | revoked | the event | for ever |
//! | pause of the handler | the event | it is resumed |
//! | held | the event before its last attempt | others have told who is to blame |
//! | circuit | the event | the outage of its handler or share is over, or it is its turn to probe |
//!
//! The last one is room on the way back in ([`has_room`](super::loopback::has_room)): an event that
//! finds none has failed, so it is asked for once the attempt has begun.

use std::time::Duration;

use super::{
    circuit::Probe,
    entries::{HandlerEntry, PoolSettings},
    job::PoolJob,
};
use crate::engine::shared::Shared;

/// The wait of an event whose handler is paused, before it looks again.
const PAUSED: Duration = Duration::from_secs(1);

/// The longest wait of an event before its last attempt, before it checks again: inputs may end in
/// between, and then no other event comes.
const UNDECIDED: Duration = Duration::from_millis(100);

/// Why an event is not attempted now, and for how long it waits before it looks again.
pub(crate) type Hold = (&'static str, Duration);

/// The reason why an event waits while its handler is in outage.
pub(crate) const IN_OUTAGE: &str = "the handler is in outage";

/// Waits where the worker does, with all of these jobs of one handler in its hand.
pub(crate) async fn wait(
    shared: &Shared,
    pool: &PoolSettings,
    entry: &HandlerEntry,
    jobs: &[&mut PoolJob],
) {
    if pool.pause.is_on() {
        tokio::select! {
            () = pool.pause.lifted() => {}
            () = shared.inputs.revocations.until(jobs[0].origin.assigned) => {}
        }
    }
    if let Some(fair_share) = &shared.process.fair_share {
        fair_share.turn(entry.pool).await;
    }
    if !shared.inputs.leases.all_hold() {
        for job in jobs {
            is_ours(shared, job).await;
        }
    }
}

/// Waits until the input of this event is sure again that it owns the partition, or the event is
/// not waited for any more. A process that was paused for longer than its session has lost its
/// partitions without noticing (D12).
async fn is_ours(shared: &Shared, job: &PoolJob) {
    let input = shared.inputs.read_from(&job.origin);
    let Some(lease) = input.lease() else { return };
    tokio::select! {
        () = lease.held() => {}
        () = shared.inputs.revocations.until(job.origin.assigned) => {}
    }
}

/// Whether this event, which is not [given up](is_given_up), may be attempted now, perhaps as a
/// probe.
///
/// # Errors
/// Why it may not.
pub(crate) fn admit(shared: &Shared, entry: &HandlerEntry, job: &PoolJob) -> Result<Probe, Hold> {
    if entry.pause.is_on() {
        return Err(("the handler is paused", PAUSED));
    }
    if let Some(wait) = held(shared, job) {
        return Err(("its last attempt waits for others to say who is to blame", wait));
    }
    entry.circuits.admit(job).map(Probe).map_err(|wait| (IN_OUTAGE, wait))
}

/// True if an event is not to be started any more: its partition was revoked, or a stop does not
/// wait for it.
pub(crate) fn is_given_up(shared: &Shared, job: &PoolJob) -> bool {
    shared.inputs.revocations.has(job.origin.assigned)
}

/// How long an event waits before its last attempt, in steps: if the inputs end, or another event
/// succeeds, this event is to blame.
pub(crate) fn held(shared: &Shared, job: &PoolJob) -> Option<Duration> {
    let tries = &job.extras()?.tries;
    let left = tries.held_for(|| shared.inputs.others_may_come(&job.origin))?;
    let circuits = &shared.process.handlers[job.handler()].circuits;
    let others_succeed = circuits.has_worked_since(job, tries.streak());
    (!others_succeed).then_some(left.min(UNDECIDED))
}
