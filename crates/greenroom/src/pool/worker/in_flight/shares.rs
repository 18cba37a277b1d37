//! Taking the next message in a pool with shares.

use super::{InFlight, Taken};
use crate::{
    Actor,
    pool::{frame, pool_payload::Key},
};

impl<A: Actor, K: Key> InFlight<A, K> {
    /// Takes a message from the worker's own mailbox, or one of the share whose turn it is. The
    /// last one that it took is settled.
    pub(crate) fn take_of_shares(&mut self) -> Taken {
        self.worker.give_up_place();
        if self.is_over() {
            return Taken::Nothing;
        }
        if self.slot_state.has_orders()
            && let Some(taken) = self.take_own_mail()
        {
            return taken;
        }
        let (core, slot) = (&self.worker.core, self.worker.slot);
        let Some(sharing) = &core.sharing else { return Taken::Nothing };
        let Some((source, entry)) = sharing.take_out(core, slot, &mut self.rounds.cursor) else {
            return Taken::Nothing;
        };
        let taken = self.begin(source, entry);
        if taken == Taken::Skipped {
            frame::shares::not_started(&*self.worker.core, slot);
        }
        taken
    }
}
