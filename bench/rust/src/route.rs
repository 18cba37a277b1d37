//! How a sender chooses among workers that it knows.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

#[derive(Clone)]
pub enum Route {
    /// One after the other; the next is this.
    Turns(usize),
    /// Always the same for a key.
    Keys(FixedState),
}

impl Route {
    pub fn turns() -> Self {
        Self::Turns(0)
    }

    pub fn keys() -> Self {
        Self::Keys(FixedState::default())
    }

    /// Turns go on from here.
    pub fn begin(&mut self, place: usize) {
        if let Self::Turns(next) = self {
            *next = place;
        }
    }

    pub fn pick(&mut self, key: u64, workers: usize) -> usize {
        match self {
            Self::Turns(next) => {
                // A sender may begin at any place.
                let picked = if *next < workers { *next } else { *next % workers };
                *next = picked + 1;
                picked
            }
            Self::Keys(hasher) => hasher.hash_one(key) as usize % workers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_round_from_where_they_begin() {
        let mut route = Route::turns();
        route.begin(6);
        assert_eq!([0; 6].map(|_| route.pick(9, 4)), [2, 3, 0, 1, 2, 3]);
    }

    #[test]
    fn a_key_stays_with_its_worker_and_keys_are_spread() {
        let mut route = Route::keys();
        let first: Vec<_> = (0..10_000).map(|key| route.pick(key, 256)).collect();
        route.begin(7);
        assert!((0..10_000).map(|key| route.pick(key, 256)).eq(first.iter().copied()));
        let most = (0..256).map(|worker| first.iter().filter(|at| **at == worker).count()).max();
        assert!(most < Some(80), "{most:?} of 10,000 keys on one worker");
    }
}
