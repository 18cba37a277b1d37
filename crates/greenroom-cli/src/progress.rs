//! The display of a run in progress (O08): a bar on a terminal, a log line every five seconds
//! otherwise.

use std::{
    io::{self, Write},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use greenroom_config::plural;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::report::grouped;

/// Often enough to look alive; the cost of drawing does not matter.
const REDRAW: Duration = Duration::from_millis(200);
/// Rare enough for a log.
const LOG_EVERY: Duration = Duration::from_secs(5);
/// The bar counts in this many steps.
const STEPS: u64 = 10_000;
/// After this long without a settlement, the remaining time is no longer estimated. Less than the
/// time between two log lines.
const STANDS: Duration = Duration::from_secs(3);
/// The weight of the last interval in the rate shown, so that it is steady but still follows.
const NEWEST: f64 = 0.3;

/// A run, at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// Events read.
    pub taken: u64,
    /// Events settled in any way.
    pub settled: u64,
    /// Those of them that became dead letters.
    pub dead_lettered: u64,
    /// Keys that wait for an operator.
    pub parked_keys: u64,
    /// Events behind them.
    pub parked_events: u64,
    /// Whether an operator can decide on them, through the admin listener.
    pub has_admin: bool,
    /// The part of all finite inputs that was read, between 0 and 1; `None` if an end is not known.
    pub fraction: Option<f64>,
    /// Unread bytes of followed files; `None` if there is none.
    pub behind: Option<u64>,
    /// Blocked parts, such as ``handler `push` in outage``, and for how long.
    pub outages: Vec<(String, Duration)>,
    /// How long an outage may last once all inputs have ended.
    pub outage_limit: Duration,
}

/// Shows progress until the future is dropped: on standard error, as a bar if that is a terminal
/// and may be drawn on, or else as log lines. `snapshot` is called at most a few times a second.
///
/// # Cancel safety
/// Meant to be dropped, for example as the losing branch of a `select!`; the bar is then cleared.
pub async fn show(may_draw: bool, snapshot: impl Fn() -> Snapshot) {
    if may_draw && can_draw() { draw(snapshot).await } else { log(snapshot).await }
}

/// Whether standard error is a terminal that lines can be drawn over: one without `TERM`, or a
/// `dumb` one, is not.
pub(crate) fn can_draw() -> bool {
    !ProgressDrawTarget::stderr().is_hidden()
}

async fn draw(snapshot: impl Fn() -> Snapshot) {
    let bar =
        Cleared::new(ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr()));
    let mut pace = RunPace::new(Instant::now());
    let mut ticks = ticks(REDRAW);
    let mut finite = None;
    loop {
        ticks.tick().await;
        let now = snapshot();
        let line = pace.line(&now, Instant::now());
        if finite != Some(now.fraction.is_some()) {
            finite = Some(now.fraction.is_some());
            bar.0.set_style(style(now.fraction.is_some()));
        }
        bar.0.set_message(line);
        bar.0.set_position((now.fraction.unwrap_or(0.0) * STEPS as f64) as u64);
        bar.0.tick();
    }
}

/// Shows some lines of text, if [`can_draw`] allows it, until the future is dropped; they are then
/// cleared.
pub(crate) async fn text(lines: impl Fn() -> String) {
    let bar = Cleared::new(ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()));
    bar.0.set_style(message_alone());
    let mut ticks = ticks(REDRAW);
    loop {
        ticks.tick().await;
        bar.0.set_message(lines());
        bar.0.tick();
    }
}

/// Shows some words on standard error, if that is a terminal, until the returned guard is dropped.
pub(crate) fn words(words: String) -> impl Drop {
    let bar = Cleared::new(ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()));
    bar.0.set_style(message_alone());
    bar.0.set_message(words);
    bar.0.tick();
    bar
}

