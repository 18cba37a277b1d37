//! Batches before a handler (G04): by count, bytes or time, by key; each
//! event is settled by itself.

use std::sync::{Arc, Mutex};

use greenroom::batch::Batches;
use greenroom_bus::{
    BoxFuture,
    engine::PoolConfig,
    event::Event,
    handler::{
        Attempt, Failure, FailureKind, Handler, HandlerFactory, HandlerResult, Handling, Outputs,
    },
    layer::{Layers, Metrics},
};

use crate::messages::support::{
    Bench, event, ms, on, pool,
    source::{Script, Step},
};

/// Writes down what it is given together; rejects events called "reject", and fails
/// those called "retry" once.
#[derive(Clone, Default)]
struct Group(Arc<Mutex<Vec<Vec<String>>>>);

impl Group {
    fn given(&self) -> Vec<Vec<String>> {
        self.0.lock().unwrap().clone()
    }

    fn answer(event: &Event, attempt: &Attempt) -> HandlerResult {
        match (event.id().split('-').next(), attempt.number) {
            (Some("reject"), _) => Err(Failure::reject("no")),
            (Some("retry"), 1) => Err(Failure::retry("not yet")),
            _ => Ok(Outputs::Same),
        }
    }
}

impl HandlerFactory for Group {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for Group {
    fn handle<'a>(&'a mut self, event: &'a Event, attempt: &'a Attempt) -> Handling<'a> {
        self.0.lock().unwrap().push(vec![event.id().to_owned()]);
        Handling::Later(Box::pin(async move {
            tokio::time::sleep(ms(5)).await;
            Self::answer(event, attempt)
        }))
    }

    fn handle_all<'a>(
        &'a mut self,
        events: &'a [(&'a Event, Attempt)],
    ) -> BoxFuture<'a, Vec<HandlerResult>> {
        let ids = events.iter().map(|(event, _)| event.id().to_owned()).collect();
        self.0.lock().unwrap().push(ids);
        Box::pin(async move {
            tokio::time::sleep(ms(5)).await;
            let mut results: Vec<HandlerResult> = Vec::new();
            for (event, attempt) in events {
                let stops = results.last().is_some_and(|result| match result {
                    Err(failure) => failure.kind != FailureKind::Reject,
                    Ok(_) => false,
                });
                results.push(match stops {
                    true => Err(Failure::new(FailureKind::Released, "one before it failed")),
                    false => Self::answer(event, attempt),
                });
            }
            results
        })
    }
}

fn batched(batches: Batches) -> PoolConfig {
    PoolConfig { batches: Some(batches), max_per_key: Some(100), ..pool(1, 100) }
}

fn with(group: &Group, pool: PoolConfig, script: Script) -> Bench {
    let handler = on(&["t"], Arc::new(group.clone()));
    Bench::new()
        .set(|engine| engine.input(Box::new(script)).pool("default", pool).handler("h", handler))
}

fn of_key<'a>(ids: impl IntoIterator<Item = &'a str>, key: &str) -> Vec<Event> {
    ids.into_iter().map(|id| event(id, "t", Some(key))).collect()
}

#[tokio::test(start_paused = true)]
async fn g04_events_of_a_key_are_handled_together_in_order_up_to_a_count() {
    let group = Group::default();
    let script = Script::of(of_key(["a", "b", "c", "d", "e", "f", "g"], "x"));
    let bench = with(&group, batched(Batches::of(3)), script);
    let sink = bench.sink.clone();
    let report = bench.run().await;
    assert_eq!(report.handled, 7);
    let given = group.given();
    assert!(given.iter().all(|batch| batch.len() <= 3) && given.len() < 7, "{given:?}");
    assert_eq!(given.concat(), ["a", "b", "c", "d", "e", "f", "g"]);
    assert_eq!(sink.ids(), given.concat());
}

