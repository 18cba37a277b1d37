//! Replays: a message is accepted again, as if it had just been sent.

use super::{DeadLetters, LetterInfo, NoLetter, in_use::InUse};
use crate::{Address, NotAccepted};

/// The result of a replay of several letters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replayed {
    /// How many messages were accepted. Their letters are gone.
    pub replayed: usize,
    /// The refused letters, and why. They are in their places. After the first refusal, no further
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
    /// It is not available.
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
    /// key's line. The letter is removed once the message is accepted.
    ///
    /// # Errors
    /// Why it was not replayed. The letter stays in its place.
    ///
    /// # Panics
    /// If the key function of the pool panics. The letter stays in its place.
    pub fn replay<R>(&self, id: u64, to: &Address<M, R, E>) -> Result<(), NotReplayed> {
        let sent = self.take_out(id)?.send(to);
        sent.ok_or(NotReplayed::NoMessage)?.map_err(NotReplayed::Refused)
    }

    /// Replays the letters that the predicate selects, oldest first, by their information and their
    /// message, if they have one: those of one key, for instance. Letters that arrive during the
    /// call are not considered.
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
        let ids = self.store.lock().ids();
        for id in ids {
            match self.take_out(id) {
                Ok(letter) if choose(&letter.info, letter.message()) => replayed.add(letter, to),
                Err(NoLetter::InUse) => replayed.in_use += 1,
                Ok(_) | Err(NoLetter::Unknown) => {}
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
}

impl Replayed {
    /// Sends the message of a letter, if it has one and none before it was refused.
    fn add<M: Send + 'static, R, E: Send + 'static>(
        &mut self,
        mut letter: InUse<'_, M, E>,
        to: &Address<M, R, E>,
    ) {
        let refused = self.refused.last().map(|(_, why)| *why);
        let sent = match refused {
            Some(why) if letter.message().is_some() => Some(Err(why)),
            _ => letter.send(to),
        };
        match sent {
            None => self.without_message += 1,
            Some(Ok(())) => self.replayed += 1,
            Some(Err(why)) => self.refused.push((letter.info.id, why)),
        }
    }
}
