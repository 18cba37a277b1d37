//! Layers around the handlers of an engine: settlement is outside of all of them.

use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use greenroom::Restarts;
use greenroom_bus::{
    BoxFuture,
    dead_letter::Reason,
    engine::{HandlerConfig, LoopbackConfig, PoolConfig},
    event::{CORRELATION_ID, Event},
    handler::{Failure, Outputs},
    layer::{
        BoxError, CircuitBreaker, Correlation, Deduplication, Layer, Layers, LayersService,
        Metrics, Request, Service, TimeoutLayer,
    },
};

use crate::messages::support::{
    Bench, HANG, checked, event,
    handlers::{answer, pass},
    letters::MemoryLetters,
    ms, on, pool,
    sink::{Behaviour, MemorySink},
    source::{Script, Step},
};

/// What a layer does with events of this id; lets the others through.
#[derive(Clone, Copy)]
enum Bad {
    NeverAnswers,
    NeverReady,
    Panics,
    PanicsWhenAsked,
}

#[derive(Clone)]
struct Stubborn<S> {
    bad: Bad,
    inner: S,
}

impl Layer<LayersService> for Stubborn<()> {
    type Service = Stubborn<LayersService>;

    fn layer(&self, inner: LayersService) -> Self::Service {
        Stubborn { bad: self.bad, inner }
    }
}

impl Service<Request> for Stubborn<LayersService> {
    type Response = Outputs;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Outputs, BoxError>>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self.bad {
            Bad::NeverReady => Poll::Pending,
            _ => self.inner.poll_ready(task),
        }
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let is_bad = request.event.id() == "bad";
        assert!(!is_bad || !matches!(self.bad, Bad::PanicsWhenAsked), "a layer in `call`");
        let (bad, inner) = (self.bad, self.inner.call(request));
        Box::pin(async move {
            match bad {
                Bad::NeverAnswers if is_bad => std::future::pending().await,
                Bad::Panics if is_bad => panic!("a layer in its future"),
                _ => inner.await,
            }
        })
    }
}

fn stubborn(bad: Bad) -> Stubborn<()> {
    Stubborn { bad, inner: () }
}

fn others(count: usize) -> impl Iterator<Item = Event> {
    (0..count).map(|n| event(format!("other-{n}"), "t", Some(&format!("key-{n}"))))
}

fn with_bad() -> Vec<Event> {
    std::iter::once(event("bad", "t", Some("bad"))).chain(others(20)).collect()
}

#[tokio::test(start_paused = true)]
async fn r07_a_layer_that_never_answers_loses_nothing_when_the_engine_stops() {
    for (bad, handled) in [(Bad::NeverAnswers, 20), (Bad::NeverReady, 0)] {
        let layers = Layers::new().layer(stubborn(bad));
        let script = Script::of(with_bad()).then(Step::Never);
        let bench = Bench::new().set(|engine| {
            engine
                .input(Box::new(script))
                .pool("default", pool(4, 100))
                .handler("h", on(&["t"], pass()))
                .layers(&layers)
                .deadline(ms(500))
        });
        let sink = bench.sink.clone();
        let engine = bench.engine.build().await.unwrap();
        let control = engine.control();
        let run = tokio::spawn(engine.run());
        tokio::time::sleep(ms(1_000)).await;
        let began = tokio::time::Instant::now();
        control.drain();
        let report = checked(tokio::time::timeout(HANG, run).await.unwrap().unwrap());
        assert!(began.elapsed() < ms(1_500), "{:?}", began.elapsed());
        assert_eq!((report.taken, report.handled, report.refused), (21, handled, 21 - handled));
        assert_eq!(sink.ids().len() as u64, handled);
    }
}

#[tokio::test(start_paused = true)]
async fn r07_a_layer_that_never_answers_ends_at_a_limit_outside_of_it() {
    let layers = Layers::new().layer(TimeoutLayer::new(ms(100))).layer(stubborn(Bad::NeverAnswers));
    let bench = Bench::new().set(|engine| {
        engine
            .input(Box::new(Script::of(with_bad())))
            .pool("default", pool(2, 100))
            .handler("h", on(&["t"], layers.around(pass())))
    });
    let letters = bench.letters.clone();
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered, report.repeated_at_most), (20, 1, 3));
    let letter = &letters.stored()[0];
    assert_eq!((letter.reason, letter.attempts), (Reason::RetriesExhausted, 3));
    assert!(letter.error.contains("longer than its layer allows"), "{}", letter.error);
}

