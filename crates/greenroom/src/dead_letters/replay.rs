//! Replays: a message that is accepted anew, as if it had just been sent.

use super::{
    DeadLetters, LetterInfo, NoLetter,
    in_use::{InUse, OnItsWay},
};
use crate::{Address, NotAccepted};

/// What a replay of several letters came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replayed {
    /// How many messages were accepted. Their letters are gone.
    pub replayed: usize,
    /// The refused letters, and why. They are in their places. After the first refusal no further
    /// letter is tried, so that none overtakes an older one.
    pub refused: Vec<(u64, NotAccepted)>,
    /// The number of letters that have no message left. They are in their places.
    pub without_message: usize,
    /// How many letters were in use by others, and were left to them.
    pub in_use: usize,
}

/// Why a letter was not replayed. It is in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReplayed {
    /// It cannot be had.
    #[error(transparent)]
    NoLetter(#[from] NoLetter),
    /// Its handler had taken the message, and no copy exists.
    #[error(
        "the dead letter has no message: its handler had taken it, and the pool keeps no copies (`keep_copies`)"
    )]
    NoMessage,
    /// The address did not accept it.
    #[error("the message was not accepted: {0}")]
    Refused(NotAccepted),
}

impl<M: Send + 'static, E: Send + 'static> DeadLetters<M, E> {
    /// Sends the message of a letter again, without waiting: a new acceptance, at the end of its
    /// key's line. The letter goes once the message is accepted.
    ///
    /// # Errors
    /// Why it was not replayed. The letter stays in its place.
    ///
    /// # Panics
    /// When the key function of the pool does. The letter stays in its place.
    pub fn replay<R>(&self, id: u64, to: &Address<M, R, E>) -> Result<(), NotReplayed> {
        let mut letter = self.take_out(id)?.send_off().ok_or(NotReplayed::NoMessage)?;
        match to.try_send_many(&mut letter.message) {
            Ok(_) => Ok(()),
            Err(why) => Err(NotReplayed::Refused(why)),
        }
    }

    /// Replays the letters that the predicate chooses, oldest first, by their information and by
    /// their message, if they have one: those of one key, for instance. Letters that arrive during
    /// the call are not asked about.
    ///
    /// # Panics
    /// If the predicate or the key function of the pool panics. Letters that were not accepted
    /// stay in their places.
    pub fn replay_where<R>(
        &self,
        mut choose: impl FnMut(&LetterInfo, Option<&M>) -> bool,
        to: &Address<M, R, E>,
    ) -> Replayed {
        let mut replayed = Replayed::default();
        let mut walk = self.store.lock().walk();
        while let Some(letter) = self.next_of(&mut walk, &mut replayed) {
            if choose(letter.info(), letter.message())
                && let Some(mut letter) = replayed.wanted(letter)
            {
                let sent = to.try_send_many(&mut letter.message).map(|_| ());
                replayed.note(&letter, sent);
            }
        }
        replayed
    }

    /// Replays all letters, oldest first.
    ///
    /// # Panics
    /// If the key function of the pool panics. Letters that were not accepted stay in their places.
    pub fn replay_all<R>(&self, to: &Address<M, R, E>) -> Replayed {
        self.replay_where(|_, _| true, to)
    }

    /// The next letter of a walk that is not in use.
    fn next_of(
        &self,
        walk: &mut super::store::Walk,
        replayed: &mut Replayed,
    ) -> Option<InUse<'_, M, E>> {
        loop {
            let next = self.store.lock().next_of(walk)?;
            match next {
                Ok(out) => return Some(InUse::new(&self.store, out)),
                Err(_) => replayed.in_use += 1,
            }
        }
    }
}

impl Replayed {
    /// The letter, if it has a message and none before it was refused.
    fn wanted<'a, M: Send + 'static, E: Send + 'static>(
        &mut self,
        letter: InUse<'a, M, E>,
    ) -> Option<OnItsWay<'a, M, E>> {
        match (letter.message(), self.refused.last()) {
            (None, _) => self.without_message += 1,
            (_, Some(&(_, why))) => self.refused.push((letter.info().id, why)),
            _ => return letter.send_off(),
        }
        None
    }

    fn note<M: Send + 'static, E: Send + 'static>(
        &mut self,
        letter: &OnItsWay<'_, M, E>,
        sent: Result<(), NotAccepted>,
    ) {
        match sent {
            Ok(()) => self.replayed += 1,
            Err(why) => self.refused.push((letter.id(), why)),
        }
    }
}
