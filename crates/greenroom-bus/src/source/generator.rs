//! Events from a seed (B04): the same options make the same events, with a chosen skew
//! of keys and a chosen rate.

mod kind;
pub mod zipf;

pub use greenroom_config::units::Rate;
use greenroom_config::{count, number, options, rate, size, texts};
use tokio::time::{Duration, Instant, sleep_until};

pub use self::kind::INPUT;
use self::zipf::{Chance, Zipf};
use super::{Pull, Pulling, Source, SourceError, Taken};
use crate::event::{Event, EventError};

/// Events per pull where no rate holds them back.
const BATCH: u64 = 512;

/// Payload per pull, or one event that is larger: so many large ones would be more than an
/// input may have in flight.
const BATCH_BYTES: usize = 1 << 20;

options! {
    /// Made-up events, for trials and measurements.
    pub struct GeneratorOptions = "a generator", then GeneratorOptions::checked {
        /// How many events to make. Without it, until a signal.
        count: Option<u64> = count(1..=1_000_000_000_000).optional();
        /// How fast to make them. Without it, as fast as they are handled.
        rate: Option<Rate> = rate().optional();
        /// How many different subjects.
        keys: u32 = count(1..=100_000_000).default("1000");
        /// How unevenly the subjects are used: 0 is even, with 1 the n-th subject is used 1/n as
        /// often as the first.
        zipf: f64 = number(0.0..=10.0).default("1.0");
        /// The event types, all equally likely.
        types: Vec<String> = texts().default("[greenroom.generated]");
        /// The size of the data of each event.
        payload: usize = size(0..=16 << 20).default("100");
        /// The same seed makes the same events.
        seed: u64 = count(0..=i64::MAX as u64).default("1");
    }
}

/// As the library has it where nothing is said: one type, no payload, all keys alike.
impl Default for GeneratorOptions {
    fn default() -> Self {
        let types = vec!["generated".to_owned()];
        Self { seed: 1, count: None, rate: None, keys: 1_000, zipf: 0.0, types, payload: 0 }
    }
}

/// Generates events with the subject `key-<n>`, and with a `revision` in the data that rises by one
/// from 1 for each key, so that loss and disorder can be told from the output alone.
pub struct GeneratorSource {
    options: GeneratorOptions,
    zipf: Zipf,
    chance: Chance,
    payload: String,
    /// The last revision of each key.
    revisions: Vec<u32>,
    made: u64,
    /// Of the first pull: the rate counts from there.
    started: Option<Instant>,
}

impl GeneratorSource {
    /// A generator with these options.
    ///
    /// # Errors
    /// No keys, no types, an empty type, or a rate or exponent that is no number of its range.
    pub fn new(options: GeneratorOptions) -> Result<Self, SourceError> {
        check(&options).map_err(|reason| SourceError::new("generator", reason))?;
        Ok(Self {
            zipf: Zipf::new(options.keys, options.zipf),
            chance: Chance::new(options.seed),
            payload: payload(options.payload),
            revisions: vec![0; options.keys as usize],
            made: 0,
            started: None,
            options,
        })
    }

    fn left(&self) -> u64 {
        self.options.count.map_or(u64::MAX, |count| count - self.made)
    }

    /// Waits until at least one event is due, and says how many are.
    async fn due(&mut self) -> u64 {
        let Some(rate) = self.options.rate else { return BATCH };
        let started = *self.started.get_or_insert_with(Instant::now);
        let at = started
            + Duration::try_from_secs_f64(self.made as f64 / rate.per_second).unwrap_or(FAR);
        sleep_until(at).await;
        let due = (started.elapsed().as_secs_f64() * rate.per_second) as u64 + 1;
        due.saturating_sub(self.made).clamp(1, BATCH)
    }

    fn next(&mut self) -> Result<Event, EventError> {
        let key = self.zipf.draw(&mut self.chance);
        let ty = self.chance.below(self.options.types.len());
        let revision = &mut self.revisions[key as usize - 1];
        *revision = revision.wrapping_add(1);
        let json = match self.payload.as_str() {
            "" => format!(r#"{{"revision":{revision}}}"#),
            payload => format!(r#"{{"revision":{revision},"payload":"{payload}"}}"#),
        };
        self.made += 1;
        let raw = serde_json::value::RawValue::from_string(json)
            .map_err(|error| EventError::Data(error.to_string()))?;
        Event::builder(
            format!("{}-{}", self.options.seed, self.made),
            "greenroom:generator",
            self.options.types[ty].as_str(),
        )
        .subject(format!("key-{key}"))
        .datacontenttype("application/json")
        .data_raw(raw)
        .build()
    }
}

/// A wait that no run outlives, where the rate is so low that the time of the
/// next event cannot be told.
const FAR: Duration = Duration::from_secs(100 * 365 * 86_400);

fn check(options: &GeneratorOptions) -> Result<(), &'static str> {
    if options.keys == 0 {
        return Err("`keys` is 0; at least one key is needed");
    }
    if options.types.is_empty() || options.types.iter().any(String::is_empty) {
        return Err("`types` is empty or has an empty type; name at least one");
    }
    if options.rate.is_some_and(|Rate { per_second }| !per_second.is_finite() || per_second <= 0.0)
    {
        return Err("`rate` has to be a number above 0; leave it out for no limit");
    }
    if !options.zipf.is_finite() || options.zipf < 0.0 {
        return Err("`zipf` has to be 0 or a number above 0");
    }
    Ok(())
}

fn payload(length: usize) -> String {
    ('a'..='z').cycle().take(length).collect()
}

impl Source for GeneratorSource {
    fn describe(&self) -> String {
        "generator".to_owned()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            if self.left() == 0 {
                return Ok(Pull::End);
            }
            let most = (BATCH_BYTES / self.options.payload.max(1)).max(1) as u64;
            let due = self.due().await.min(self.left()).min(most);
            for _ in 0..due {
                let event =
                    self.next().map_err(|e| SourceError::new("generator", e.to_string()))?;
                into.push(Taken { position: self.made, event: Ok(event) });
            }
            Ok(if self.left() == 0 { Pull::End } else { Pull::More })
        })
    }

    fn progress(&self) -> Option<f64> {
        let count = self.options.count?;
        Some(if count == 0 { 1.0 } else { self.made as f64 / count as f64 })
    }

    fn replayable(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
