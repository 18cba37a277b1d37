//! One commit after the other, each a snapshot that counts with the broker's answer (F02).

use std::{
    mem,
    time::{Duration, Instant},
};

use greenroom_bus::{source::Partition, watermark::Snapshot};
use rdkafka::error::RDKafkaErrorCode;
use tokio::sync::oneshot;

use super::{
    super::storing::{Answers, StoredOffset, Storing},
    Poller, Rebalance, UnderWay,
};

/// The last commit is tried again after this time if it falls between two generations of the group.
const COMMIT_AGAIN: Duration = Duration::from_millis(50);
/// A failed commit that was made unasked.
const UNASKED_AGAIN: Duration = Duration::from_secs(1);

impl Poller {
    /// Takes the answer to the last commit, and begins another if one is wanted.
    pub(super) fn commit(&mut self) {
        if let Some(answers) = self.commits.storing.as_ref().and_then(Storing::answer) {
            self.is_committed(&answers);
        }
        if self.commits.committing.is_some() {
            return;
        }
        let is_due = self.commits.again.is_none_or(|at| Instant::now() >= at);
        let is_last = is_due
            && matches!(
                self.rebalances.rebalance,
                Some(Rebalance::Revoking { last_commit: Some(_), .. })
            );
        let asks = mem::take(&mut self.shared.state.lock().asks);
        let has_begun = is_due && mem::take(&mut self.commits.has_begun);
        if asks.is_empty() && !is_last && !has_begun {
            return;
        }
        self.shared.begins_commit();
        let snapshots = self.snapshots();
        let (false, Some(storing)) = (snapshots.is_empty(), &self.commits.storing) else {
            return self.are_answered(asks, is_last);
        };
        let place = |(number, _, said): &(Partition, Snapshot, StoredOffset)| {
            (self.reading[number].place.clone(), said.clone())
        };
        storing.ask(snapshots.iter().map(place).collect());
        self.commits.committing = Some(UnderWay { snapshots, asks, is_last, has_begun });
    }

    /// Of each partition that has something new to say: all of one moment (F02).
    fn snapshots(&self) -> Vec<(Partition, Snapshot, StoredOffset)> {
        let mut snapshots = Vec::new();
        for (number, reading) in &self.reading {
            // Its offsets beyond the other log's first one do not belong to that log.
            if reading.anew.is_some() {
                continue;
            }
            let snapshot = reading.tracker.watermark.lock().snapshot();
            let Some(snapshot) = snapshot.filter(|of| of.epoch() == reading.epoch) else {
                continue;
            };
            let lowest = snapshot.positions().lowest();
            let said = (lowest, self.limits.encode(snapshot.positions()).text);
            if reading.committed.as_ref() == Some(&said) {
                reading.tracker.watermark.lock().confirm(&snapshot);
                continue;
            }
            snapshots.push((*number, snapshot, said));
        }
        snapshots
    }

    fn is_committed(&mut self, answers: &Answers) {
        let Some(UnderWay { snapshots, asks, is_last, has_begun }) = self.commits.committing.take()
        else {
            return;
        };
        let (mut is_too_large, mut is_again) = (false, false);
        for ((number, snapshot, said), answer) in snapshots.into_iter().zip(answers) {
            match answer {
                Ok(()) => {
                    // An answer of an epoch that has ended confirms nothing.
                    let Some(reading) = self.reading.get_mut(&number) else { continue };
                    let counts = reading.tracker.watermark.lock().confirm(&snapshot);
                    if counts {
                        self.shared.shows_set(number, said.1.len());
                        reading.committed = Some(said);
                    }
                }
                Err(RDKafkaErrorCode::OffsetMetadataTooLarge) => is_too_large = true,
                Err(code) => {
                    is_again |= may_pass(*code);
                    self.cannot_commit(*code);
                }
            }
        }
        let pause = if is_last { COMMIT_AGAIN } else { UNASKED_AGAIN };
        self.commits.again = (is_again && (is_last || has_begun)).then(|| Instant::now() + pause);
        self.commits.has_begun |= is_again && has_begun;
        if is_too_large {
            let next = self.limits.shrink();
            tracing::warn!(
                "{}: the broker takes less metadata beside an offset than was thought; {next}",
                self.shared.name
            );
            // At once, as far as it fits now.
            self.shared.state.lock().asks.extend(asks);
            return;
        }
        self.are_answered(asks, is_last && self.commits.again.is_none());
    }

    fn cannot_commit(&mut self, code: RDKafkaErrorCode) {
        use RDKafkaErrorCode as Code;
        match code {
            // Another member has the partition, or will have it: that is reported elsewhere.
            Code::RebalanceInProgress
            | Code::IllegalGeneration
            | Code::UnknownMemberId
            | Code::StaleMemberEpoch
            | Code::AssignmentLost => {
                tracing::debug!("{}: a commit came too late: {code}", self.shared.name);
            }
            code => self.tell(code, &format!("positions are not stored for now: {code}")),
        }
    }

    fn are_answered(&mut self, asks: Vec<oneshot::Sender<()>>, is_last: bool) {
        // A caller that is gone need not know.
        asks.into_iter().for_each(|ask| _ = ask.send(()));
        if is_last {
            self.is_last_committed();
        }
    }
}

/// Whether a commit may succeed a little later. While a group goes from one generation to the next,
/// a member may name the last one.
fn may_pass(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    !matches!(
        code,
        Code::UnknownMemberId
            | Code::FencedInstanceId
            | Code::FencedMemberEpoch
            | Code::AssignmentLost
            | Code::GroupAuthorizationFailed
            | Code::TopicAuthorizationFailed
    )
}
