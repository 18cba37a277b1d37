//! Who is restarted along with a child that failed.

use std::ops::Range;

/// Which children are restarted when one of them has to be.
///
/// ```text
///               a   b   c   d        b fails
/// OneForOne     ·   R   ·   ·        b
/// OneForAll     R   R   R   R        down: d, c, a    up: a, b, c, d
/// RestForOne    ·   R   R   R        down: d, c       up: b, c, d
/// ```
///
/// `OneForOne` for children that know nothing of one another, `RestForOne` where later ones depend
/// on earlier ones, `OneForAll` where each depends on all. A child that is restarted for another's
/// sake keeps its queue and its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The one that failed.
    OneForOne,
    /// All of them.
    OneForAll,
    /// The one that failed and those that were started after it.
    RestForOne,
}

impl Strategy {
    /// The children, by place, that are restarted when the one at `failed` is.
    pub(crate) fn affected(self, failed: usize, children: usize) -> Range<usize> {
        match self {
            Self::OneForOne => failed..failed + 1,
            Self::OneForAll => 0..children,
            Self::RestForOne => failed..children,
        }
    }

    /// Children depend on one another: they go down and come up in order.
    pub(crate) fn in_order(self) -> bool {
        self != Self::OneForOne
    }
}
