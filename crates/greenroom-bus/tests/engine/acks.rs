//! When an event is acknowledged (R09).

use std::sync::{Arc, Mutex};

use greenroom_bus::{
    engine::{AckWhen, BuildError, HandlerConfig},
    event::Event,
    handler::{Attempt, Failure, Handler, HandlerFactory, Handling, Outputs, Settlement},
    router::RouterError,
};

use crate::engine::support::{
    Bench, checked, event,
    handlers::{answer, pass},
    letters::MemoryLetters,
    ms, on, pool,
    sink::{Behaviour, MemorySink},
    source::{Script, Step},
};

fn events(count: usize) -> Script {
    Script::of((0..count).map(|n| event(n, "t", Some("key")))).then(Step::Never)
}

/// An output that stores one event a second, of which some have been handed over.
fn slow_output(ack: AckWhen, fails_after: Option<usize>) -> Bench {
    let behaviour = Behaviour { latency: ms(1_000), fails_after, ..Behaviour::default() };
    Bench::with(MemorySink::new(behaviour), MemoryLetters::default()).set(|engine| {
        let handler = HandlerConfig { ack, ..on(&["t"], pass()) };
        engine.input(Box::new(events(10))).handler("h", handler)
    })
}

#[tokio::test(start_paused = true)]
async fn r09_an_event_is_acknowledged_when_its_outputs_are_stored() {
    let bench = slow_output(AckWhen::Outputs, None);
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    for stored in 0..10 {
        tokio::time::sleep(ms(if stored == 0 { 500 } else { 1_000 })).await;
        assert_eq!((control.progress().settled, bench.sink.ids().len() as u64), (stored, stored));
    }
    control.drain();
    assert_eq!(checked(run.await.unwrap()).handled, 10);
}

#[tokio::test(start_paused = true)]
async fn r09_with_on_success_it_is_acknowledged_when_its_handler_is_done() {
    let bench = slow_output(AckWhen::OnSuccess, None);
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(500)).await;
    assert_eq!((control.progress().settled, bench.sink.ids().len()), (10, 0));
    control.drain();
    let report = checked(run.await.unwrap());
    assert_eq!((report.handled, report.lost_outputs, bench.sink.ids().len()), (10, 0, 10));
    assert!(report.is_clean());
}

#[tokio::test(start_paused = true)]
async fn r09_with_on_success_outputs_that_are_lost_are_counted() {
    let bench = slow_output(AckWhen::OnSuccess, Some(4));
    let report = checked(bench.engine.build().await.unwrap().run().await);
    assert_eq!((report.handled, report.lost_outputs), (10, 6));
    assert!(!report.is_clean());
    let bench = slow_output(AckWhen::Outputs, Some(4));
    let report = checked(bench.engine.build().await.unwrap().run().await);
    assert_eq!((report.handled, report.refused, report.lost_outputs), (4, 6, 0));
}

#[tokio::test(start_paused = true)]
async fn r09_a_handler_may_return_no_event_or_many() {
    let many = answer(|event, _| {
        let n: usize = event.id().parse().unwrap();
        Ok(Outputs::Events(vec![event; n]))
    });
    let bench = Bench::new().set(|engine| {
        let source = Script::of((0..4).map(|n| event(n, "t", None)));
        engine.input(Box::new(source)).handler("h", on(&["t"], many))
    });
    let sink = bench.sink.clone();
    let report = bench.run().await;
    assert_eq!(report.handled, 4);
    assert_eq!(sink.ids(), ["1", "2", "2", "3", "3", "3"]);
}

/// What a handler that settles itself does with an event, by its attempt.
type Does = fn(&Event, u32, Settlement, &mut Vec<Settlement>) -> Result<Outputs, Failure>;

/// Keeps settlements, and acknowledges those it has when it is stopped.
struct Settles(Does, Arc<Mutex<Vec<Settlement>>>);

struct OneOfThem(Does, Arc<Mutex<Vec<Settlement>>>);

impl HandlerFactory for Settles {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(OneOfThem(self.0, self.1.clone())))
    }

    fn settles(&self) -> bool {
        true
    }
}

impl Handler for OneOfThem {
    fn handle<'a>(&'a mut self, _: &'a Event, _: &'a Attempt) -> Handling<'a> {
        unreachable!("it is run with `ack: manual` only")
    }

    fn handle_and_settle<'a>(
        &'a mut self,
        event: &'a Event,
        attempt: &'a Attempt,
        settlement: Settlement,
    ) -> Handling<'a> {
        let mut kept = self.1.lock().unwrap();
        Handling::Done((self.0)(event, attempt.number, settlement, &mut kept))
    }
}

fn manual(does: Does) -> (Bench, Arc<Mutex<Vec<Settlement>>>) {
    let kept = Arc::default();
    let factory = Arc::new(Settles(does, Arc::clone(&kept)));
    let bench = Bench::new().set(|engine| {
        let handler = HandlerConfig { ack: AckWhen::Manual, ..on(&["t"], factory) };
        engine.input(Box::new(events(10))).pool("default", pool(2, 50)).handler("h", handler)
    });
    (bench, kept)
}

#[tokio::test(start_paused = true)]
async fn r09_with_manual_its_handler_says_when_and_how() {
    let (bench, kept) = manual(|_, _, settlement, kept| {
        kept.push(settlement);
        Ok(Outputs::Same)
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!((control.progress().settled, bench.sink.ids().len()), (0, 10));
    for (n, settlement) in kept.lock().unwrap().drain(..).enumerate() {
        match n {
            0..6 => assert!(settlement.acknowledge() && !settlement.refuse()),
            6..8 => assert!(settlement.refuse()),
            _ => drop(settlement),
        }
    }
    assert_eq!(control.progress().settled, 10);
    control.drain();
    let report = checked(run.await.unwrap());
    assert_eq!((report.handled, report.refused), (6, 4));
}

#[tokio::test(start_paused = true)]
async fn r09_with_manual_a_failed_attempt_refuses_nothing_and_a_dead_letter_settles() {
    let (bench, _) = manual(|event, attempt, settlement, _| match (event.id(), attempt) {
        ("3", _) => Err(Failure::reject("no")),
        (_, 1) => Err(Failure::retry("not yet")),
        _ => {
            settlement.acknowledge();
            Ok(Outputs::None)
        }
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(60_000)).await;
    control.drain();
    let report = checked(run.await.unwrap());
    assert_eq!((report.handled, report.dead_lettered, report.refused), (9, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn r09_with_manual_a_handler_that_cannot_is_an_error() {
    let handler = HandlerConfig { ack: AckWhen::Manual, ..on(&["t"], pass()) };
    let built = Bench::new().engine.input(Box::new(events(1))).handler("h", handler).build().await;
    let expected = RouterError::CannotSettle("h".to_owned());
    assert!(matches!(built, Err(BuildError::Router(why)) if why == expected));
}
