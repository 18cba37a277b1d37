//! What the engine knows of the shares of a pool, beside what the pool itself does.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use greenroom::shares::ShareLimits;
use parking_lot::Mutex;

/// Of one pool.
#[derive(Debug, Default)]
pub(crate) struct PoolShares {
    /// What single shares may by the configuration.
    named: Mutex<BTreeMap<Arc<str>, ShareLimits>>,
    /// What was set by hand while it runs.
    by_hand: Mutex<BTreeMap<Arc<str>, ShareLimits>>,
    /// Shares whose target wants nothing more. `None`: the inputs have ended, and each event finds
    /// that out for itself.
    gone: Mutex<Option<Vec<Arc<str>>>>,
    /// Shares that an operator has paused.
    paused: Mutex<BTreeSet<Arc<str>>>,
}

impl PoolShares {
    pub(crate) fn new(named: impl IntoIterator<Item = (Arc<str>, ShareLimits)>) -> Self {
        let named = Mutex::new(named.into_iter().collect());
        Self { named, gone: Mutex::new(Some(Vec::new())), ..Self::default() }
    }

    pub(crate) fn named(&self) -> BTreeMap<Arc<str>, ShareLimits> {
        self.named.lock().clone()
    }

    /// Takes other limits of the configuration over. Those from before.
    pub(crate) fn rename(
        &self,
        named: BTreeMap<Arc<str>, ShareLimits>,
    ) -> BTreeMap<Arc<str>, ShareLimits> {
        std::mem::replace(&mut self.named.lock(), named)
    }

    pub(crate) fn has_limits(&self, share: &str) -> bool {
        self.named.lock().contains_key(share) || self.by_hand.lock().contains_key(share)
    }

    pub(crate) fn by_hand(&self) -> BTreeMap<Arc<str>, ShareLimits> {
        self.by_hand.lock().clone()
    }

    /// Set by hand, or not any more.
    pub(crate) fn note(&self, share: &str, limits: Option<ShareLimits>) {
        match limits {
            Some(limits) => drop(self.by_hand.lock().insert(share.into(), limits)),
            None => drop(self.by_hand.lock().remove(share)),
        }
    }

    /// The target of this share wants nothing more of it. False if nobody could resume it: the
    /// inputs have ended.
    pub(crate) fn is_gone(&self, share: &Arc<str>) -> bool {
        let mut gone = self.gone.lock();
        let Some(gone) = &mut *gone else { return false };
        if !gone.contains(share) {
            tracing::warn!(
                share = &**share,
                "the target wants nothing more of a share: it is paused until it is resumed"
            );
            gone.push(share.clone());
        }
        true
    }

    /// An operator has paused it.
    pub(crate) fn is_paused(&self, share: &str) {
        self.paused.lock().insert(share.into());
    }

    /// The shares that wait for a resume: those paused by hand, and those whose target wants
    /// nothing more.
    pub(crate) fn stopped(&self) -> (BTreeSet<Arc<str>>, Vec<Arc<str>>) {
        (self.paused.lock().clone(), self.gone.lock().clone().unwrap_or_default())
    }

    /// It is resumed.
    pub(crate) fn is_resumed(&self, share: &str) {
        self.paused.lock().remove(share);
        self.is_back(share);
    }

    /// Its target is asked again.
    pub(crate) fn is_back(&self, share: &str) {
        if let Some(gone) = &mut *self.gone.lock() {
            gone.retain(|one| **one != *share);
        }
    }

    /// The inputs have ended. The shares whose events wait for an operator.
    pub(crate) fn end(&self) -> Vec<Arc<str>> {
        self.gone.lock().take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q12_a_share_whose_target_is_gone_waits_for_an_operator_until_the_inputs_end() {
        let shares = PoolShares::new([]);
        let share: Arc<str> = "acme".into();
        assert!(shares.is_gone(&share) && shares.is_gone(&share));
        shares.is_back("acme");
        assert!(shares.is_gone(&share));
        assert_eq!(shares.end(), std::slice::from_ref(&share));
        assert!(!shares.is_gone(&share));
        assert!(shares.end().is_empty());
    }
}
