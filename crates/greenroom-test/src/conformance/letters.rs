//! Dead letters that are stored at once and recorded in the ledger.

use std::sync::Arc;

use greenroom_bus::dead_letter::{DeadLetter, DeadLetterStore};

use super::ledger::Ledger;

pub(super) struct Letters(pub(super) Arc<Ledger>);

impl DeadLetterStore for Letters {
    fn describe(&self) -> String {
        "letters".to_owned()
    }

    fn store(&self, letter: DeadLetter) {
        let raw = letter.raw.map(|raw| String::from_utf8_lossy(&raw).into_owned());
        let name = raw.or_else(|| letter.event.map(|event| event.id().to_owned()));
        self.0.buries(&name.unwrap_or_default(), letter.position);
        letter.ack.confirm();
    }
}
