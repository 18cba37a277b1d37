//! Figures for monitoring systems (O01, O02): the counters so far, read on request.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use greenroom::stats::LatencyHistogram;

use super::Control;
use crate::engine::{
    account::{ledger::LedgerCounts, settlements::Outcomes},
    process::key_audit::KeyAudit,
};

/// The outcomes of the events taken so far. No count ever falls.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct LedgerView {
    /// Items taken from the inputs, malformed ones included.
    pub taken: u64,
    /// Events handled, whose outputs are stored.
    pub handled: u64,
    /// Items stored as dead letters.
    pub dead_lettered: u64,
    /// Events without a handler that were acknowledged.
    pub ignored: u64,
    /// Events that were neither handled nor stored.
    pub refused: u64,
    /// Events of partitions that were taken away before they were done.
    pub revoked: u64,
    /// Events that waited when a stop came, and that their input delivers again.
    pub given_back: u64,
    /// Events that were done after their partition was taken away: its new owner may handle them
    /// again.
    pub stale: u64,
    /// Attempts that did not succeed and may have had an effect all the same.
    pub unanswered: u64,
    /// Events that left after a later one of their key. Anything but 0 is a bug.
    pub out_of_order: u64,
    /// Attempts that began while another of their key was in hand, of the keys that are
    /// [watched](crate::engine::EngineBuilder::audit). Anything but 0 is a bug.
    pub overlapping: u64,
    /// Events acknowledged when their handler was done with them, of whose outputs one was not
    /// stored.
    pub lost_outputs: u64,
    /// Stored dead letters, by reason; reasons without any are left out.
    pub dead_letters: BTreeMap<&'static str, u64>,
    /// From taken to settled.
    pub residence: LatencyHistogram,
}

impl LedgerView {
    /// Items settled, in whatever way. Never more than were taken.
    pub fn settled(&self) -> u64 {
        let given_up = self.refused + self.revoked + self.given_back;
        self.handled + self.dead_lettered + self.ignored + given_up
    }
}

impl Control {
    /// The outcomes of the events taken so far. Takes a few locks, which settling threads also
    /// take, for some microseconds.
    pub fn ledger(&self) -> LedgerView {
        let ledger = &self.shared.ledger;
        let residence = ledger.latencies();
        let LedgerCounts { taken, outcomes } = ledger.counts();
        let Outcomes { handled, dead_lettered, ignored, refused, revoked, given_back } = outcomes;
        LedgerView {
            taken,
            handled,
            dead_lettered,
            ignored,
            refused,
            revoked,
            given_back,
            stale: self.shared.inputs.revocations.stale(),
            unanswered: ledger.unanswered.load(Ordering::Relaxed)
                + self.shared.egress.outputs.unanswered(),
            out_of_order: ledger.out_of_order.load(Ordering::Relaxed),
            overlapping: self.shared.process.audit.as_ref().map_or(0, KeyAudit::violations),
            lost_outputs: ledger.lost_outputs.load(Ordering::Acquire),
            dead_letters: ledger.letters.by_reason(),
            residence,
        }
    }
}
