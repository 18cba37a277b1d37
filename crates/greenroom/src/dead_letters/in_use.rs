//! A letter that is being inspected or replayed: afterwards it is back in its place, or accepted.

use std::collections::VecDeque;

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;

use super::{
    LetterInfo,
    store::{Out, Store, own},
};
use crate::DeadLetter;

/// A letter out of its place. Dropped, it goes back.
pub(super) struct InUse<'a, M: Send + 'static, E: Send + 'static> {
    /// The store that has its place.
    store: &'a Mutex<Store>,
    /// With its number, by which its place is found.
    info: LetterInfo,
    /// `None` once it needs no place any more.
    letter: Option<DeadLetter<M, E>>,
}

impl<'a, M: Send + 'static, E: Send + 'static> InUse<'a, M, E> {
    pub(super) fn new(store: &'a Mutex<Store>, (info, letter): Out) -> Self {
        Self { store, info, letter: own(letter) }
    }

    pub(super) fn info(&self) -> &LetterInfo {
        &self.info
    }

    pub(super) fn letter(&self) -> Option<&DeadLetter<M, E>> {
        self.letter.as_ref()
    }

    pub(super) fn message(&self) -> Option<&M> {
        self.letter()?.message.as_ref()
    }

    /// Takes the message out, to be sent. `None` if there is none.
    pub(super) fn send_off(mut self) -> Option<OnItsWay<'a, M, E>> {
        let message = self.letter.as_mut()?.message.take()?;
        Some(OnItsWay { in_use: self, message: VecDeque::from([message]) })
    }

    /// The message has been accepted: the rest of the letter is removed.
    fn settle(&mut self) {
        self.store.lock().forget(self.info.id);
        discard(self.letter.take());
    }

    fn put_back(&mut self, letter: DeadLetter<M, E>) {
        let homeless = self.store.lock().put_back(self.info.id, Box::new(letter));
        discard(homeless);
    }
}

impl<M: Send + 'static, E: Send + 'static> Drop for InUse<'_, M, E> {
    fn drop(&mut self) {
        if let Some(letter) = self.letter.take() {
            self.put_back(letter);
        }
    }
}

/// A letter whose message is being sent. Dropped, it goes back with its message, or is removed if
/// the message was accepted.
pub(super) struct OnItsWay<'a, M: Send + 'static, E: Send + 'static> {
    /// The letter without its message. It goes back after the message has been put into it again.
    in_use: InUse<'a, M, E>,
    /// The message, until it is accepted: a queue of one, because sending from a queue
    /// leaves messages in it that were not accepted, also if a key function panics or
    /// the future is dropped.
    pub(super) message: VecDeque<M>,
}

impl<M: Send + 'static, E: Send + 'static> OnItsWay<'_, M, E> {
    pub(super) fn id(&self) -> u64 {
        self.in_use.info.id
    }
}

impl<M: Send + 'static, E: Send + 'static> Drop for OnItsWay<'_, M, E> {
    fn drop(&mut self) {
        match (self.message.pop_front(), self.in_use.letter.as_mut()) {
            (Some(message), Some(letter)) => letter.message = Some(message),
            _ => self.in_use.settle(),
        }
    }
}
