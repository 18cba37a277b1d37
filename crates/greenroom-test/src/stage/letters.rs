//! Dead letters in memory.

use std::mem;

use greenroom_bus::{
    dead_letter::{DeadLetter, DeadLetterStore},
    settlement::Ack,
};
use parking_lot::Mutex;

/// Keeps dead letters, each confirmed at once.
#[derive(Default)]
pub(super) struct StageLetters(pub(super) Mutex<Vec<DeadLetter>>);

impl DeadLetterStore for StageLetters {
    fn describe(&self) -> String {
        "stage".to_owned()
    }

    fn store(&self, mut letter: DeadLetter) {
        let ack = mem::replace(&mut letter.ack, Ack::detached());
        self.0.lock().push(letter);
        ack.confirm();
    }
}