#[tokio::test(start_paused = true)]
async fn r07_a_layer_that_panics_makes_its_event_poison_and_leaves_the_others_alone() {
    for bad in [Bad::Panics, Bad::PanicsWhenAsked] {
        let metrics = Metrics::default();
        let layers = Layers::new().layer(metrics.clone()).layer(stubborn(bad));
        let restarts = Restarts { max: 100, ..Restarts::default() };
        let bench = Bench::new().set(|engine| {
            engine
                .input(Box::new(Script::of(with_bad())))
                .pool("default", PoolConfig { restarts, ..pool(2, 100) })
                .handler("h", on(&["t"], pass()))
                .layers(&layers)
        });
        let letters = bench.letters.clone();
        let report = bench.run().await;
        assert_eq!((report.handled, report.dead_lettered, report.refused), (20, 1, 0));
        let letter = &letters.stored()[0];
        assert_eq!((letter.reason, letter.attempts), (Reason::Poisoned, 2));
        assert!(letter.error.contains("a layer in"), "{}", letter.error);
        let seen = metrics.snapshot();
        assert_eq!((seen.handled, seen.cancelled, seen.in_hand), (20, 2, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn r07_layers_of_the_engine_are_outside_of_those_of_a_handler() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noting = |name: &'static str| {
        let seen = seen.clone();
        tower::layer::layer_fn(move |inner: LayersService| {
            let (inner, seen) = (Arc::new(tokio::sync::Mutex::new(inner)), seen.clone());
            tower::service_fn(move |request: Request| {
                seen.lock().unwrap().push(name);
                let inner = inner.clone();
                async move {
                    let answer = inner.lock().await.call(request);
                    answer.await
                }
            })
        })
    };
    let (outer, second) =
        (Layers::new().layer(noting("outer")), Layers::new().layer(noting("second")));
    let own = Layers::new().layer(noting("own"));
    let bench = Bench::new().set(|engine| {
        engine
            .layers(&outer)
            .input(Box::new(Script::of([event("1", "t", None)])))
            .handler("h", on(&["t"], own.around(pass())))
            .layers(&second)
    });
    assert_eq!(bench.run().await.handled, 1);
    assert_eq!(*seen.lock().unwrap(), ["outer", "second", "own"]);
}

/// The second waits until the first is stored, which takes its time; then it is
/// acknowledged and goes nowhere.
#[tokio::test(start_paused = true)]
async fn d07_a_duplicate_is_acknowledged_once_the_first_is_stored_and_goes_nowhere() {
    let deduplication = Deduplication::within(Duration::from_secs(60));
    let metrics = Metrics::default();
    let layers = Layers::new().layer(metrics.clone()).layer(deduplication.clone());
    let slow = Behaviour { latency: ms(300), ..Behaviour::default() };
    let bench = Bench::with(MemorySink::new(slow), MemoryLetters::default());
    let twice = [("a", "x"), ("b", "y"), ("a", "z"), ("a", "x")];
    let events = twice.map(|(id, key)| event(id, "t", Some(key)));
    let bench = bench.set(|engine| {
        engine
            .input(Box::new(Script::of(events)))
            .pool("default", pool(4, 100))
            .handler("h", on(&["t"], pass()))
            .layers(&layers)
    });
    let sink = bench.sink.clone();
    let report = bench.run().await;
    assert_eq!((report.taken, report.handled, report.retried), (4, 4, 0));
    assert_eq!(deduplication.skipped(), 2);
    let waited = metrics.snapshot().released;
    assert!(
        waited >= 4,
        "the first takes six times as long to store as the second waits: {waited}"
    );
    let mut ids = sink.ids();
    ids.sort();
    assert_eq!(ids, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn d07_an_event_that_is_retried_is_no_duplicate_of_itself() {
    let layers = Layers::new().layer(Deduplication::within(Duration::from_secs(60)));
    let handler = answer(|_, attempt| match attempt {
        1 | 2 => Err(Failure::retry("not yet")),
        _ => Ok(Outputs::Same),
    });
    let bench = Bench::new().set(|engine| {
        engine
            .input(Box::new(Script::of([event("a", "t", Some("x"))])))
            .handler("h", on(&["t"], handler))
            .layers(&layers)
    });
    let sink = bench.sink.clone();
    assert_eq!(bench.run().await.handled, 1);
    assert_eq!(sink.stored()[0].attempt, 3);
}

/// By way of an event with another id, and straight.
#[tokio::test(start_paused = true)]
async fn d07_what_comes_back_in_under_the_id_of_its_event_does_not_wait_for_itself() {
    for key in [None, Some("x")] {
        let deduplication = Deduplication::within(Duration::from_secs(60));
        let layers = Layers::new().layer(deduplication.clone());
        let next = answer(move |made, _| {
            let made = match made.ty() {
                "a" => event("other", "b", key),
                "b" => event("1", "c", key),
                "c" => event("1", "d", key),
                _ => event("2", "done", key),
            };
            Ok(Outputs::Events(vec![made]))
        });
        let again = Script::of([event("1", "a", key)]).then(Step::Wait(ms(1_000)));
        let again = again.then(Step::Batch(vec![Ok(event("1", "a", key))]));
        let back = ["b", "c", "d"].map(|on| on.parse().unwrap()).to_vec();
        let bench = Bench::new().set(|engine| {
            let handler = HandlerConfig { loopback: 1, ..on(&["a", "b", "c", "d"], next) };
            let engine = engine.input(Box::new(again)).loopback(LoopbackConfig::new(back));
            engine.handler("h", handler).layers(&layers)
        });
        let sink = bench.sink.clone();
        let report = tokio::time::timeout(Duration::from_secs(100), bench.run());
        let report = report.await.expect("it waits for itself");
        assert_eq!((report.handled, report.pools[0].handled), (2, 5), "{key:?} {report:?}");
        assert_eq!((sink.ids(), deduplication.skipped()), (vec!["2".to_owned()], 1), "{key:?}");
    }
}

/// A run in which two events of type `a` come in, and each is turned into the next by its id and
/// type. How many were skipped.
async fn chained(
    ids: [&str; 2],
    key: Option<&'static str>,
    next: fn(&str, &str) -> (&'static str, &'static str),
) -> u64 {
    let deduplication = Deduplication::within(Duration::from_secs(60));
    let layers = Layers::new().layer(deduplication.clone());
    let makes_next = answer(move |made, _| {
        let (id, ty) = next(made.id(), made.ty());
        Ok(Outputs::Events(vec![event(id, ty, key)]))
    });
    let events = Script::of(ids.map(|id| event(id, "a", key)));
    let bench = Bench::new().set(|engine| {
        let handler = HandlerConfig { loopback: 1, ..on(&["a", "b", "c"], makes_next) };
        let back = ["b", "c"].map(|on| on.parse().unwrap()).to_vec();
        let engine = engine.input(Box::new(events)).loopback(LoopbackConfig::new(back));
        engine.pool("default", pool(1, 1)).handler("h", handler).layers(&layers)
    });
    let report = tokio::time::timeout(Duration::from_secs(100), bench.run());
    assert_eq!(report.await.expect("some wait for each other").handled, 2);
    deduplication.skipped()
}

/// The second of two deliveries holds up neither the pool nor its key.
#[tokio::test(start_paused = true)]
async fn d07_a_duplicate_does_not_hold_up_what_comes_back_in_of_the_first() {
    for key in [None, Some("x")] {
        let skipped = chained(["1", "1"], key, |_, ty| match ty {
            "a" => ("2", "b"),
            _ => ("3", "done"),
        });
        assert_eq!(skipped.await, 1, "{key:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn d07_of_two_that_come_back_in_under_one_id_the_second_does_not_hold_up_the_first() {
    for key in [None, Some("x")] {
        let skipped = chained(["1", "2"], key, |_, ty| match ty {
            "a" => ("p", "b"),
            "b" => ("q", "c"),
            _ => ("3", "done"),
        });
        assert_eq!(skipped.await, 1, "{key:?}");
    }
}

/// One of them is handled twice.
#[tokio::test(start_paused = true)]
async fn d07_what_comes_back_in_under_the_ids_of_each_other_does_not_wait_crosswise() {
    for key in [None, Some("x")] {
        let skipped = chained(["1", "2"], key, |id, ty| match (id, ty) {
            ("1", "a") => ("p", "b"),
            ("2", "a") => ("q", "b"),
            ("p", "b") => ("q", "c"),
            ("q", "b") => ("p", "c"),
            _ => ("3", "done"),
        });
        assert_eq!(skipped.await, 1, "{key:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn r07_what_waits_for_a_breaker_is_not_attempted() {
    let breaker = CircuitBreaker::new(2, ms(1_000));
    let layers = Layers::new().layer(breaker.clone());
    let up_at = tokio::time::Instant::now() + ms(1_500);
    let handler = answer(move |_, _| match tokio::time::Instant::now() >= up_at {
        true => Ok(Outputs::Same),
        false => Err(Failure::retry("it is down")),
    });
    let bench = Bench::new().set(|engine| {
        engine
            .input(Box::new(Script::of(others(50))))
            .pool("default", pool(4, 100))
            .handler("h", on(&["t"], layers.around(handler)))
    });
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered), (50, 0));
    assert_eq!(breaker.opened(), 2, "once of failures, once of a probe");
    let failed = report.pools[0].failed_attempts;
    assert!((3..=6).contains(&failed), "{failed} attempts failed");
}

#[tokio::test(start_paused = true)]
async fn r07_a_flow_that_a_layer_begins_is_seen_outside() {
    let layers = Layers::new().layer(Correlation);
    let bench = Bench::new().set(|engine| {
        engine
            .input(Box::new(Script::of([event("1", "t", None)])))
            .handler("h", on(&["t"], pass()))
            .layers(&layers)
    });
    let sink = bench.sink.clone();
    assert_eq!(bench.run().await.handled, 1);
    let stored = &sink.stored()[0].event;
    assert_eq!((stored.id(), stored.extension(CORRELATION_ID)), ("1", Some(&"1".into())));
}
