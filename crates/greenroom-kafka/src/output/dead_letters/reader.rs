//! Records of an input, read again.

use std::time::{Duration, Instant};

use rdkafka::message::BorrowedMessage;

use super::letter::Letter;
use crate::{
    again::{Again, From, Unread},
    source::SourceSetup,
    unusable::Unusable,
};

/// How long a record may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between two attempts, where the brokers do not answer.
const AGAIN: Duration = Duration::from_secs(1);

/// Reads the records again that letters of one input are about.
pub(super) struct RecordReader {
    name: String,
    setup: SourceSetup,
    /// Made for the first letter: most runs have none.
    again: Option<Again>,
    /// Nothing is read before.
    held_until: Option<Instant>,
}

impl RecordReader {
    /// # Errors
    /// A property cannot be used.
    pub(super) fn new(name: &str, setup: SourceSetup) -> Result<Self, Unusable> {
        let name = format!("{name} (letters)");
        again(&name, &setup.clone().disconnected())?;
        Ok(Self { name, setup, again: None, held_until: None })
    }

    pub(super) fn is_held(&self, now: Instant) -> bool {
        self.held_until.is_some_and(|until| now < until)
    }

    /// Makes a record of this letter: its original record, or JSON if that is gone or has been
    /// replaced.
    ///
    /// # Errors
    /// It cannot be read for now.
    pub(super) fn read(
        &mut self,
        letter: &mut Letter,
        idle: impl FnMut() -> bool,
    ) -> Result<(), String> {
        let Some(place) = letter.place.clone() else {
            letter.is_json(None);
            return Ok(());
        };
        let offset = letter.letter.position;
        let again = match self.again.take() {
            Some(again) => Ok(again),
            None => again(&self.name, &self.setup),
        };
        let again = match again {
            Ok(again) => self.again.insert(again),
            Err(error) => return Err(self.hold(error.why)),
        };
        let records = self.setup.records.as_ref();
        let take = |record: &BorrowedMessage<'_>| {
            letter.is_of(record, records).then(|| letter.is_record(record))
        };
        match again.read(&place, offset, PATIENCE, idle, take) {
            Ok(()) => {}
            Err(Unread::Gone(why)) => letter.is_json(Some(&why)),
            Err(Unread::Other(why)) => return Err(self.hold(why)),
        }
        self.held_until = None;
        Ok(())
    }

    fn hold(&mut self, why: String) -> String {
        self.held_until = Some(Instant::now() + AGAIN);
        why
    }
}

fn again(name: &str, setup: &SourceSetup) -> Result<Again, Unusable> {
    Again::new(name.to_owned(), From { access: &setup.access, group: &setup.input.group })
}
