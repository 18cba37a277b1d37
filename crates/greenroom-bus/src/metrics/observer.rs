//! Looks at an engine once a second, and reports its figures on request.

use std::{convert::Infallible, fmt, time::Duration};

use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{
    Families, handlers, inputs, outputs,
    pace::Pace,
    pools::{self, Options},
    process, run,
    shares::{self, SharesSeen},
    standings::Standings,
};
use crate::engine::{Control, InputView};

/// How often an engine is looked at: as often as people and autoscalers want to know.
pub const EVERY: Duration = Duration::from_secs(1);

/// By default, a worker with one message in hand for this long is wedged. Twice the time that most
/// handlers grant to another service.
pub const WEDGED_AFTER: Duration = Duration::from_secs(60);

/// Looks at an engine, and reports its figures. Does not keep it running. Answers in bounded time,
/// even while every handler blocks its thread.
///
/// Call [`look`](Self::look) once a second, so that rates and ages are right, or spawn
/// [`keep_looking`](Self::keep_looking). Each request looks as well.
pub struct Observer {
    control: Control,
    options: Options,
    seen: Mutex<LastLook>,
}

/// The state at the last look.
#[derive(Debug, Default)]
struct LastLook {
    pace: Pace,
    standings: Standings,
    /// Events that waited then.
    waiting: u64,
    /// The highest accepted count of each pool so far, by index. While a worker leaves, its mailbox
    /// may be counted twice for a moment, and a counter does not fall.
    accepted: Vec<u64>,
    shares: SharesSeen,
}

impl LastLook {
    /// The accepted count of the pool at this index, given that `found` was just read.
    fn accepted(&mut self, place: usize, found: u64) -> u64 {
        if self.accepted.len() <= place {
            self.accepted.resize(place + 1, 0);
        }
        let most = &mut self.accepted[place];
        *most = found.max(*most);
        *most
    }
}

impl Observer {
    /// Of this engine.
    pub fn new(control: Control) -> Self {
        let options = Options { per_worker: false, wedged_after: WEDGED_AFTER };
        Self { control, options, seen: Mutex::default() }
    }

    /// Splits some counters by worker, with the label `actor_id`, which is the pool's name and the
    /// worker's slot (`erp-17`). Sums over a pool are the same. With 1,000 workers these are some
    /// 4,000 additional series; off by default.
    #[must_use = "this returns another observer"]
    pub fn per_worker(mut self, per_worker: bool) -> Self {
        self.options.per_worker = per_worker;
        self
    }

    /// A worker with one message in hand for this long counts as wedged; [`WEDGED_AFTER`] by
    /// default. More than the longest time limit of an attempt.
    #[must_use = "this returns another observer"]
    pub fn wedged_after(mut self, time: Duration) -> Self {
        self.options.wedged_after = time;
        self
    }

    /// Sees how far the engine has come. Costs some microseconds, and some for each partition.
    pub fn look(&self) {
        let now = Instant::now();
        self.look_at(&self.control.input_views(), now);
    }

    fn look_at(&self, inputs: &[InputView], now: Instant) {
        let progress = self.control.progress();
        let standings = inputs.iter().flat_map(|input| {
            let kept = input.partitions.iter().filter_map(|partition| partition.standing);
            kept.map(|standing| (input.name.as_str(), standing))
        });
        let mut seen = self.seen.lock();
        seen.standings.look(standings, now);
        seen.pace.look(progress.settled, now);
        seen.waiting = waiting(inputs, progress.queued, progress.parked_events);
    }

    /// Looks once a second, until it is dropped.
    ///
    /// # Cancel safety
    /// Made to be dropped.
    pub async fn keep_looking(&self) -> Infallible {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.look();
        }
    }

    /// How long it would take to handle all waiting events as of the last look: those that sources
    /// have not given yet, if they know, and queued ones; at the rate of the last ten seconds, or
    /// the last known one. `None` if events wait and no rate is known. Events that wait for an
    /// operator do not count: no other process would help them.
    pub fn work_waiting(&self) -> Option<Duration> {
        let seen = self.seen.lock();
        seen.pace.time_for(seen.waiting)
    }

    /// All metrics with their values.
    pub fn families(&self) -> Families {
        let (now, inputs) = (Instant::now(), self.control.input_views());
        self.look_at(&inputs, now);
        let mut families = Families::default();
        let pools = self.control.pool_views().into_iter().zip(self.control.pools());
        for (place, (mut view, pool)) in pools.enumerate() {
            view.stats.accepted = self.seen.lock().accepted(place, view.stats.accepted);
            pools::add(&mut families, &view, &pool, self.options);
            shares::add(&mut families, &view.name, &pool, &mut self.seen.lock().shares);
        }
        run::add(&mut families, &self.control, self.work_waiting());
        handlers::add(&mut families, &self.control);
        inputs::add(&mut families, &self.control, &inputs, &self.seen.lock().standings, now);
        outputs::add(&mut families, &self.control);
        process::add(&mut families);
        families
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Events that more workers could take on.
fn waiting(inputs: &[InputView], queued: u64, parked: u64) -> u64 {
    let lags = inputs.iter().flat_map(|input| &input.partitions);
    let lags = lags.filter_map(|partition| partition.standing?.lag);
    let held_back = inputs.iter().map(|input| input.held_back);
    lags.chain(held_back).fold(queued.saturating_sub(parked), u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o02_what_was_counted_twice_for_a_moment_does_not_make_a_counter_fall() {
        let mut seen = LastLook::default();
        let accepted = [(1, 5), (0, 9), (1, 8), (1, 7), (1, 9), (0, 10)];
        let shown = accepted.map(|(place, found)| seen.accepted(place, found));
        assert_eq!(shown, [5, 9, 8, 8, 9, 10]);
    }
}
