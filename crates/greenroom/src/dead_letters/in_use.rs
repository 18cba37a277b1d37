//! A letter that is being inspected or replayed: afterwards it is back in its place, or accepted.

use std::collections::VecDeque;

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;

use super::{
    LetterInfo,
    store::{Out, Store, own},
};
use crate::{Address, DeadLetter, NotAccepted};

/// A letter out of its place. On drop it goes back, or is removed if its message was accepted.
pub(super) struct InUse<'a, M: Send + 'static, E: Send + 'static> {
    /// The store that holds its place.
    store: &'a Mutex<Store>,
    /// With its number, which identifies its place.
    pub(super) info: LetterInfo,
    /// Always present, until it is dropped.
    pub(super) letter: Option<DeadLetter<M, E>>,
    /// Its message, once sent, until it is accepted: a queue of one, because sending from a queue
    /// leaves messages in it that were not accepted, even if a key function panics.
    sent: Option<VecDeque<M>>,
}

impl<'a, M: Send + 'static, E: Send + 'static> InUse<'a, M, E> {
    pub(super) fn new(store: &'a Mutex<Store>, (info, letter): Out) -> Self {
        Self { store, info, letter: own(letter), sent: None }
    }

    pub(super) fn message(&self) -> Option<&M> {
        self.letter.as_ref()?.message.as_ref()
    }

    /// Sends its message. `None` if there is none.
    pub(super) fn send<R>(&mut self, to: &Address<M, R, E>) -> Option<Result<(), NotAccepted>> {
        let message = self.letter.as_mut()?.message.take()?;
        let sent = self.sent.insert(VecDeque::from([message]));
        Some(to.try_send_many(sent).map(|_| ()))
    }
}

impl<M: Send + 'static, E: Send + 'static> Drop for InUse<'_, M, E> {
    fn drop(&mut self) {
        let Some(mut letter) = self.letter.take() else { return };
        if let Some(mut sent) = self.sent.take() {
            letter.message = sent.pop_front();
            if letter.message.is_none() {
                // Accepted: the rest of the letter is removed.
                self.store.lock().forget(self.info.id);
                return discard(letter);
            }
        }
        let homeless = self.store.lock().put_back(self.info.id, Box::new(letter));
        discard(homeless);
    }
}
