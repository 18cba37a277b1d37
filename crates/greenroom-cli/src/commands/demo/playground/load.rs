//! The events that both pools are sent: whose they are, and when they arrive.

use std::time::Duration;

use greenroom_bus::source::generator::zipf::{Chance, Zipf};

use super::settings::PlaySettings;

/// Events per second, apart from a tenant that floods.
const RATE: f64 = 400.0;
/// The handler of any event takes this long, except for the slow key.
pub(super) const WORK: Duration = Duration::from_millis(8);
/// Ordinary keys, from 1 on; the n-th is drawn with a weight of `1/n^skew`.
const ORDINARY: u32 = 300;
/// The most frequent of these are not cold.
const HOT: u32 = 10;
/// The slow key.
pub(super) const SLOW: u32 = ORDINARY + 1;
/// Keys of the tenant that floods, after the slow one.
const FLOODING: u32 = 40;
/// Tenants of the other keys, from 1 on.
const TENANTS: u32 = 8;
/// Every key is below this number.
pub(super) const KEYS: u32 = SLOW + FLOODING + 1;
/// Events of a key that may be in line at a side. More are turned away, and counted.
pub(super) const MOST_OF_KEY: u32 = 100;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoadEvent {
    pub(super) key: u32,
    /// Its tenant, or 0 if all are treated as one.
    pub(super) share: u32,
}

/// Draws events.
pub(super) struct EventLoad {
    chance: Chance,
    zipf: Zipf,
    /// The exponent of `zipf`.
    skew: f64,
}

impl EventLoad {
    pub(super) fn new(seed: u64) -> Self {
        Self { chance: Chance::new(seed), zipf: Zipf::new(ORDINARY, 0.0), skew: 0.0 }
    }

    /// The time until the next event (they are a Poisson process), and that event.
    pub(super) fn next(&mut self, settings: &PlaySettings) -> (Duration, LoadEvent) {
        if self.skew != settings.skew {
            (self.zipf, self.skew) = (Zipf::new(ORDINARY, settings.skew), settings.skew);
        }
        let rate = RATE + settings.flood;
        let after = -(1.0 - self.chance.unit()).ln() / rate;
        let floods = self.chance.unit() * rate < settings.flood;
        let is_slow = self.chance.unit() * 100.0 < settings.slow_percent;
        let key = match (floods, is_slow) {
            (true, _) => SLOW + 1 + self.chance.below(FLOODING as usize) as u32,
            (false, true) => SLOW,
            (false, false) => self.zipf.draw(&mut self.chance),
        };
        let share = if settings.shares > 0.0 { tenant(key) } else { 0 };
        (Duration::from_secs_f64(after), LoadEvent { key, share })
    }
}

fn tenant(key: u32) -> u32 {
    if key > SLOW { TENANTS + 1 } else { 1 + key % TENANTS }
}

/// Neither slow, nor frequent, nor of the tenant that floods.
pub(super) fn is_cold(key: u32) -> bool {
    (HOT + 1..=ORDINARY).contains(&key)
}

/// Its name on the page.
pub(super) fn name(key: u32) -> String {
    match key {
        SLOW => "order-0042".to_owned(),
        key if key > SLOW => format!("acme-{:02}", key - SLOW),
        key => format!("order-{}", 1_000 + key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c14_the_load_is_what_the_settings_say_and_the_same_for_the_same_seed() {
        const DRAWN: usize = 100_000;
        let settings =
            PlaySettings { slow_percent: 2.0, flood: 100.0, shares: 0.0, ..Default::default() };
        let drawn = |seed| {
            let mut load = EventLoad::new(seed);
            (0..DRAWN).map(|_| load.next(&settings)).collect::<Vec<_>>()
        };
        let events = drawn(1);
        assert!(events == drawn(1) && events != drawn(2));
        let seconds: f64 = events.iter().map(|(after, _)| after.as_secs_f64()).sum();
        let part = |is: &dyn Fn(u32) -> bool| {
            events.iter().filter(|(_, event)| is(event.key)).count() as f64 / DRAWN as f64
        };
        assert!((195.0..205.0).contains(&seconds), "{seconds} s for 500 events a second");
        assert!((0.19..0.21).contains(&part(&|key| key > SLOW)), "a fifth floods");
        assert!((0.015..0.017).contains(&part(&|key| key == SLOW)), "2% of the others are slow");
        assert!(events.iter().all(|(_, event)| event.share == 0 && event.key < KEYS));
    }

    #[test]
    fn c14_a_tenant_that_floods_has_a_share_of_its_own() {
        let settings = PlaySettings { flood: 400.0, ..Default::default() };
        let mut load = EventLoad::new(1);
        for _ in 0..1_000 {
            let (_, LoadEvent { key, share }) = load.next(&settings);
            assert_eq!(share == TENANTS + 1, key > SLOW, "{}", name(key));
            assert_ne!(share, 0);
        }
    }
}
