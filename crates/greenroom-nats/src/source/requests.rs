//! The pull requests that are under way.

use std::collections::VecDeque;

/// Requests that the server has not answered in full, in the order in which it serves them.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// The number of each, and how many messages it may still bring.
    open: VecDeque<(u64, usize)>,
    last: u64,
}

impl Requests {
    /// Another one for this many messages: its number.
    pub(super) fn begin(&mut self, messages: usize) -> u64 {
        self.last += 1;
        self.open.push_back((self.last, messages));
        self.last
    }

    /// A message has come, of the first of them.
    pub(super) fn delivered(&mut self) {
        let Some((_, left)) = self.open.front_mut() else { return };
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.open.pop_front();
        }
    }

    /// The server says that this one is over.
    pub(super) fn ended(&mut self, number: u64) {
        self.open.retain(|(known, _)| *known != number);
    }

    /// None is answered any more.
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// How many messages may still come.
    pub(super) fn outstanding(&self) -> usize {
        self.open.iter().map(|(_, left)| left).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n01_what_may_still_come_is_known() {
        let mut requests = Requests::default();
        let (first, second) = (requests.begin(2), requests.begin(3));
        requests.delivered();
        assert_eq!(requests.outstanding(), 4);
        requests.delivered();
        requests.delivered();
        assert_eq!(requests.outstanding(), 2, "the first is over");
        requests.ended(first);
        requests.ended(second);
        requests.delivered();
        assert_eq!(requests.outstanding(), 0);
    }
}