#[tokio::test(start_paused = true)]
async fn g04_each_event_of_a_batch_is_settled_by_itself_and_a_retry_keeps_the_order() {
    let group = Group::default();
    let ids = ["hold", "a", "reject", "retry", "b"];
    let bench = with(&group, batched(Batches::of(10)), Script::of(of_key(ids, "x")));
    let (sink, letters) = (bench.sink.clone(), bench.letters.clone());
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered, report.refused), (4, 1, 0));
    assert_eq!(letters.stored()[0].event.as_ref().map(Event::id), Some("reject"));
    assert_eq!(sink.ids(), ["hold", "a", "retry", "b"]);
    let attempts: Vec<u32> = sink.stored().iter().map(|stored| stored.attempt).collect();
    assert_eq!(attempts, [1, 1, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn g04_a_batch_is_full_by_its_bytes() {
    let group = Group::default();
    let large = |id: &str| {
        let data = "x".repeat(10_000);
        Event::builder(id.to_owned(), "/test", "t").subject("x").data_json(&data).build().unwrap()
    };
    let events: Vec<Event> = ["a", "b", "c", "d", "e", "f"].map(large).into();
    let config = PoolConfig { batch_bytes: Some(20_000), ..batched(Batches::of(100)) };
    let report = with(&group, config, Script::of(events)).run().await;
    assert_eq!(report.handled, 6);
    let given = group.given();
    assert!(given.iter().all(|batch| batch.len() <= 2), "{given:?}");
    assert!(given.iter().any(|batch| batch.len() == 2), "{given:?}");
    assert_eq!(given.concat(), ["a", "b", "c", "d", "e", "f"]);
}

#[tokio::test(start_paused = true)]
async fn g04_a_batch_that_is_not_full_waits_for_its_time() {
    let group = Group::default();
    let one = |id: &str| Step::Batch(vec![Ok(event(id, "t", Some("x")))]);
    let script = Script::new(
        "script",
        [one("a"), Step::Wait(ms(50)), one("b"), Step::Wait(ms(500)), one("c")],
    );
    let config = batched(Batches::of(100).within(ms(200)));
    assert_eq!(with(&group, config, script).run().await.handled, 3);
    assert_eq!(group.given(), [vec!["a", "b"], vec!["c"]]);
}

#[tokio::test(start_paused = true)]
async fn g04_batches_are_of_one_key_each_and_keys_do_not_wait_for_one_another() {
    let group = Group::default();
    let mut events = Vec::new();
    for n in 0..6 {
        events.extend(of_key([&*format!("x-{n}")], "x"));
        events.extend(of_key([&*format!("y-{n}")], "y"));
    }
    let config = PoolConfig { workers: 2, ..batched(Batches::of(10).within(ms(100))) };
    assert_eq!(with(&group, config, Script::of(events)).run().await.handled, 12);
    for batch in group.given() {
        let keys: Vec<&str> = batch.iter().filter_map(|id| id.split('-').next()).collect();
        assert!(keys.iter().all(|key| *key == keys[0]), "{batch:?}");
    }
    for key in ["x", "y"] {
        let of_key: Vec<String> =
            group.given().concat().into_iter().filter(|id| id.starts_with(key)).collect();
        assert_eq!(of_key, (0..6).map(|n| format!("{key}-{n}")).collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn g04_events_without_a_key_are_taken_together_as_they_wait() {
    let group = Group::default();
    let script = Script::of((0..9).map(|n| event(n, "t", None)));
    let mut handler = on(&["t"], Arc::new(group.clone()));
    handler.order_by = None;
    let config =
        PoolConfig { engine: greenroom::event_pool::Engine::Shared, ..batched(Batches::of(4)) };
    let bench = Bench::new()
        .set(|engine| engine.input(Box::new(script)).pool("default", config).handler("h", handler));
    assert_eq!(bench.run().await.handled, 9);
    let given = group.given();
    assert!(given.len() < 9 && given.iter().all(|batch| batch.len() <= 4), "{given:?}");
}

#[tokio::test(start_paused = true)]
async fn g04_batches_go_through_layers() {
    let (group, metrics) = (Group::default(), Metrics::default());
    let layers = Layers::new().layer(metrics.clone());
    let script = Script::of(of_key(["hold", "a", "b", "retry", "c"], "x"));
    let bench = with(&group, batched(Batches::of(10)), script).set(|engine| engine.layers(&layers));
    let sink = bench.sink.clone();
    assert_eq!(bench.run().await.handled, 5);
    assert!(group.given().iter().any(|batch| batch.len() > 1), "{:?}", group.given());
    let seen = metrics.snapshot();
    assert_eq!((seen.handled, seen.failed, seen.released), (5, 1, 1));
    assert_eq!(sink.ids(), ["hold", "a", "b", "retry", "c"]);
}
