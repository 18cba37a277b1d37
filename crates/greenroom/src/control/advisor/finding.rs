//! The findings of the rules.

use std::fmt;

/// A finding, and the change that it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finding {
    /// 1: back-pressure, and the inbox is mostly used. Grow it.
    Crowded,
    /// 1: back-pressure, and the inbox is shallow. Grow it.
    Shallow,
    /// 1: back-pressure, although the inbox is deep and not mostly used. Look at
    /// the handler's speed.
    SlowToDrain,
    /// 2: messages take long, and wait in a long queue. Shrink the inbox and add workers.
    LongQueue,
    /// 2: messages take long, without a long queue. Optimise the handler.
    SlowHandler,
    /// 3: the inbox is hardly used. Shrink it.
    Roomy,
    /// 3: fine as it is.
    Fine,
}

impl Finding {
    /// Which of the three rules it is part of.
    pub fn number(self) -> u8 {
        match self {
            Self::Crowded | Self::Shallow | Self::SlowToDrain => 1,
            Self::LongQueue | Self::SlowHandler => 2,
            Self::Roomy | Self::Fine => 3,
        }
    }

    /// True if it asks for a larger inbox.
    pub(super) fn grows(self) -> bool {
        matches!(self, Self::Crowded | Self::Shallow)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Crowded => "the inbox is too small: grow it",
            Self::Shallow => "bursts do not fit into the inbox: grow it",
            Self::SlowToDrain => "bursts fill a deep inbox: look at the handler's speed",
            Self::LongQueue => "messages wait in a long queue: shrink the inbox and add workers",
            Self::SlowHandler => "messages take long without a queue: optimise the handler",
            Self::Roomy => "the inbox is larger than is needed: shrink it",
            Self::Fine => "fine as it is",
        })
    }
}
