//! How many second attempts there may be.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many calls may be sent a second time: one in this many, and a few more at once.
///
/// Without a bound, hedging makes an overload worse: the slower all answers are, the more calls
/// are sent twice. So each call saves up a share of a hedge, as far as the burst has room, and
/// each hedge spends a whole one. Over any number of calls there are at most
/// `burst + calls / one_in` hedges.
///
/// ```
/// use greenroom::gather::HedgeBudget;
/// assert_eq!(HedgeBudget::default(), HedgeBudget::one_in(20).burst(10)); // 5% of the calls
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HedgeBudget {
    one_in: u32,
    burst: u32,
}

impl Default for HedgeBudget {
    /// One in 20, with a burst of 10: the load grows by 5% at most.
    fn default() -> Self {
        Self { one_in: 20, burst: 10 }
    }
}

impl HedgeBudget {
    /// One hedge for this many calls; 0 is taken as 1. The share should be about that of the calls
    /// that take longer than [`after`](crate::gather::Hedged::after): 20 for a 95th percentile.
    pub fn one_in(calls: u32) -> Self {
        Self { one_in: calls.max(1), ..Self::default() }
    }

    /// How many hedges may be saved up, which is also the initial balance; 10 unless said
    /// otherwise. 0 allows none at all.
    pub fn burst(mut self, hedges: u32) -> Self {
        self.burst = hedges;
        self
    }
}

/// The balance of a budget.
#[derive(Debug)]
pub(super) struct Purse {
    budget: HedgeBudget,
    /// In parts of a hedge, of which one is `one_in`; at most the burst.
    parts: AtomicU64,
}

impl Purse {
    pub(super) fn new(budget: HedgeBudget) -> Self {
        let full = u64::from(budget.burst) * u64::from(budget.one_in);
        Self { budget, parts: AtomicU64::new(full) }
    }

    fn full(&self) -> u64 {
        u64::from(self.budget.burst) * u64::from(self.budget.one_in)
    }

    /// Saves up for one call.
    pub(super) fn save(&self) {
        let one_more = |parts| (parts < self.full()).then_some(parts + 1);
        let _ = self.parts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
    }

    /// Spends a hedge, if there is one.
    pub(super) fn spend(&self) -> bool {
        let price = u64::from(self.budget.one_in);
        let spent = |parts: u64| parts.checked_sub(price);
        self.parts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent).is_ok()
    }

    /// Gives a hedge back that was not sent.
    pub(super) fn give_back(&self) {
        let price = u64::from(self.budget.one_in);
        let back = |parts: u64| Some((parts + price).min(self.full()));
        let _ = self.parts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, back);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hedges(purse: &Purse) -> usize {
        std::iter::from_fn(|| purse.spend().then_some(())).count()
    }

    #[test]
    fn p12_a_budget_has_its_burst_and_then_its_share() {
        let purse = Purse::new(HedgeBudget::one_in(20).burst(3));
        assert_eq!(hedges(&purse), 3);
        (0..39).for_each(|_| purse.save());
        assert_eq!(hedges(&purse), 1);
        purse.save();
        assert_eq!(hedges(&purse), 1, "what was left over has been kept");
        (0..1_000).for_each(|_| purse.save());
        assert_eq!(hedges(&purse), 3, "never more than the burst");
    }

    #[test]
    fn p12_a_hedge_given_back_is_there_again() {
        let purse = Purse::new(HedgeBudget::one_in(0).burst(1));
        assert!(purse.spend() && !purse.spend());
        purse.give_back();
        purse.give_back();
        assert_eq!(hedges(&purse), 1);
    }

    #[test]
    fn p12_extremes_do_not_overflow() {
        let purse = Purse::new(HedgeBudget::one_in(u32::MAX).burst(u32::MAX));
        purse.save();
        purse.give_back();
        assert!(purse.spend());
        let none = Purse::new(HedgeBudget::default().burst(0));
        (0..100).for_each(|_| none.save());
        assert!(!none.spend());
    }

    proptest! {
        #[test]
        fn p12_no_run_of_calls_has_more_than_the_burst_and_its_share(
            one_in in 1..50_u32,
            burst in 0..20_u32,
            slow in prop::collection::vec(any::<bool>(), 0..500),
        ) {
            let purse = Purse::new(HedgeBudget::one_in(one_in).burst(burst));
            let mut hedges = 0;
            for (calls, slow) in (1_u32..).zip(slow) {
                purse.save();
                hedges += u32::from(slow && purse.spend());
                prop_assert!(hedges <= burst + calls / one_in);
            }
        }
    }
}
