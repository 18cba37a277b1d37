//! Records of inputs, read again on a thread: a broker takes its time.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rdkafka::message::BorrowedMessage;
use tokio::sync::oneshot;

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

/// What comes of reading: the letter has its content, or why the record cannot be read for now.
type Outcome = Result<(), String>;

enum Ask {
    /// By this, the records of the input of this name are read from now on.
    Input(Arc<str>, Box<RecordReader>),
    Read(Arc<Mutex<Letter>>, oneshot::Sender<Outcome>),
}

/// Reads the records again that letters are about. Its thread ends with it.
pub(super) struct Readers(mpsc::Sender<Ask>);

impl Readers {
    /// # Errors
    /// There is no thread.
    pub(super) fn begin() -> Result<Self, String> {
        let (asks, asked) = mpsc::channel();
        thread::Builder::new()
            .name("kafka-letters".to_owned())
            .spawn(move || read_all(&asked))
            .map_err(|error| format!("no thread to read records again on: {error}"))?;
        Ok(Self(asks))
    }

    pub(super) fn add(&self, input: Arc<str>, reader: RecordReader) {
        // Without its thread, no letter is read.
        let _ = self.0.send(Ask::Input(input, Box::new(reader)));
    }

    /// Makes a record of this letter: its original record, or JSON if that is gone, has been
    /// replaced, or is of an unknown input. `None` if the thread has panicked.
    ///
    /// # Cancel safety
    /// The record of a dropped future may be read, and is not waited for.
    pub(super) async fn read(&self, letter: &Arc<Mutex<Letter>>) -> Option<Outcome> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Ask::Read(letter.clone(), answer)).ok()?;
        answered.await.ok()
    }
}

/// Until nobody can ask any more.
fn read_all(asked: &mpsc::Receiver<Ask>) {
    let (mut readers, mut number) = (HashMap::<Arc<str>, Box<RecordReader>>::new(), 0_u64);
    // In the order of the log, so that they are read in one go.
    let mut unread = BTreeMap::new();
    loop {
        let ask = match unread.is_empty() {
            true => match asked.recv() {
                Ok(ask) => Some(ask),
                Err(_) => return,
            },
            false => asked.try_recv().ok(),
        };
        match ask {
            Some(Ask::Input(name, reader)) => _ = readers.insert(name, reader),
            Some(Ask::Read(letter, answer)) => {
                let place = letter.lock().in_its_log();
                unread.insert((place, number), (letter, answer));
                number += 1;
            }
            None => {
                let Some((_, (letter, answer))) = unread.pop_first() else { continue };
                let mut letter = letter.lock();
                let outcome = match readers.get_mut(&letter.letter.input) {
                    Some(reader) => reader.read(&mut letter, || !answer.is_closed()),
                    None => {
                        letter.is_json(None);
                        Ok(())
                    }
                };
                // Without its store, a letter wants no answer.
                let _ = answer.send(outcome);
            }
        }
    }
}

/// Reads the records again that letters of one input are about.
pub(super) struct RecordReader {
    name: String,
    setup: SourceSetup,
    /// Made for the first letter: most runs have none.
    again: Option<Again>,
    /// Nothing is read before that time, and why.
    held: Option<(Instant, String)>,
}

impl RecordReader {
    /// # Errors
    /// A property cannot be used.
    pub(super) fn new(name: &str, setup: SourceSetup) -> Result<Self, Unusable> {
        let name = format!("{name} (letters)");
        again(&name, &setup.clone().disconnected())?;
        Ok(Self { name, setup, again: None, held: None })
    }

    /// Makes a record of this letter: its original record, or JSON if that is gone or has been
    /// replaced.
    ///
    /// # Errors
    /// It cannot be read for now.
    fn read(&mut self, letter: &mut Letter, idle: impl FnMut() -> bool) -> Outcome {
        let Some(place) = letter.place.clone() else {
            letter.is_json(None);
            return Ok(());
        };
        if let Some((until, why)) = &self.held
            && Instant::now() < *until
        {
            return Err(why.clone());
        }
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
        self.held = None;
        Ok(())
    }

    fn hold(&mut self, why: String) -> String {
        self.held = Some((Instant::now() + AGAIN, why.clone()));
        why
    }
}

fn again(name: &str, setup: &SourceSetup) -> Result<Again, Unusable> {
    Again::new(name.to_owned(), From { access: &setup.access, group: &setup.input.group })
}
