//! Inspecting and changing the shares of a running pool.

use std::{collections::HashMap, sync::Arc, time::Duration};

use greenroom_queue::shares::ShareQueue;
use tokio::time::Instant;

use super::{Share, ShareDesk, ShareLimits, ShareStatus, ShareTicket};
use crate::{
    Actor,
    pool::{admin::control::Control, admin::error::AdminError, frame::shares::change},
};

/// The shares of a pool with [`shared_by`](crate::PoolBuilder::shared_by). Settings made here apply
/// at once, even to waiting messages, and until the end of the pool.
///
/// ```
/// # use greenroom::{prelude::*, shares::ShareLimits};
/// # struct Clerk; impl Actor for Clerk {
/// # type Message = String; type Reply = (); type Error = ();
/// # async fn handle(&mut self, _: String, _: &mut Context<Self>) -> Result<(), ()> { Ok(()) } }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Clerk).workers(8).shared_by(String::clone).spawn().await?;
/// let shares = pool.admin().shares()?;
/// shares.set("acme", ShareLimits::default().in_hand(5))?;
/// shares.pause("acme");
/// pool.send("acme".to_owned()).await?;
/// assert_eq!(shares.status("acme").to_string(), "share acme: 0 of 5 in hand; 1 waiting; paused");
/// shares.resume("acme");
/// # Ok(()) }
/// ```
pub struct Shares<A: Actor> {
    control: Arc<dyn Control<A>>,
}

/// The messages of the pool have no shares: it was built without
/// [`shared_by`](crate::PoolBuilder::shared_by).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the messages of this pool have no shares")]
pub struct NoShares;

impl<A: Actor> Shares<A> {
    pub(in crate::pool) fn of(control: Arc<dyn Control<A>>) -> Result<Self, NoShares> {
        match control.frame().shares.is_some() {
            true => Ok(Self { control }),
            false => Err(NoShares),
        }
    }

    /// All shares that are in memory, and those of messages that wait elsewhere, in no particular
    /// order. It visits every waiting message: use it for queries, not for each message.
    pub fn list(&self) -> Vec<ShareStatus> {
        let mut waiting = self.waiting();
        let Some(desk) = self.desk() else { return Vec::new() };
        let views = self.change(|shares, now| shares.views(now).collect::<Vec<_>>());
        let mut all = Vec::new();
        for view in views.into_iter().flatten() {
            let messages = waiting.remove(&view.name).unwrap_or(0);
            all.push(ShareStatus::of(view, desk, messages));
        }
        let defaults = self.defaults();
        all.extend(
            waiting.into_iter().map(|(name, messages)| ShareStatus::idle(name, defaults, messages)),
        );
        all
    }

    /// How many attempts each share has in hand, for those that have any. Visits only the workers.
    pub fn in_hand(&self) -> HashMap<Share, usize> {
        let mut in_hand = HashMap::new();
        self.change(|shares, _| {
            shares.in_hand().for_each(|share| *in_hand.entry(share.clone()).or_default() += 1);
        });
        in_hand
    }

    /// Time in hand of all shares together.
    pub fn time_in_hand(&self) -> Duration {
        let time = self.change(|shares, now| shares.time_in_hand(now));
        Duration::from_nanos(time.unwrap_or(0))
    }

    /// One share. Visits every waiting message, like [`list`](Self::list).
    pub fn status(&self, share: impl Into<Share>) -> ShareStatus {
        let share = share.into();
        let waiting = self.waiting().remove(&share).unwrap_or(0);
        let view = self.change(|shares, now| shares.view(&share, now)).flatten();
        match (view, self.desk()) {
            (Some(view), Some(desk)) => ShareStatus::of(view, desk, waiting),
            _ => ShareStatus::idle(share, self.defaults(), waiting),
        }
    }

    /// The limits of each share without its own.
    pub fn defaults(&self) -> ShareLimits {
        let limits = self.change(|shares, _| shares.defaults());
        limits.map_or_else(ShareLimits::default, ShareLimits::of)
    }

    /// Changes the limits of each share without its own.
    ///
    /// # Errors
    /// A limit is out of range; nothing has changed then.
    pub fn set_defaults(&self, limits: ShareLimits) -> Result<(), AdminError> {
        let limits = checked(limits)?;
        self.change(|shares, now| shares.set_defaults(limits, now));
        Ok(())
    }

    /// Sets the limits of this share.
    ///
    /// # Errors
    /// A limit is out of range; nothing has changed then.
    pub fn set(&self, share: impl Into<Share>, limits: ShareLimits) -> Result<(), AdminError> {
        let (share, limits) = (share.into(), checked(limits)?);
        self.change(|shares, now| shares.set(&share, Some(limits), now));
        Ok(())
    }

    /// Resets the limits of this share to those that the pool was built with.
    pub fn unset(&self, share: impl Into<Share>) {
        let share = share.into();
        let built = self.desk().and_then(|desk| desk.built.get(&share).copied());
        self.change(|shares, now| shares.set(&share, built, now));
    }

    /// Starts nothing of this share until then. After that one attempt goes first as a probe, and
    /// the others follow once it has ended, unless the share is held again by then. Replaces an
    /// earlier hold.
    pub fn hold(&self, share: impl Into<Share>, until: Instant) {
        let share = share.into();
        let Some(desk) = self.desk() else { return };
        self.change(|shares, now| shares.hold(&share, desk.nanos(until), now));
    }

    /// Starts nothing of this share until it is [resumed](Self::resume).
    pub fn pause(&self, share: impl Into<Share>) {
        let share = share.into();
        self.change(|shares, now| shares.pause(&share, now));
    }

    /// Ends a pause or a hold, without a probe.
    pub fn resume(&self, share: impl Into<Share>) {
        let share = share.into();
        self.change(|shares, now| shares.resume(&share, now));
    }

    fn desk(&self) -> Option<&ShareDesk> {
        self.control.frame().shares.as_deref()
    }

    fn change<R>(
        &self,
        work: impl FnOnce(&mut ShareQueue<Share, ShareTicket>, u64) -> R,
    ) -> Option<R> {
        change(&*self.control, work)
    }

    /// The number of waiting messages of each share.
    fn waiting(&self) -> HashMap<Share, usize> {
        let mut waiting = HashMap::new();
        self.control.withdraw(&mut |message| {
            *waiting.entry(self.control.share_of(message)).or_default() += 1;
            false
        });
        waiting
    }
}

fn checked(limits: ShareLimits) -> Result<greenroom_queue::shares::Limits, AdminError> {
    limits.checked().map_err(|error| AdminError::LimitOutOfRange(error.to_string()))
}
