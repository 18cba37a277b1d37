//! The reasons why events of an input wait beside the pools.

use std::{fmt, sync::Arc, time::Duration};

use greenroom_config::plural;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{engine::process::share_rooms::named, name::Name};

/// How often the log names the share that stops an input.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// An input still stands because of a share while its run-ahead is full except for this part of it.
const SLACK: u64 = 10;

/// A share that has as many events waiting in its pool as one share may.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldByShare {
    /// The pool.
    pub pool: String,
    /// Its share; `None` is the one of all events without one.
    pub share: Option<Arc<str>>,
    /// The number of its events beside the pool.
    pub events: u64,
}

impl HeldByShare {
    /// This many events of a share beside a pool.
    pub fn new(pool: impl Into<String>, share: Option<Arc<str>>, events: u64) -> Self {
        Self { pool: pool.into(), share, events }
    }

    /// True if most of these events are of this share.
    pub(crate) fn is_why(&self, held_back: u64) -> bool {
        self.events > held_back / 2
    }
}

impl fmt::Display for HeldByShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, share, events } = self;
        let (share, wait) = (named(share.as_ref()), if *events == 1 { "waits" } else { "wait" });
        let events = plural(*events as usize, "event");
        write!(f, "{events} of {share} {wait} for room in the pool {pool:?}")
    }
}

/// The pool and the share of most of them, at the last look.
#[derive(Debug, Default)]
pub(crate) struct HeldBy(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    pool: Option<Name>,
    share: Option<HeldByShare>,
    /// The input has stood because of a share since then.
    stands_since: Option<Instant>,
    told_at: Option<Instant>,
}

impl HeldBy {
    pub(crate) fn pool(&self) -> Option<Name> {
        self.0.lock().pool
    }

    pub(crate) fn share(&self) -> Option<HeldByShare> {
        self.0.lock().share.clone()
    }

    /// How long the input has stood because of a share.
    pub(crate) fn stands_for(&self) -> Option<Duration> {
        self.0.lock().stands_since.map(|since| since.elapsed())
    }

    pub(crate) fn set(&self, pool: Option<Name>, share: Option<HeldByShare>) {
        let mut state = self.0.lock();
        (state.pool, state.share) = (pool, share);
    }

    /// Logs that a share stops the input, if one does, and notes since when.
    pub(crate) fn tell(&self, input: &str, held_back: u64, run_ahead: u64) {
        let State { share, stands_since, told_at, .. } = &mut *self.0.lock();
        let is_why = share.as_ref().is_some_and(|held| held.is_why(held_back));
        // The few events that are read whenever the share has room again do not end it.
        if !is_why || held_back < run_ahead - run_ahead / SLACK {
            *stands_since = None;
        }
        let Some(held) = share.as_ref().filter(|_| is_why && held_back >= run_ahead) else {
            return;
        };
        let now = Instant::now();
        stands_since.get_or_insert(now);
        if told_at.is_some_and(|at| now.duration_since(at) < SAID_AGAIN) {
            return;
        }
        let (share, pool) = (held.share.as_deref(), &*held.pool);
        tracing::warn!(
            input,
            pool,
            share,
            run_ahead,
            "the input stands still because of a share: {held}, of the run-ahead of {run_ahead}; raise its limits, \
             or the `queue`, `share_queue` or `run_ahead`"
        );
        *told_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::samples::Recorder;

    #[tokio::test(start_paused = true)]
    async fn q08_the_share_that_stops_an_input_is_logged_once_a_minute() {
        let (recorder, by) = (Recorder::default(), HeldBy::default());
        let told = |held_back| {
            let before = recorder.lines().len();
            tracing::subscriber::with_default(recorder.clone(), || by.tell("in", held_back, 50));
            recorder.lines().split_off(before)
        };
        let pool = Name::new("default");
        by.set(Some(pool), None);
        assert!(told(60).is_empty(), "no share has as many as it may");
        by.set(Some(pool), Some(HeldByShare::new("default", Some("acme".into()), 40)));
        assert!(told(49).is_empty(), "it reads on");
        assert!(told(80).is_empty(), "the others have as many");
        let line = told(60).pop().unwrap();
        let text = "40 events of the share \"acme\" wait for room in the pool \"default\", \
                    of the run-ahead of 50";
        assert!(line.starts_with("WARN") && line.contains(text), "{line}");
        assert!(line.contains("input=\"in\"") && line.contains("share=\"acme\""), "{line}");
        tokio::time::advance(SAID_AGAIN - Duration::from_millis(1)).await;
        assert!(told(60).is_empty());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(told(60).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn q08_an_input_stands_because_of_a_share_until_it_reads_on() {
        let (by, second) = (HeldBy::default(), Duration::from_secs(1));
        let stands_for = |held_back| {
            by.tell("in", held_back, 50);
            by.stands_for()
        };
        let acme = || Some(HeldByShare::new("default", Some("acme".into()), 40));
        by.set(Some(Name::new("default")), acme());
        assert_eq!(stands_for(49), None, "it has not stood yet");
        assert_eq!(stands_for(60), Some(Duration::ZERO));
        tokio::time::advance(second).await;
        assert_eq!(stands_for(46), Some(second), "some events of others are read");
        assert_eq!(stands_for(60), Some(second));
        assert_eq!(stands_for(44), None, "it reads on");
        assert_eq!(stands_for(60), Some(Duration::ZERO));
        by.set(None, None);
        assert_eq!(stands_for(60), None, "it stands because of something else");
    }
}
