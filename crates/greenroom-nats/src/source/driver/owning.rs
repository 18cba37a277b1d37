//! Reading only while no other process does.

use tokio::time::Instant;

use super::{
    super::{
        lease::{Tenure, tell_without_lease},
        statuses::WhoReads,
    },
    Driver,
    lost::Lost,
};

impl Driver {
    /// Takes the lease of the consumer, or keeps it. If another process has it, nothing is read,
    /// and messages in hand are given up.
    pub(super) async fn look_after_lease(&mut self) {
        let now = Instant::now();
        let Some(lease) = self.bound.lease.as_mut().filter(|lease| now >= lease.look_at) else {
            return;
        };
        match lease.look(&self.connection).await {
            Tenure::Ours(until) => self.own(until),
            Tenure::Others(process) => self.give_up(&process).await,
            Tenure::Unknown(error) => tracing::debug!(error, "the lease is not known"),
            Tenure::Impossible(why) => self.do_without_lease(&why),
        }
    }

    fn own(&mut self, until: Instant) {
        self.shared.lease_until(Some(until));
        if matches!(self.bound.lost, Some(Lost::Waiting)) {
            let consumer = self.bound.wanted.name.as_str();
            tracing::info!(consumer, "this process reads the consumer from here on");
            self.read_from_here();
        }
    }

    /// Once the engine has given up its earlier messages.
    fn read_from_here(&mut self) {
        self.shared.look(|state| state.stats.waiting = 0);
        self.bound.lost = Some(Lost::Revoking);
    }

    async fn give_up(&mut self, process: &str) {
        if matches!(self.bound.lost, Some(Lost::Waiting)) {
            return;
        }
        tracing::warn!(
            consumer = self.bound.wanted.name,
            process,
            "another process reads this consumer, since nothing was heard of this one for too long: what is in hand here is given up, and this process waits"
        );
        let floor = self.goes_on_with() - 1;
        (self.holding.hold, self.holding.in_vain) = (None, None);
        (self.holding.floor, self.holding.was_cut) = (Some(floor), false);
        self.asking.requests.clear();
        self.last_settled = None;
        self.bound.lost = Some(Lost::Waiting);
        // Requested messages would be delivered here.
        self.subscribe_anew().await;
        self.shared.look(|state| (state.stats.waiting, state.stats.held_back) = (1, 0));
        self.shared.revoke();
    }

    /// The reported state of the partition.
    pub(in super::super) fn who_reads(&self) -> WhoReads {
        let is_waiting = matches!(self.bound.lost, Some(Lost::Waiting));
        match &self.bound.lease {
            _ if self.bound.has_told => WhoReads::Gone,
            Some(lease) if is_waiting && lease.is_others() => WhoReads::Elsewhere,
            _ if is_waiting || !self.shared.is_leased(Instant::now()) => WhoReads::Unknown,
            _ => WhoReads::Here,
        }
    }

    fn do_without_lease(&mut self, why: &str) {
        tell_without_lease(&self.shared, &self.bound.wanted.name, why);
        self.bound.lease = None;
        self.shared.lease_until(None);
        if matches!(self.bound.lost, Some(Lost::Waiting)) {
            self.read_from_here();
        }
    }
}
