//! The letters by number, for any type of message. No user code runs here: values to drop are
//! returned.

use std::{any::Any, collections::BTreeMap};

use super::{LetterInfo, NoLetter};
use crate::DeadLetter;

/// A dead letter of any type.
pub(super) type AnyLetter = Box<dyn Any + Send>;

/// The letter as it was pushed. Always present.
pub(super) fn own<M: 'static, E: 'static>(letter: AnyLetter) -> Option<DeadLetter<M, E>> {
    letter.downcast::<DeadLetter<M, E>>().ok().map(|letter| *letter)
}

pub(super) struct Store {
    /// Never more than `bound`.
    pub(super) letters: BTreeMap<u64, LetterPlace>,
    /// How many may be kept.
    pub(super) bound: usize,
    /// Rises with every letter, so that numbers follow age.
    next_id: u64,
    /// Letters that were removed at the bound.
    pub(super) dropped: u64,
}

/// The place of a letter.
pub(super) struct LetterPlace {
    /// Its information, whether in use or not.
    info: LetterInfo,
    /// `None` while it is in use.
    letter: Option<AnyLetter>,
}

/// A letter that was taken out, with its information.
pub(super) type Out = (LetterInfo, AnyLetter);

impl Store {
    pub(super) fn new(bound: usize) -> Self {
        Self { letters: BTreeMap::new(), bound, next_id: 1, dropped: 0 }
    }

    /// Returns its number, and the letter removed for it. A queue that keeps none gives back the
    /// letter itself.
    pub(super) fn push(
        &mut self,
        letter: AnyLetter,
        mut info: LetterInfo,
    ) -> (Option<u64>, Option<AnyLetter>) {
        if self.bound == 0 {
            self.dropped += 1;
            return (None, Some(letter));
        }
        let oldest = if self.letters.len() < self.bound { None } else { self.letters.pop_first() };
        let dropped = oldest.and_then(|(_, place)| place.letter);
        // A letter in use may still be replayed; it is counted when it finds its place gone.
        self.dropped += u64::from(dropped.is_some());
        info.id = self.next_id;
        self.next_id += 1;
        let id = info.id;
        self.letters.insert(id, LetterPlace { info, letter: Some(letter) });
        (Some(id), dropped)
    }

    pub(super) fn list(&self, after: Option<u64>, limit: usize) -> Vec<LetterInfo> {
        let first = after.map_or(0, |id| id.saturating_add(1));
        let places = self.letters.range(first..).take(limit);
        places.map(|(_, place)| place.info.clone()).collect()
    }

    pub(super) fn take_out(&mut self, id: u64) -> Result<Out, NoLetter> {
        let place = self.letters.get_mut(&id).ok_or(NoLetter::Unknown)?;
        let letter = place.letter.take().ok_or(NoLetter::InUse)?;
        Ok((place.info.clone(), letter))
    }

    /// Puts a letter back, or returns it if it has lost its place.
    pub(super) fn put_back(&mut self, id: u64, letter: AnyLetter) -> Option<AnyLetter> {
        match self.letters.get_mut(&id) {
            Some(place) => place.letter.replace(letter),
            None => {
                self.dropped += 1;
                Some(letter)
            }
        }
    }

    /// Gives up the place of a letter that was taken out and will not come back.
    pub(super) fn forget(&mut self, id: u64) {
        self.letters.remove(&id);
    }

    pub(super) fn remove(&mut self, id: u64) -> Result<AnyLetter, NoLetter> {
        let (_, letter) = self.take_out(id)?;
        self.forget(id);
        Ok(letter)
    }

    pub(super) fn remove_all(&mut self) -> Vec<AnyLetter> {
        let kept = self.letters.extract_if(.., |_, place| place.letter.is_some());
        kept.filter_map(|(_, place)| place.letter).collect()
    }

    /// The numbers of all letters, those in use included, oldest first.
    pub(super) fn ids(&self) -> Vec<u64> {
        self.letters.keys().copied().collect()
    }
}
