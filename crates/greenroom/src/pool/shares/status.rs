//! The status of a share.

use std::{fmt, time::Duration};

use greenroom_queue::shares::{ShareView, Standing};
use tokio::time::Instant;

use super::{Share, ShareDesk, ShareLimits};

/// A share, as it was at the time of the query.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShareStatus {
    /// Its name.
    pub share: Share,
    /// Its limits.
    pub limits: ShareLimits,
    /// True if these limits are its own.
    pub is_set: bool,
    /// Messages that wait to be started or to be retried.
    pub waiting: usize,
    /// Attempts in hand.
    pub in_hand: usize,
    /// Time in hand. Time from before the share was last forgotten counts if the share is one of
    /// the busiest.
    pub held: Duration,
    /// The event that it waits for.
    pub state: ShareState,
}

/// The event that a share waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShareState {
    /// A worker.
    Ready,
    /// Nothing: it has no message that could be started.
    Idle,
    /// The end of one of its attempts: the most are in hand.
    Full,
    /// This moment, because of its rate.
    Rate(Instant),
    /// This moment, because of a hold.
    Held(Instant),
    /// The end of the attempt that is the probe after a hold.
    Probing,
    /// A resume, or a cap above 0.
    Paused,
}

impl ShareState {
    fn of(standing: Standing, desk: &ShareDesk) -> Self {
        match standing {
            Standing::Startable => Self::Ready,
            Standing::Idle => Self::Idle,
            Standing::Full => Self::Full,
            Standing::Spent(until) => Self::Rate(desk.moment(until)),
            Standing::Held(until) => Self::Held(desk.moment(until)),
            Standing::Probing => Self::Probing,
            Standing::Paused => Self::Paused,
        }
    }
}

impl ShareStatus {
    pub(super) fn of(view: ShareView<Share>, desk: &ShareDesk, waiting: usize) -> Self {
        Self {
            share: view.name,
            limits: ShareLimits::of(view.limits),
            is_set: view.is_set,
            waiting,
            in_hand: view.in_hand as usize,
            held: Duration::from_nanos(view.held),
            state: ShareState::of(view.standing, desk),
        }
    }

    /// The status of a share that is not in memory.
    pub(super) fn idle(share: Share, limits: ShareLimits, waiting: usize) -> Self {
        let (is_set, in_hand, held, state) = (false, 0, Duration::ZERO, ShareState::Idle);
        Self { share, limits, is_set, waiting, in_hand, held, state }
    }
}

/// For example `share acme: 5 of 5 in hand; 212 waiting`.
impl fmt::Display for ShareStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { share, in_hand, waiting, .. } = self;
        match share {
            common if *common == Share::COMMON => f.write_str("messages without a share: ")?,
            share => write!(f, "share {share}: ")?,
        }
        match self.limits.most_in_hand() {
            Some(most) => write!(f, "{in_hand} of {most} in hand; {waiting} waiting")?,
            None => write!(f, "{in_hand} in hand; {waiting} waiting")?,
        }
        let wait = |until: &Instant| until.saturating_duration_since(Instant::now());
        match &self.state {
            ShareState::Ready | ShareState::Idle | ShareState::Full => Ok(()),
            ShareState::Rate(until) => write!(f, "; next by its rate in {:.1?}", wait(until)),
            ShareState::Held(until) => write!(f, "; held for {:.1?}", wait(until)),
            ShareState::Probing => f.write_str("; one attempt probes"),
            ShareState::Paused => f.write_str("; paused"),
        }
    }
}
