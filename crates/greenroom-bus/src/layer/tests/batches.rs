//! Batches through layers.

use proptest::prelude::*;
use tower::limit::ConcurrencyLimitLayer;

use super::*;

/// Writes down which events it is given together, and answers what their subjects say.
struct Together(Log);

impl HandlerFactory for Together {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(Self(self.0.clone())))
    }
}

impl Handler for Together {
    fn handle<'a>(&'a mut self, _event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        unreachable!("it is given batches only")
    }

    fn handle_all<'a>(
        &'a mut self,
        events: &'a [(&'a Event, Attempt)],
    ) -> BoxFuture<'a, Vec<HandlerResult>> {
        let ids: Vec<&str> = events.iter().map(|(event, _)| event.id()).collect();
        self.0.lock().unwrap().push(ids.join(" "));
        Box::pin(async move {
            tokio::time::sleep(ms(10)).await;
            let answer = |(event, _): &(&Event, Attempt)| match event.subject().map(|s| &**s) {
                Some("retry") => Err(Failure::retry("not yet")),
                _ => Ok(Outputs::Same),
            };
            events.iter().map(answer).collect()
        })
    }
}

async fn make_all(layers: &Layers, events: &[Event]) -> (Vec<Option<FailureKind>>, Vec<String>) {
    let log = Log::default();
    let mut handler = layers.around(Arc::new(Together(log.clone()))).build(0).unwrap();
    let events: Vec<_> = events.iter().map(|event| (event, attempt())).collect();
    let results = handler.handle_all(&events).await;
    (results.into_iter().map(kind).collect(), logged(&log))
}

fn events(subjects: &[&str]) -> Vec<Event> {
    subjects.iter().enumerate().map(|(n, subject)| order(n, subject)).collect()
}

const RETRY: Option<FailureKind> = Some(FailureKind::Retry { after: None });
const RELEASED: Option<FailureKind> = Some(FailureKind::Released);
const REJECT: Option<FailureKind> = Some(FailureKind::Reject);

/// Answers in the handler's place what the subject says.
fn obeying() -> Layers {
    Layers::new().layer(Before(|request: &mut Request| {
        match request.event.subject().map(|subject| &**subject) {
            Some("layer-rejects") => Err(Err(Failure::reject("no"))),
            Some("layer-fails") => Err(Err(Failure::retry("not yet"))),
            Some("layer-skips") => Err(Ok(Outputs::None)),
            _ => Ok(()),
        }
    }))
}

