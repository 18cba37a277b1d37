//! The mechanism that keeps the messages of one key in order, if there is one.

use std::fmt;

/// How an [`EventPool`](super::EventPool) hands out its messages. One key of the configuration, so
/// that a service can compare, and go back.
///
/// | | one key's messages | a slow key delays |
/// |---|---|---|
/// | `keyed` | in order, by any worker | no other key |
/// | `sticky` | in order, by the same worker | the other keys of its worker |
/// | `shared` | in no order | no other key |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Engine {
    /// In order per key, by whichever worker is free. The usual choice.
    #[default]
    Keyed,
    /// In order per key, by the worker that has it: for workers that keep state
    /// for each of their keys.
    Sticky,
    /// Without order: for independent messages.
    Shared,
}

impl Engine {
    /// All there are.
    pub const ALL: &[Self] = &[Self::Keyed, Self::Sticky, Self::Shared];

    /// Its name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Keyed => "keyed",
            Self::Sticky => "sticky",
            Self::Shared => "shared",
        }
    }
}

impl greenroom_config::Word for Engine {
    const WORDS: &'static [&'static str] = &{
        let (mut words, mut at) = ([""; Engine::ALL.len()], 0);
        while at < words.len() {
            words[at] = Engine::ALL[at].name();
            at += 1;
        }
        words
    };

    fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|found| found.name() == word)
    }

    fn word(self) -> &'static str {
        self.name()
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
