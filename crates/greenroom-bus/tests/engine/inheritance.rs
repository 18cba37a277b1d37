//! What a pool says for the handlers that say nothing (R06).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use greenroom::Backoff;
use greenroom_bus::{
    engine::{ChangeError, HandlerConfig, PoolConfig, Retry},
    event::{Event, OrderBy},
    handler::{Failure, HandlerFactory, Outputs},
};

use crate::engine::support::{
    Bench, checked, event,
    handlers::{answer, handle, pass},
    ms, on, pool,
    source::{Script, Step},
};

/// A handler for one type that says nothing of order and retries.
fn silent(ty: &str, factory: Arc<dyn HandlerFactory>) -> HandlerConfig {
    HandlerConfig::new(vec![ty.parse().unwrap()], factory)
}

/// The most of its events that a handler has in hand at once, all of them with one subject.
async fn at_once(of_pool: Option<OrderBy>, own: Option<OrderBy>) -> usize {
    let (now, most): (Arc<AtomicUsize>, Arc<AtomicUsize>) = Default::default();
    let seen = most.clone();
    let counts = handle(move |_, _| {
        let (now, most) = (now.clone(), most.clone());
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            tokio::time::sleep(ms(10)).await;
            now.fetch_sub(1, Ordering::Relaxed);
            Ok(Outputs::None)
        }
    });
    let events = (0..20).map(|n| {
        let event = Event::builder(n.to_string(), "test", "t").subject("one");
        event.data_json(&n).build().unwrap()
    });
    let handler = HandlerConfig { order_by: own, ..silent("t", counts) };
    let config = PoolConfig { order_by: of_pool, ..pool(4, 50) };
    let bench = Bench::new().set(|engine| {
        engine.input(Box::new(Script::of(events))).pool("default", config).handler("h", handler)
    });
    assert_eq!(bench.run().await.handled, 20);
    seen.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn r06_the_order_of_a_handler_overrides_that_of_its_pool() {
    let subject: OrderBy = "subject".parse().unwrap();
    let id: OrderBy = "id".parse().unwrap();
    assert_eq!(at_once(None, None).await, 4, "no order");
    assert_eq!(at_once(Some(subject), None).await, 1, "that of the pool");
    assert_eq!(at_once(None, Some(subject)).await, 1, "that of the handler");
    assert_eq!(at_once(Some(id), Some(subject)).await, 1, "the handler overrides the pool");
    assert_eq!(at_once(Some(subject), Some(id)).await, 4, "the handler overrides the pool");
    assert_eq!(at_once(Some(subject), Some("none".parse().unwrap())).await, 4, "none at all");
    assert_eq!(at_once(Some(OrderBy::none()), None).await, 4, "none at all");
}

/// So many attempts, one right after another.
fn attempts(attempts: u32) -> Option<Retry> {
    Some(Retry { attempts, backoff: Backoff::new(ms(1), ms(1)), total: None })
}

#[tokio::test(start_paused = true)]
async fn r06_the_retries_of_a_handler_override_those_of_its_pool() {
    for (of_pool, own, expected) in [(None, None, 5), (Some(7), None, 7), (Some(7), Some(2), 2)] {
        let never = answer(|_, _| Err(Failure::retry("no")));
        let handler = HandlerConfig { retry: own.and_then(attempts), ..silent("t", never) };
        let config = PoolConfig { retry: of_pool.and_then(attempts), ..pool(1, 5) };
        let bench = Bench::new().set(|engine| {
            let engine = engine.input(Box::new(Script::of([event("1", "t", None)])));
            engine.pool("default", config).handler("h", handler)
        });
        let letters = bench.letters.clone();
        bench.run().await;
        assert_eq!(letters.stored()[0].attempts, expected, "{of_pool:?} {own:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn r02_the_retries_of_a_pool_change_for_the_handlers_that_have_them() {
    let before = PoolConfig { retry: attempts(7), ..pool(1, 5) };
    let handlers = [("a", silent("a", pass())), ("b", on(&["b"], pass()))];
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of([]).then(Step::Wait(ms(60_000)))));
        let [(a, for_a), (b, for_b)] = handlers.clone();
        engine.pool("default", before).handler(a, for_a).handler(b, for_b)
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    let of = |name: &str| control.handler(name).unwrap().retry().attempts;
    assert_eq!((of("a"), of("b")), (7, 3));
    let after = PoolConfig { retry: attempts(9), ..before };
    let changed = control.apply(&[("default", after)], &handlers).unwrap();
    assert_eq!(changed, ["pools.default.retry", "handlers.a.retry"]);
    assert_eq!((of("a"), of("b")), (9, 3));
    assert_eq!(control.apply(&[("default", after)], &handlers), Ok(Vec::new()));
    let ordered = PoolConfig { order_by: Some("subject".parse().unwrap()), ..after };
    let refused = control.apply(&[("default", ordered)], &handlers);
    let what = "pools.default.order_by".to_owned();
    assert_eq!(refused, Err(ChangeError::AlreadyStarted { what }));
    control.drain();
    checked(run.await.unwrap());
}
