//! The settings that a visitor may change, and their bounds. Each is declared once: the page builds
//! its sliders from the same list.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::admin::{Query, Refusal};

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PlaySettings {
    /// Workers of each pool.
    pub(super) workers: f64,
    /// The exponent of Zipf's law: the n-th key has a weight of `1/n^skew`.
    pub(super) skew: f64,
    /// Events of the slow key, in percent of all.
    pub(super) slow_percent: f64,
    /// How long the handler of one of these takes.
    pub(super) slow_ms: f64,
    /// Attempts that fail, in percent.
    pub(super) failure_percent: f64,
    /// Events per second of one more tenant.
    pub(super) flood: f64,
    /// Whether the keyed pool divides its workers among tenants: 0 or 1.
    pub(super) shares: f64,
}

/// One of them.
struct Bounds {
    name: &'static str,
    least: f64,
    most: f64,
    /// The step of its slider. Of a whole number, no part is accepted.
    step: f64,
    start: f64,
}

const fn bounds(name: &'static str, least: f64, most: f64, step: f64, start: f64) -> Bounds {
    Bounds { name, least, most, step, start }
}

/// In the order of the page. With the initial values, workers are busy for two fifths of the time,
/// and the slow key occupies one for two fifths more: with hashing, its worker can keep up.
const ALL: [Bounds; 7] = [
    bounds("workers", 1.0, 32.0, 1.0, 8.0),
    bounds("skew", 0.0, 1.5, 0.1, 0.8),
    bounds("slow_percent", 0.0, 5.0, 0.1, 0.5),
    bounds("slow_ms", 10.0, 2_000.0, 10.0, 200.0),
    bounds("failure_percent", 0.0, 20.0, 0.5, 0.0),
    bounds("flood", 0.0, 2_000.0, 50.0, 0.0),
    bounds("shares", 0.0, 1.0, 1.0, 1.0),
];

/// Their names.
pub(super) const NAMES: [&str; 7] = {
    let mut names = [""; 7];
    let mut place = 0;
    while place < names.len() {
        names[place] = ALL[place].name;
        place += 1;
    }
    names
};

impl Default for PlaySettings {
    fn default() -> Self {
        let mut settings = Self {
            workers: 0.0,
            skew: 0.0,
            slow_percent: 0.0,
            slow_ms: 0.0,
            failure_percent: 0.0,
            flood: 0.0,
            shares: 0.0,
        };
        for (value, bounds) in settings.values().into_iter().zip(&ALL) {
            *value = bounds.start;
        }
        settings
    }
}

impl PlaySettings {
    fn values(&mut self) -> [&mut f64; 7] {
        [
            &mut self.workers,
            &mut self.skew,
            &mut self.slow_percent,
            &mut self.slow_ms,
            &mut self.failure_percent,
            &mut self.flood,
            &mut self.shares,
        ]
    }

    /// These settings, with those of a request in their places.
    ///
    /// # Errors
    /// A value that is no number or is out of bounds; nothing is changed then.
    pub(super) fn asked(mut self, query: &Query, at: &str) -> Result<Self, Refusal> {
        for (value, bounds) in self.values().into_iter().zip(&ALL) {
            if let Some(text) = query.one(bounds.name) {
                *value = bounds.checked(text, at)?;
            }
        }
        Ok(self)
    }

    /// Each with its bounds.
    pub(super) fn view(mut self) -> Value {
        let shown = |(value, bounds): (&mut f64, &Bounds)| {
            let Bounds { name, least, most, step, start } = bounds;
            json!({
                "name": name,
                "value": value,
                "start": start,
                "least": least,
                "most": most,
                "step": step,
            })
        };
        self.values().into_iter().zip(&ALL).map(shown).collect()
    }
}

impl Bounds {
    fn checked(&self, text: &str, at: &str) -> Result<f64, Refusal> {
        let Self { name, least, most, .. } = self;
        let is_whole = self.step.fract() == 0.0;
        let allowed =
            |value: &f64| (*least..=*most).contains(value) && !(is_whole && value.fract() != 0.0);
        text.parse().ok().filter(allowed).ok_or_else(|| {
            let kind = if is_whole { "a whole number" } else { "a number" };
            let what = format!("`{name}` is {kind} from {least} to {most}, not {text:?}");
            let next = "send a value within the bounds; `GET /api/playground` lists them";
            Refusal::new(StatusCode::BAD_REQUEST, what, at, next)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Result<PlaySettings, Refusal> {
        let query = Query::parse(Some(query.to_owned()), "/api/settings", &NAMES)?;
        PlaySettings::default().asked(&query, "/api/settings")
    }

    #[test]
    fn c14_settings_within_their_bounds_are_taken_and_others_stay() {
        let changed = asked("workers=3&skew=1.25&shares=0").unwrap();
        let expected = PlaySettings { workers: 3.0, skew: 1.25, shares: 0.0, ..Default::default() };
        assert_eq!(changed, expected);
        assert_eq!(asked("").unwrap(), PlaySettings::default());
    }

    #[test]
    fn c14_settings_out_of_bounds_are_refused_by_name_with_their_bounds() {
        for (query, expected) in [
            ("workers=0", "`workers` is a whole number from 1 to 32, not \"0\""),
            ("workers=2.5", "`workers` is a whole number from 1 to 32, not \"2.5\""),
            ("skew=2", "`skew` is a number from 0 to 1.5, not \"2\""),
            ("skew=NaN", "`skew` is a number from 0 to 1.5, not \"NaN\""),
            ("slow_ms=inf", "`slow_ms` is a whole number from 10 to 2000, not \"inf\""),
            ("flood=lots", "`flood` is a whole number from 0 to 2000, not \"lots\""),
            ("worker=3", "`worker` is not a parameter of this request"),
        ] {
            let refusal = asked(query).unwrap_err();
            assert_eq!((refusal.status, &*refusal.what), (StatusCode::BAD_REQUEST, expected));
        }
    }
}
