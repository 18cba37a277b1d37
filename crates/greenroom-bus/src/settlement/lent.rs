//! A part of a settlement that can be taken back from its borrower.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{Ack, Settle, Settled};

/// Takes a [lent](Ack::lend) part back.
pub(crate) struct Lent(Arc<Mutex<Option<Ack>>>);

/// Passes on the borrower's settlement, unless the part was taken back.
struct Borrowed(Arc<Mutex<Option<Ack>>>);

impl Ack {
    /// A part that represents this one until it is taken back. After that, its settlement has no
    /// effect on this one.
    pub(crate) fn lend(self) -> (Self, Lent) {
        let held = Arc::new(Mutex::new(Some(self)));
        (Self::new(Borrowed(held.clone())), Lent(held))
    }
}

impl Lent {
    /// None once the borrower has settled it.
    pub(crate) fn take_back(self) -> Option<Ack> {
        self.0.lock().take()
    }
}

impl Settle for Borrowed {
    fn is_revoked(&self) -> bool {
        self.0.lock().as_ref().is_some_and(Ack::is_revoked)
    }

    fn settled(&self, how: Settled) {
        let Some(ack) = self.0.lock().take() else { return };
        match how {
            Settled::Acknowledged(_) => ack.confirm(),
            Settled::Refused(why) => ack.refuse(why),
        }
    }

    fn rejected(&self, why: String) -> bool {
        let ack = self.0.lock().take();
        if let Some(ack) = ack {
            ack.reject(why);
        }
        true
    }
}
