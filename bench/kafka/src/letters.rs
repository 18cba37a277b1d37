//! Dead letters where there are none: whatever comes is refused, and the run is not clean.

use greenroom_bus::dead_letter::{DeadLetter, DeadLetterStore};

pub struct NoLetters;

impl DeadLetterStore for NoLetters {
    fn describe(&self) -> String {
        "none".to_owned()
    }

    fn store(&self, letter: DeadLetter) {
        drop(letter);
    }
}
