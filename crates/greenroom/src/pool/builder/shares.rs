//! Shares: the owners of messages, and their limits.

use std::hash::Hash;

use super::{PoolBuilder, functions::KeyOf};
use crate::{
    Actor, SpawnError,
    pool::{
        core::shares::ByShare,
        shares::{Share, ShareDesk, ShareLimits},
    },
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> PoolBuilder<A, K> {
    /// Divides the workers' time among shares: tenants, accounts, endpoints. While several have
    /// messages that could start, each gets the same part of the time in hand, or a part by its
    /// [weight](ShareLimits::weight), however many messages or keys it has. Others get the time
    /// that a share does not use. See [`shares`](crate::shares).
    ///
    /// For pools with [`ordered_by`](Self::ordered_by), which comes before it and whose order
    /// stays, and for pools without: messages of one sender and share are then started in the
    /// order of acceptance.
    ///
    /// The function runs in the workers, more than once for a message. It should be cheap: a
    /// number, or an `Arc<str>`. If it panics, the message gets the common share.
    ///
    /// ```
    /// # use greenroom::{prelude::*, shares::ShareLimits};
    /// # struct Clerk; impl Actor for Clerk {
    /// # type Message = (u32, u64); type Reply = (); type Error = ();
    /// # async fn handle(&mut self, _: (u32, u64), _: &mut Context<Self>) -> Result<(), ()> {
    /// # Ok(()) } }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk)
    ///     .workers(64)
    ///     .ordered_by(|&(_, order): &(u32, u64)| order)
    ///     .shared_by(|&(tenant, _): &(u32, u64)| tenant)
    ///     .share_limits(ShareLimits::default().in_hand(16))
    ///     .share(7_u32, ShareLimits::default().weight(3))
    ///     .spawn()
    ///     .await?;
    /// pool.send((7, 1)).await?;
    /// # Ok(()) }
    /// ```
    pub fn shared_by<S: Into<Share>>(
        mut self,
        share: impl Fn(&A::Message) -> S + Send + Sync + 'static,
    ) -> Self {
        self.share_of = Some(Box::new(move |message| share(message).into()));
        self.sharing = Some(Box::new(ByShare));
        self.limits().shared = true;
        self
    }

    /// The default limits of each share: a weight of 1 and no cap unless set.
    pub fn share_limits(mut self, limits: ShareLimits) -> Self {
        self.config.shares.get_or_insert_default().defaults = limits;
        self
    }

    /// The limits of this share.
    pub fn share(mut self, share: impl Into<Share>, limits: ShareLimits) -> Self {
        self.config.shares.get_or_insert_default().named.insert(share.into(), limits);
        self
    }

    /// The shares, if there are any. A pool without keys then has only messages without one: each
    /// of them waits in the line of its share, as a key does.
    pub(super) fn checked_shares(&mut self) -> Result<Option<Box<ShareDesk>>, SpawnError> {
        let config = self.config.shares.take().unwrap_or_default();
        if self.share_of.is_none() {
            return Ok(None);
        }
        if self.push.is_some() {
            return Err(SpawnError::SharesArePulled { pool: self.config.name.to_string() });
        }
        if self.sharing.is_none() {
            return Err(SpawnError::SharesBeforeOrder { pool: self.config.name.to_string() });
        }
        let ordered = self.key_of.is_some();
        let without: KeyOf<A::Message, K> = Box::new(|_| None);
        self.key_of.get_or_insert(without);
        Ok(Some(Box::new(ShareDesk::checked(config.defaults, config.named, ordered)?)))
    }
}
