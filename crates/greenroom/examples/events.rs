//! How does one actor notify many others, without waiting for the slowest?
//!
//! A thermometer publishes its readings while there are subscribers, and keeps the last two for
//! later ones. A display keeps up. A printer is slow, has room for two more readings, and learns
//! how many it has missed. A task that is no actor subscribes too.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{convert::Infallible, time::Duration};

use greenroom::{
    Actor, Context, Pool, Stop, Topic,
    topic::{Event, Notice, Producer},
};

const PERIOD: Duration = Duration::from_millis(10);

/// Shows readings; `takes` is how long it is busy with each.
struct Display {
    name: &'static str,
    takes: Duration,
}

/// The messages of a display; readings are only some of them.
enum Show {
    Degrees(i32),
    Missed(u64),
    Text(&'static str),
}

impl From<Event<i32>> for Show {
    fn from(event: Event<i32>) -> Self {
        match event {
            Event::Item(degrees) => Show::Degrees(degrees),
            Event::Lagged(missed) => Show::Missed(missed),
        }
    }
}

impl Actor for Display {
    type Message = Show;
    type Reply = ();
    type Error = Infallible;

    async fn handle(&mut self, show: Show, _cx: &mut Context<Self>) -> Result<(), Infallible> {
        match show {
            Show::Degrees(degrees) => println!("{}: {degrees} degrees", self.name),
            Show::Missed(missed) => println!("{}: missed {missed}", self.name),
            Show::Text(text) => println!("{}: {text}", self.name),
        }
        tokio::time::sleep(self.takes).await;
        Ok(())
    }
}

/// Measures only while there are subscribers: from the first one until the last one has gone.
async fn measure(mut producer: Producer<i32>) {
    let mut degrees = 20;
    loop {
        match producer.notice().await {
            Notice::Start => println!("thermometer: on"),
            Notice::Stop => return println!("thermometer: off"),
        }
        while producer.is_wanted() {
            degrees += 1;
            producer.publish(degrees);
            tokio::time::sleep(PERIOD).await;
        }
    }
}

async fn display(name: &'static str, takes: Duration, room: usize) -> Pool<Display> {
    let pool = Pool::new(move |_slot| Display { name, takes }).name(name).workers(1).capacity(room);
    pool.spawn().await.expect("the settings are in range")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (temperature, producer) = Topic::named("temperature").capacity(2).replay(1).open();
    let thermometer = tokio::spawn(measure(producer));

    let screen = display("screen", Duration::ZERO, 100).await;
    let printer = display("printer", 3 * PERIOD, 2).await;
    screen.send(Show::Text("waiting for readings")).await?;
    let on_screen = temperature.subscribe(&screen);
    let on_paper = temperature.subscribe(&printer);

    let mut log = temperature.receiver();
    for _ in 0..12 {
        println!("log: {:?}", log.recv().await);
    }
    println!("missed: {} by the screen, {} by the printer", on_screen.missed(), on_paper.missed());

    drop((on_screen, on_paper, log)); // nobody listens any more
    thermometer.await?;
    screen.stop(Stop::within(PERIOD)).await;
    printer.stop(Stop::within(20 * PERIOD)).await;
    Ok(())
}
