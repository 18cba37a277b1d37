//! How much the broker accepts next to an offset, learned from its refusals.

use greenroom_bus::watermark::Positions;

use crate::commit_set::{Alphabet, Encoded, Limit, encode, has_room, used};

/// Below this, a set is not worth its characters.
const LEAST: usize = 16;

/// How much is remembered, and in which characters.
pub(super) struct Limits {
    /// `None`: nothing.
    now: Option<Limit>,
}

impl Limits {
    pub(super) fn new(units: usize, remembers: bool) -> Self {
        let now = Limit { units, alphabet: Alphabet::Wide };
        Self { now: Some(now).filter(|_| remembers && units >= LEAST) }
    }

    pub(super) fn encode(&self, positions: &Positions) -> Encoded {
        match self.now {
            Some(limit) => encode(positions, limit),
            None => Encoded { text: String::new(), is_whole: true },
        }
    }

    /// Whether the settled offsets will fit, once this many more have come.
    pub(super) fn has_room(&self, positions: &Positions, more: u64) -> bool {
        self.now.is_none_or(|limit| has_room(positions, more, limit))
    }

    /// The settled offsets, with the open ones settled in whatever order, as a share of the limit.
    pub(super) fn used(&self, positions: &Positions) -> f64 {
        self.now.map_or(0.0, |limit| used(positions, limit))
    }

    /// This many offsets beyond the lowest open one always fit.
    pub(super) fn sure(&self) -> u64 {
        self.now.map_or(u64::MAX, |limit| match limit.alphabet {
            Alphabet::Wide => limit.units as u64 * 14,
            Alphabet::Ascii => limit.units as u64 * 5,
        })
    }

    /// The broker has refused a text as too large: it counts bytes, or its limit is lower. Returns
    /// the next limit to be tried, for an operator.
    pub(super) fn shrink(&mut self) -> String {
        self.now = match self.now {
            Some(Limit { units, alphabet: Alphabet::Wide }) => {
                Some(Limit { units, alphabet: Alphabet::Ascii })
            }
            Some(Limit { units, .. }) if units / 2 >= LEAST => {
                Some(Limit { units: units / 2, alphabet: Alphabet::Wide })
            }
            _ => None,
        };
        match self.now {
            Some(Limit { units, alphabet }) => {
                format!("{units} characters ({alphabet:?}) are tried")
            }
            None => "nothing is remembered beyond the lowest open offset".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f01_what_a_broker_refuses_is_tried_in_ascii_and_then_smaller_until_nothing_is_left() {
        let mut limits = Limits::new(100, true);
        let mut tried = Vec::new();
        while let Some(Limit { units, alphabet }) = limits.now {
            tried.push((units, alphabet == Alphabet::Wide));
            limits.shrink();
        }
        let expected = [100, 50, 25].into_iter().flat_map(|units| [(units, true), (units, false)]);
        assert!(tried.iter().copied().eq(expected), "{tried:?}");
        let positions = Positions::new(10, std::iter::once(3..4)).expect("in order");
        assert_eq!(limits.encode(&positions).text, "");
        assert!(limits.has_room(&positions, u64::MAX / 2));
    }
}
