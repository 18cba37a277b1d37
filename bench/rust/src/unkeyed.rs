//! Workload A: messages without a key from two producers.

use crate::{
    Failure,
    message::{Counters, Message},
    route::Route,
    stage::{PRODUCERS, Stage, share, time},
    system::{Handle, System, To, counting},
    task::Counting,
    window::Window,
    work::Work,
};

/// Millions of messages a second.
pub fn run<S: System>(workers: usize, work: Work, messages: u64) -> Result<f64, Failure> {
    let (stage, counters) = (S::Stage::new()?, Counters::new(workers));
    let started = counting::<S>(&stage, &counters, workers, work, Route::turns());
    let to = stage.block_on(started)?;
    let took =
        time(&stage, producers::<S>(&to, workers, messages, &counters), &counters, messages)?;
    stage.block_on(to.stop());
    Ok(messages as f64 / took.as_secs_f64() / 1e6)
}

fn producers<S: System>(
    to: &S::To<Counting>,
    workers: usize,
    messages: u64,
    counters: &Counters,
) -> Vec<impl crate::stage::Producer + use<S>> {
    let window = Window::new(counters);
    let producer = |index: u64| {
        let (mut to, mut window) = (to.clone(), window.clone());
        to.begin(workers * index as usize / PRODUCERS as usize);
        async move {
            for seq in share(index, PRODUCERS, messages) {
                if !S::BOUNDED {
                    window.admit().await;
                }
                to.send(Message::new(seq, seq)).await?;
            }
            Ok(())
        }
    };
    (0..PRODUCERS).map(producer).collect()
}