#[tokio::test(start_paused = true)]
async fn g04_a_batch_goes_through_layers_and_is_handled_together() {
    let metrics = Metrics::default();
    let layers = Layers::new().layer(Traced).layer(metrics.clone());
    let (results, handled) = make_all(&layers, &events(&["-", "-", "retry"])).await;
    assert_eq!((results, handled), (vec![None, None, RETRY], vec!["0 1 2".to_owned()]));
    assert_eq!((metrics.snapshot().handled, metrics.snapshot().failed), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn g04_what_a_layer_answers_itself_is_missing_from_the_batch() {
    let subjects = ["-", "layer-rejects", "layer-skips", "-"];
    let (results, handled) = make_all(&obeying(), &events(&subjects)).await;
    assert_eq!((results, handled), (vec![None, REJECT, None, None], vec!["0 3".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn g04_what_stands_behind_an_event_that_a_layer_fails_is_given_back_unstarted() {
    let subjects = ["-", "layer-fails", "-", "layer-rejects", "-"];
    let (results, handled) = make_all(&obeying(), &events(&subjects)).await;
    assert_eq!(results, [None, RETRY, RELEASED, REJECT, RELEASED]);
    assert_eq!(handled, ["0"]);
}

#[tokio::test(start_paused = true)]
async fn g04_a_layer_that_lets_one_through_at_a_time_makes_batches_of_one() {
    let layers = Layers::new().layer(ConcurrencyLimitLayer::new(1));
    let (results, handled) = make_all(&layers, &events(&["-", "-", "-"])).await;
    assert_eq!((results, handled.join("|")), (vec![None, None, None], "0|1|2".to_owned()));
    let layers = Layers::new().layer(RateLimitLayer::new(2, Duration::from_secs(1)));
    let (_, handled) = make_all(&layers, &events(&["-", "-", "-", "-", "-"])).await;
    assert_eq!(handled.join("|"), "0 1|2 3|4");
}

#[tokio::test(start_paused = true)]
async fn g04_a_time_limit_drops_a_batch_and_what_was_in_it_has_timed_out() {
    let layers = Layers::new().layer(TimeoutLayer::new(ms(5)));
    let began = tokio::time::Instant::now();
    let (results, handled) = make_all(&layers, &events(&["-", "-"])).await;
    assert_eq!(results, [Some(FailureKind::Timeout); 2]);
    assert_eq!(handled, ["0 1"]);
    assert!(began.elapsed() < ms(8), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn g04_of_two_equal_events_in_a_batch_the_second_waits_for_the_first() {
    let layers = Layers::new().layer(Deduplication::within(ms(1_000)));
    let twice = [order("a", "-"), order("a", "-"), order("b", "-")];
    let (results, handled) = make_all(&layers, &twice).await;
    assert_eq!((results, handled), (vec![None, RELEASED, RELEASED], vec!["a".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn d09_a_result_is_its_handlers_own_unless_a_layer_answered_in_its_place() {
    let inside = obeying().around(Arc::new(Together(Log::default())));
    let around = Layers::new().layer(Traced).around(inside.clone());
    for factory in [inside, around] {
        let mut handler = factory.build(0).unwrap();
        let events = events(&["-", "layer-rejects", "layer-skips", "retry", "-"]);
        let events: Vec<_> = events.iter().map(|event| (event, attempt())).collect();
        handler.handle_all(&events).await;
        let own = [0, 1, 2, 3, 4].map(|place| handler.gave_result(place));
        assert_eq!(own, [true, false, false, true, true]);
        handler.handle_all(&events[1..2]).await;
        assert!(!handler.gave_result(0) && !handler.gave_result(3), "of the last call");
    }
    let mut handler = obeying().around(obedient()).build(0).unwrap();
    for (subject, own) in [("layer-skips", false), ("reject", true), ("layer-rejects", false)] {
        let _ = make(&mut handler, &order(0, subject)).await;
        assert_eq!(handler.gave_result(0), own, "{subject}");
    }
}

/// Lets an event through after the time that its subject says, or fails it.
fn delaying() -> Layers {
    Layers::new().layer(tower::layer::layer_fn(|inner: LayersService| {
        let inner = Arc::new(tokio::sync::Mutex::new(inner));
        tower::service_fn(move |request: Request| {
            let inner = inner.clone();
            async move {
                let says = request.event.subject().map(|subject| subject.to_string());
                let (wait, what) = says.as_deref().and_then(|says| says.split_once(' ')).unwrap();
                tokio::time::sleep(ms(wait.parse().unwrap())).await;
                if what == "fails" {
                    return Err(BoxError::from("not yet"));
                }
                let answer = inner.lock().await.call(request);
                answer.await
            }
        })
    }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Whatever layers do with the events of a batch, all come to an end, each is handled at most
    /// once, in order, and none behind one that is to be tried again.
    #[test]
    fn g04_batches_keep_their_order_through_layers_that_delay_and_fail(
        says in prop::collection::vec((0..4_u64, prop::bool::weighted(0.15)), 1..12),
        at_once in 1..4_usize,
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let events: Vec<Event> = says
            .iter()
            .enumerate()
            .map(|(n, (wait, fails))| {
                order(n, &format!("{} {}", wait * 7, if *fails { "fails" } else { "passes" }))
            })
            .collect();
        let layers = Layers::new().layer(ConcurrencyLimitLayer::new(at_once)).and(&delaying());
        let (results, handled) = runtime.unwrap().block_on(async {
            let all = make_all(&layers, &events);
            tokio::time::timeout(Duration::from_secs(60), all).await.expect("it hangs")
        });
        let handled: Vec<usize> =
            handled.iter().flat_map(|batch| batch.split(' ')).map(|id| id.parse().unwrap()).collect();
        let stop = says.iter().position(|(_, fails)| *fails).unwrap_or(says.len());
        prop_assert_eq!(handled, (0..stop).collect::<Vec<_>>());
        for (place, result) in results.iter().enumerate() {
            match place.cmp(&stop) {
                std::cmp::Ordering::Less => prop_assert_eq!(*result, None),
                std::cmp::Ordering::Equal => prop_assert_eq!(*result, RETRY),
                std::cmp::Ordering::Greater => {
                    prop_assert!(matches!(*result, RELEASED | RETRY), "{:?}", result);
                }
            }
        }
    }
}
