//! Workload C: latency where a few messages sleep. What is judged are messages that have no reason
//! to wait: they do not sleep, and their keys are rare enough not to meet themselves. The sender is
//! a thread beside the stage, as a timer of a runtime is a millisecond late by itself.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use tokio::runtime::Builder;

use crate::{
    Failure,
    arrivals::{Arrival, Schedule, Sheet, wake_precisely},
    keyed::WORKERS,
    message::{Counter, Counters},
    route::Route,
    stage::{Stage, all_sent, until_handled},
    system::{Handle, System, To},
    task::{Make, Task},
    window::Window,
};

/// Keys from this rank on are cold.
const COLD_FROM_RANK: u64 = 1_000;
/// How long a message sleeps that does.
const SLEEP: Duration = Duration::from_millis(20);

struct Sleeping {
    sheet: Arc<Sheet>,
    counter: Arc<Counter>,
}

impl Sleeping {
    fn make(sheet: &Arc<Sheet>, counters: &Counters) -> impl Make<Self> {
        let (sheet, of) = (sheet.clone(), counters.clone());
        move |worker| Self { sheet: sheet.clone(), counter: of.of(worker) }
    }
}

impl Task for Sleeping {
    type Message = Arrival;

    const WAITS: bool = true;

    async fn take(&mut self, arrival: Arrival) -> u64 {
        if arrival.sleeps {
            tokio::time::sleep(SLEEP).await;
        }
        self.sheet.handled(&arrival);
        self.counter.add();
        arrival.seq + 1
    }
}

/// The 99th percentile of those that are judged, in microseconds.
pub fn run<S: System>(schedule: &Arc<Schedule>) -> Result<f64, Failure> {
    let (stage, counters) = (S::Stage::new()?, Counters::new(WORKERS));
    let sheet = Sheet::new(schedule.total());
    let made = Sleeping::make(&sheet, &counters);
    let to = stage.block_on(S::start(&stage, WORKERS, made, Route::keys()))?;
    play::<S>(schedule, &sheet, &counters, to.clone())?;
    until_handled(&counters, schedule.total())?;
    stage.block_on(to.stop());
    Ok(sheet.times(schedule, is_judged).percentile(0.99))
}

/// Keys are numbered by their rank, from 0 on.
fn is_judged(arrival: &Arrival) -> bool {
    !arrival.sleeps && arrival.key + 1 >= COLD_FROM_RANK
}

/// Sends everything when it is due. A sender that hangs is left behind.
fn play<S: System>(
    schedule: &Arc<Schedule>,
    sheet: &Arc<Sheet>,
    counters: &Counters,
    mut to: S::To<Sleeping>,
) -> Result<(), Failure> {
    let (done, ended) = mpsc::channel();
    let (schedule, sheet, mut window) = (schedule.clone(), sheet.clone(), Window::new(counters));
    let runtime = Builder::new_current_thread().enable_time().build()?;
    thread::spawn(move || {
        wake_precisely();
        let sent = runtime.block_on(async {
            for arrival in schedule.arrivals() {
                sheet.wait_until_due(arrival);
                if !S::BOUNDED {
                    window.admit().await;
                }
                to.send(*arrival).await?;
            }
            Ok(())
        });
        // Nobody listens to a sender that was given up.
        let _ = done.send(sent);
    });
    all_sent(&ended, 1, counters)
}
