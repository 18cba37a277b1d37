//! The spans of deliveries, and which are recorded (O06).

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom_bus::{
    engine::PoolConfig,
    event::{Event, TRACEPARENT, TRACESTATE, TraceContext},
    handler::{Failure, HandlerFactory, Outputs},
    trace::{Part, Recorder, Span},
};

use crate::engine::support::{
    Bench, event,
    handlers::{answer, handle, slow},
    ms, on, pool,
    source::Script,
};

const PRODUCER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A span, as it was told.
#[derive(Debug, Clone)]
struct Told {
    /// 0 for the one of waiting.
    attempt: u32,
    outcome: &'static str,
    context: TraceContext,
    parent: Option<TraceContext>,
    producer: Option<TraceContext>,
    took: Duration,
    /// Its event, handler, pool, input and key.
    of: [String; 5],
}

#[derive(Default)]
struct Spans {
    begins: bool,
    asked: AtomicUsize,
    told: Mutex<Vec<Told>>,
}

impl Recorder for Spans {
    fn begins_trace(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.begins
    }

    fn record(&self, span: &Span<'_>) {
        let (attempt, outcome) = match &span.part {
            Part::Attempt(attempt, outcome) => {
                (attempt.number, outcome.class().unwrap_or("handled"))
            }
            _ => (0, "waited"),
        };
        let texts =
            [span.event.id(), &span.handler, &span.pool, span.input, span.key.unwrap_or_default()];
        self.told.lock().unwrap().push(Told {
            attempt,
            outcome,
            context: span.context,
            parent: span.parent,
            producer: span.producer,
            took: span.ended.duration_since(span.began).unwrap(),
            of: texts.map(str::to_owned),
        });
    }
}

fn with(traceparent: &str) -> Event {
    let event = Event::builder("0", "test", "t").subject("key-0");
    event.extension(TRACEPARENT, traceparent).extension(TRACESTATE, "a=1").build().unwrap()
}

/// Runs these events through a recorder that begins traces or does not.
async fn run(
    begins: bool,
    events: Vec<Event>,
    config: PoolConfig,
    factory: Arc<dyn HandlerFactory>,
) -> (Vec<Told>, usize, Vec<Event>, Vec<Event>) {
    let spans = Arc::new(Spans { begins, ..Spans::default() });
    let bench = Bench::new().set(|engine| {
        engine
            .input(Box::new(Script::of(events)))
            .pool("default", config)
            .handler("h", on(&["t"], factory))
            .record(spans.clone())
    });
    let (sink, letters) = (bench.sink.clone(), bench.letters.clone());
    bench.run().await;
    let told = spans.told.lock().unwrap().clone();
    let out = sink.stored().into_iter().map(|stored| stored.event).collect();
    let dead = letters.stored().into_iter().filter_map(|letter| letter.event).collect();
    (told, spans.asked.load(Ordering::Relaxed), out, dead)
}

