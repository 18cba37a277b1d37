//! Which children are restarted along with a failed one.

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
/// `OneForOne` for independent children, `RestForOne` if later ones depend on earlier ones,
/// `OneForAll` if each depends on all. A child that is restarted together with another keeps its
/// queue and its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The failed child.
    OneForOne,
    /// All of them.
    OneForAll,
    /// The failed child and those that were started after it.
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
