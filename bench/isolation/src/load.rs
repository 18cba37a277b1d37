//! What an input gives: events for the free pools, and those for the stuck one evenly among them.

use std::time::Duration;

use greenroom_bus::source::generator::zipf::Chance;

/// One run's events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Events for the free pools, in turn.
    pub free: u64,
    /// Events for the stuck pool.
    pub stuck: u64,
    /// The free pools.
    pub pools: u64,
    /// Free events per second, which arrive whether or not anybody is ready for them (open loop).
    /// None: as fast as they are taken.
    pub rate: Option<f64>,
}

/// One event of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Item {
    /// By its number, from 0.
    Free(u64),
    Stuck,
}

impl Load {
    /// All events in their order.
    pub fn items(self) -> impl Iterator<Item = Item> + Send {
        (0..self.free).flat_map(move |number| {
            let before = |number: u64| number * self.stuck / self.free;
            let stuck = before(number + 1) - before(number);
            std::iter::repeat_n(Item::Stuck, stuck as usize).chain([Item::Free(number)])
        })
    }

    /// When each free event arrives, after the start: Poisson arrivals, the same in every run.
    pub fn due(self) -> Vec<Duration> {
        let Some(rate) = self.rate else { return vec![Duration::ZERO; self.free as usize] };
        let (mut chance, mut due) = (Chance::new(1), 0.0);
        let next = |_| {
            due -= (1.0 - chance.unit()).ln() / rate;
            Duration::from_secs_f64(due)
        };
        (0..self.free).map(next).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stuck_events_lie_evenly_among_the_free_ones() {
        let load = Load { free: 1_000, stuck: 10, pools: 1, rate: None };
        let items: Vec<Item> = load.items().collect();
        assert_eq!(items.len(), 1_010);
        let stuck: Vec<usize> = items
            .iter()
            .enumerate()
            .filter(|(_, item)| **item == Item::Stuck)
            .map(|(at, _)| at)
            .collect();
        assert_eq!(stuck.len(), 10);
        assert!(
            stuck.windows(2).all(|pair| (99..=102).contains(&(pair[1] - pair[0]))),
            "{stuck:?}"
        );
        let alone = Load { stuck: 0, ..load }.items();
        assert!(alone.eq((0..1_000).map(Item::Free)));
    }

    #[test]
    fn arrivals_come_at_their_rate_and_the_same_each_time() {
        let load = Load { free: 10_000, stuck: 0, pools: 1, rate: Some(1_000.0) };
        let due = load.due();
        let last = due.last().map_or(0.0, Duration::as_secs_f64);
        assert!((9.5..10.5).contains(&last), "{last}");
        assert!(due.is_sorted() && due == load.due());
    }
}