/// Fails once, then makes an event of the one that it sees.
fn second_time(seen: Arc<Mutex<Vec<TraceContext>>>) -> Arc<dyn HandlerFactory> {
    answer(move |event, attempt| {
        seen.lock().unwrap().extend(event.trace_context());
        match attempt {
            1 => Err(Failure::retry("not yet")),
            _ => Ok(Outputs::Events(vec![Event::builder("made", "h", "made").build()?])),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn o06_a_delivery_is_one_trace_from_its_producer_to_what_is_made_of_it() {
    let seen = Arc::default();
    let (told, asked, out, _) =
        run(false, vec![with(PRODUCER)], pool(1, 1), second_time(Arc::clone(&seen))).await;
    let producer: TraceContext = PRODUCER.parse().unwrap();
    let [waited, first, second] = &told[..] else { panic!("{told:?}") };
    assert_eq!(asked, 0, "its producer has decided");
    assert_eq!([waited, first, second].map(|told| told.outcome), ["waited", "retry", "handled"]);
    assert_eq!((first.attempt, second.attempt), (1, 2));
    assert_eq!(waited.parent, Some(producer));
    for attempt in [first, second] {
        assert_eq!((attempt.parent, attempt.producer), (Some(waited.context), Some(producer)));
        assert_eq!(attempt.of, ["0", "h", "default", "script", "key-0"]);
    }
    assert!(told.iter().all(|told| told.context.trace_id == producer.trace_id));
    assert_eq!(*seen.lock().unwrap(), [first.context, second.context]);
    assert_eq!(out[0].trace_context(), Some(second.context), "{out:?}");
    assert_eq!(out[0].extension(TRACESTATE), Some(&"a=1".into()));
}

#[tokio::test(start_paused = true)]
async fn o06_without_a_traceparent_that_can_be_read_a_trace_begins_where_the_recorder_says_so() {
    for traceparent in [None, Some("00-malformed-01")] {
        for begins in [true, false] {
            let input = traceparent.map_or_else(|| event("0", "t", Some("key-0")), with);
            let (told, asked, out, _) =
                run(begins, vec![input], pool(1, 1), second_time(Arc::default())).await;
            assert_eq!(asked, 1, "it is decided once, not for each attempt");
            assert_eq!(told.len(), if begins { 3 } else { 0 });
            if begins {
                assert_eq!((told[0].parent, told[2].producer), (None, None));
                assert_eq!(out[0].trace_context(), Some(told[2].context));
                assert_eq!(out[0].extension(TRACESTATE), None);
            } else {
                assert_eq!(out[0].extension(TRACEPARENT), traceparent.map(Into::into).as_ref());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn o06_what_its_producer_does_not_record_is_not_recorded_and_passed_on_as_it_came() {
    let unsampled = format!("{}00", &PRODUCER[..53]);
    let (told, asked, out, _) =
        run(true, vec![with(&unsampled)], pool(1, 1), second_time(Arc::default())).await;
    assert!(told.is_empty() && asked == 0, "{told:?}");
    assert_eq!(out[0].extension(TRACEPARENT), Some(&unsampled.into()));
}

#[tokio::test(start_paused = true)]
async fn o06_a_dead_letter_has_the_traceparent_with_which_its_event_came() {
    let fails = answer(|_, _| Err(Failure::reject("never")));
    let (told, _, _, dead) = run(false, vec![with(PRODUCER)], pool(1, 1), fails).await;
    assert_eq!(told.iter().map(|told| told.outcome).collect::<Vec<_>>(), ["waited", "reject"]);
    assert_eq!(dead[0].extension(TRACEPARENT), Some(&PRODUCER.into()));
}

#[tokio::test(start_paused = true)]
async fn o06_waiting_ends_where_the_first_attempt_begins() {
    let events = (0..2).map(|id| event(id, "t", Some("same"))).collect();
    let (told, ..) = run(true, events, pool(4, 4), slow(ms(50))).await;
    let took = |id: &str, attempt| {
        let is = |told: &&Told| (told.of[0].as_str(), told.attempt) == (id, attempt);
        told.iter().find(is).unwrap().took.as_millis()
    };
    assert_eq!((took("0", 1), took("1", 1)), (50, 50));
    assert!(took("0", 0) < 50 && (50..100).contains(&took("1", 0)), "{told:?}");
    assert_ne!(told[0].context.trace_id, told[2].context.trace_id);
}

#[tokio::test(start_paused = true)]
async fn o06_an_attempt_without_an_answer_has_a_span_all_the_same() {
    let panics = answer(|_, attempt| match attempt {
        1 => panic!("on purpose"),
        _ => Ok(Outputs::Same),
    });
    let (told, _, out, _) = run(true, vec![event(0, "t", None)], pool(1, 1), panics).await;
    let outcomes: Vec<_> = told.iter().map(|told| told.outcome).collect();
    assert_eq!(outcomes, ["waited", "panic", "handled"]);
    assert_eq!(told[1].parent, told[2].parent);
    assert_eq!(out[0].trace_context(), Some(told[2].context), "passed on after its attempt");
    let late = handle(|_, attempt| async move {
        match attempt {
            1 => std::future::pending().await,
            _ => Ok(Outputs::None),
        }
    });
    let limited = PoolConfig { timeout: Some(ms(20)), ..pool(1, 1) };
    let (told, ..) = run(true, vec![event(0, "t", None)], limited, late).await;
    assert_eq!((told[1].outcome, told[1].took), ("timeout", ms(20)));
}

#[tokio::test(start_paused = true)]
async fn o06_each_event_of_a_batch_has_spans_of_its_own() {
    let events = (0..3).map(|id| event(id, "t", Some("same"))).collect();
    let batches = greenroom::batch::Batches::of(3);
    let config = PoolConfig { batches: Some(batches), ..pool(1, 8) };
    let (told, _, out, _) = run(true, events, config, answer(|_, _| Ok(Outputs::Same))).await;
    assert_eq!(told.len(), 6, "{told:?}");
    for (id, event) in out.iter().enumerate() {
        let is = |told: &&Told| told.attempt == 1 && told.of[0] == id.to_string();
        assert_eq!(event.trace_context(), told.iter().find(is).map(|told| told.context));
    }
}