fn message_alone() -> ProgressStyle {
    ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

async fn log(snapshot: impl Fn() -> Snapshot) {
    let mut pace = RunPace::new(Instant::now());
    let mut ticks = ticks(LOG_EVERY);
    loop {
        ticks.tick().await;
        let line = pace.line(&snapshot(), Instant::now());
        tracing::info!("{line}");
    }
}

/// Ticks at this interval; missed ticks are skipped.
pub(crate) fn ticks(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn style(finite: bool) -> ProgressStyle {
    let template =
        if finite { "{bar:12} {percent:>3}%  {wide_msg}" } else { "{spinner} {wide_msg}" };
    // The templates are our own; a test reads both.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The bar on the screen, so that log lines can be written above it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Clears the bar when the future that draws it is dropped, so that only the report remains.
struct Cleared(ProgressBar);

impl Cleared {
    fn new(bar: ProgressBar) -> Self {
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Self(bar)
    }
}

impl Drop for Cleared {
    fn drop(&mut self) {
        SHOWN.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.0.finish_and_clear();
    }
}

/// Standard error for log lines: while a bar is shown, they are written above it.
#[derive(Debug, Default)]
pub(crate) struct AboveBar;

impl Write for AboveBar {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let bar = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match bar {
            Some(bar) => bar.suspend(|| io::stderr().write(line)),
            None => io::stderr().write(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Rate and estimated end, from one observation to the next.
struct RunPace {
    started: Instant,
    last: Instant,
    settled: u64,
    rate: Option<f64>,
    /// The time of the last settlement.
    moved: Instant,
}

impl RunPace {
    fn new(now: Instant) -> Self {
        Self { started: now, last: now, settled: 0, rate: None, moved: now }
    }

    fn line(&mut self, snapshot: &Snapshot, now: Instant) -> String {
        let rate = self.observe(snapshot.settled, now);
        let mut line = format!(
            "{}, {}/s, {} in flight",
            plural(snapshot.settled as usize, "event"),
            grouped(rate.round() as u64),
            grouped(snapshot.taken.saturating_sub(snapshot.settled)),
        );
        if snapshot.dead_lettered > 0 {
            line.push_str(&format!(", {}", plural(snapshot.dead_lettered as usize, "dead letter")));
        }
        if let Some(left) = snapshot.fraction.and_then(|fraction| self.left(fraction, now)) {
            line.push_str(&format!(", about {} left", human(left)));
        }
        if let Some(behind) = snapshot.behind.filter(|behind| *behind > 0) {
            line.push_str(&format!(", {} behind", bytes(behind)));
        }
        if snapshot.parked_keys > 0 {
            line.push_str(&parked(snapshot));
        }
        if let Some(longest) = snapshot.outages.iter().max_by_key(|(_, lasted)| *lasted) {
            line.push_str(&outage(snapshot, longest));
        }
        line
    }

    fn observe(&mut self, settled: u64, now: Instant) -> f64 {
        let seconds = (now - self.last).as_secs_f64();
        if seconds <= 0.0 {
            return self.rate.unwrap_or(0.0);
        }
        let newest = settled.saturating_sub(self.settled) as f64 / seconds;
        let rate = self.rate.map_or(newest, |old| old + NEWEST * (newest - old));
        if settled > self.settled {
            self.moved = now;
        }
        (self.last, self.settled, self.rate) = (now, settled, Some(rate));
        rate
    }

    /// The remaining time, in proportion to the time so far. `None` without a settlement: it is
    /// unknown then.
    fn left(&self, fraction: f64, now: Instant) -> Option<Duration> {
        const TOO_EARLY: f64 = 0.01;
        let stands = now - self.moved >= STANDS;
        if stands || !(TOO_EARLY..1.0).contains(&fraction) {
            return None;
        }
        let elapsed = (now - self.started).as_secs_f64();
        Duration::try_from_secs_f64(elapsed * (1.0 - fraction) / fraction).ok()
    }
}

fn bytes(count: u64) -> String {
    match count {
        0..1_024 => plural(count as usize, "byte"),
        1_024..1_048_576 => format!("{:.1} KiB", count as f64 / 1_024.0),
        _ => format!("{} MiB", grouped((count as f64 / 1_048_576.0).round() as u64)),
    }
}

/// The events that wait for an operator, and the possible actions.
fn parked(snapshot: &Snapshot) -> String {
    let (keys, events) =
        (plural(snapshot.parked_keys as usize, "key"), grouped(snapshot.parked_events));
    let next = match snapshot.has_admin {
        true => "GET /api/keys lists them, `greenroom key resume KEY`, skip or drop decides on one",
        false => "without `admin` they cannot be decided on, and are refused at the end",
    };
    format!(", {keys} parked with {events} of the events: {next}")
}

/// The reason why events of a handler or an output wait, and the end of the wait.
fn outage(snapshot: &Snapshot, (name, lasted): &(String, Duration)) -> String {
    let others = match snapshot.outages.len() - 1 {
        0 => String::new(),
        others => format!(" (and {})", plural(others, "other")),
    };
    let rest = match snapshot.fraction {
        Some(1.0..) => {
            let limit = human(snapshot.outage_limit);
            format!("the run ends once that has lasted {limit} after the inputs' end")
        }
        _ => "its events wait until it answers again".to_owned(),
    };
    format!(", the {name}{others} for {}: {rest}", human(*lasted))
}

fn human(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{} s", seconds.max(1)),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(settled: u64, fraction: Option<f64>) -> Snapshot {
        Snapshot { taken: settled + 10, settled, fraction, ..Snapshot::default() }
    }

    #[test]
    fn b01_a_line_says_how_far_what_is_followed_is_behind() {
        let start = Instant::now();
        let line = |behind| {
            let snapshot = Snapshot { behind, ..snapshot(10, None) };
            RunPace::new(start).line(&snapshot, start + Duration::from_secs(5))
        };
        assert!(line(Some(1)).ends_with(", 1 byte behind"), "{}", line(Some(1)));
        assert!(line(Some(1_536)).ends_with(", 1.5 KiB behind"));
        assert!(line(Some(3 << 30)).ends_with(", 3,072 MiB behind"));
        assert!(!line(Some(0)).contains("behind") && !line(None).contains("behind"));
    }

    #[test]
    fn o08_a_line_has_events_rate_flight_and_estimated_end() {
        let start = Instant::now();
        let mut pace = RunPace::new(start);
        let line = pace.line(&snapshot(5_000, Some(0.25)), start + Duration::from_secs(5));
        assert_eq!(line, "5,000 events, 1,000/s, 10 in flight, about 15 s left");
    }

    #[test]
    fn o08_parked_keys_are_told_and_no_time_is_invented_while_nothing_moves() {
        let start = Instant::now();
        let mut pace = RunPace::new(start);
        pace.line(&snapshot(5_000, Some(0.25)), start + Duration::from_secs(5));
        let parked = Snapshot {
            parked_keys: 1,
            parked_events: 10,
            has_admin: true,
            ..snapshot(5_000, Some(0.25))
        };
        let line = pace.line(&parked, start + Duration::from_secs(10));
        assert_eq!(
            line,
            "5,000 events, 700/s, 10 in flight, 1 key parked with 10 of the events: GET /api/keys lists \
             them, `greenroom key resume KEY`, skip or drop decides on one"
        );
        let without = Snapshot { parked_keys: 2, has_admin: false, ..parked };
        let line = pace.line(&without, start + Duration::from_secs(15));
        assert!(line.contains("2 keys parked") && line.contains("without `admin`"), "{line}");
        assert!(!line.contains("left"), "{line}");
    }

    #[test]
    fn o08_without_a_known_end_there_is_no_estimate_and_dead_letters_show() {
        let start = Instant::now();
        let mut pace = RunPace::new(start);
        let now = Snapshot { dead_lettered: 2, ..snapshot(1, None) };
        let line = pace.line(&now, start + Duration::from_secs(1));
        assert_eq!(line, "1 event, 1/s, 10 in flight, 2 dead letters");
    }

    #[test]
    fn o08_an_outage_is_told_with_what_ends_it() {
        let mut pace = RunPace::new(Instant::now());
        let outages = vec![("handler `a` in outage".to_owned(), Duration::from_secs(9))];
        let limit = Duration::from_secs(300);
        let mut now = Snapshot { outages, outage_limit: limit, ..snapshot(1, Some(0.5)) };
        let line = pace.line(&now, Instant::now());
        let said = ", the handler `a` in outage for 9 s: its events wait until it answers again";
        assert!(line.ends_with(said), "{line}");
        now.outages.push(("output `b` paused".to_owned(), Duration::from_secs(70)));
        now.fraction = Some(1.0);
        let line = pace.line(&now, Instant::now());
        let said = ", the output `b` paused (and 1 other) for 1 min 10 s: the run ends once that has lasted \
                    5 min 0 s after the inputs' end";
        assert!(line.ends_with(said), "{line}");
    }

    #[test]
    fn the_rate_follows_the_newest_interval() {
        let start = Instant::now();
        let mut pace = RunPace::new(start);
        pace.observe(1000, start + Duration::from_secs(1));
        let rate = pace.observe(1000, start + Duration::from_secs(2));
        assert!((rate - 700.0).abs() < 1e-6, "{rate}");
    }

    #[test]
    fn o08_the_bar_is_gone_when_its_future_is_dropped() {
        let bar = ProgressBar::hidden();
        let cleared = Cleared::new(bar.clone());
        assert!(SHOWN.lock().unwrap().is_some());
        AboveBar.write_all(b"").unwrap();
        drop(cleared);
        assert!(SHOWN.lock().unwrap().is_none() && bar.is_finished());
    }

    #[test]
    fn the_templates_of_the_bar_are_valid() {
        for template in ["{bar:12} {percent:>3}%  {wide_msg}", "{spinner} {wide_msg}", "{msg}"] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
