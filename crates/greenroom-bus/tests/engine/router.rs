//! A router without an engine (R01, R03, R08).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use greenroom_bus::{
    dead_letter::Reason,
    engine::{HandlerConfig, OnFull, PoolConfig},
    handler::{Failure, Outputs},
    router::{Matcher, NotDispatched, Route, Router, RouterError},
};

use crate::engine::support::{
    event,
    handlers::{answer, handle, never, pass, slow},
    ms, on, pool,
};

const SOON: Duration = Duration::from_secs(5);

fn router() -> Router {
    Router::new(pool(4, 100))
}

#[test]
fn r01_the_pool_default_always_exists() {
    let mut router = router();
    assert_eq!(router.pools().collect::<Vec<_>>(), ["default"]);
    let exists = |name: &str| Err(RouterError::PoolExists(name.to_owned()));
    assert_eq!(router.add_pool("default", pool(1, 1)), exists("default"));
    assert_eq!(router.add_pool("", pool(1, 1)), Err(RouterError::PoolNameEmpty));
    router.add_pool("erp", pool(1, 1)).unwrap();
    assert_eq!(router.add_pool("erp", pool(1, 1)), exists("erp"));
    assert!(matches!(router.remove_pool("default"), Err(RouterError::NotRemoved(_))));
}

#[test]
fn r01_a_name_or_a_type_has_one_handler_unless_it_is_marked_fan_out() {
    let mut router = router();
    router.add_handler("a", on(&["order", "price.*"], pass())).unwrap();
    let exists = |added| matches!(added, Err(RouterError::HandlerExists { .. }));
    assert!(exists(router.add_handler("a", on(&["other"], pass()))));
    assert!(exists(router.add_handler("b", on(&["order"], pass()))));
    assert!(exists(router.add_handler("b", on(&["price.*"], pass()))));
    let fan_out = HandlerConfig { fan_out: true, ..on(&["order"], pass()) };
    router.add_handler("b", fan_out).unwrap();
    router.add_handler("c", on(&["price.**", "*.changed"], pass())).unwrap();
    assert_eq!(router.handlers().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(router.route(&event(1, "order", None)), Route::Several(vec![0, 1]));
    router.remove_handler("a").unwrap();
    assert_eq!(router.route(&event(1, "order", None)), Route::One(0));
    assert_eq!(router.route(&event(1, "price.changed", None)), Route::One(1));
}

#[test]
fn r01_of_a_pattern_a_second_handler_may_get_what_the_matcher_of_the_first_leaves() {
    let mut router = router();
    let matcher = Matcher::any().subject("eu-*".parse().unwrap());
    router.add_handler("eu", HandlerConfig { matcher, ..on(&["order.*"], pass()) }).unwrap();
    router.add_handler("all", on(&["order.*"], pass())).unwrap();
    assert_eq!(router.route(&event(1, "order.paid", Some("eu-1"))), Route::One(0));
    assert_eq!(router.route(&event(1, "order.paid", Some("us-1"))), Route::One(1));
}

#[test]
fn r01_bad_handlers_and_pools_are_named_and_change_nothing() {
    let mut router = router();
    let nothing = router.add_handler("a", on(&[], pass()));
    assert_eq!(nothing, Err(RouterError::HandlerForNothing("a".to_owned())));
    assert_eq!(router.add_handler("", on(&["t"], pass())), Err(RouterError::HandlerNameEmpty));
    let lost = router.add_handler_to_pool("a", on(&["t"], pass()), "erp");
    assert!(matches!(lost, Err(RouterError::PoolNotFound { .. })));
    assert_eq!(router.handlers().len(), 0);
    router.add_pool("erp", pool(1, 1)).unwrap();
    router.add_handler_to_pool("a", on(&["t"], pass()), "erp").unwrap();
    assert!(matches!(router.remove_pool("erp"), Err(RouterError::PoolInUse { .. })));
    assert!(matches!(router.remove_handler("b"), Err(RouterError::NotRemoved(_))));
    router.remove_handler("a").unwrap();
    router.remove_pool("erp").unwrap();
}

#[tokio::test(start_paused = true)]
async fn r03_a_router_without_an_engine_answers_with_what_its_handlers_return() {
    let mut router = router();
    router.add_handler("pass", on(&["a"], pass())).unwrap();
    let two = answer(|event, _| Ok(Outputs::Events(vec![event.clone(), event])));
    router.add_handler("two", HandlerConfig { fan_out: true, ..on(&["**"], two) }).unwrap();
    let router = router.start().await.unwrap();
    let outputs = |handled: Result<greenroom_bus::router::Dispatched, _>| {
        handled.map(|handled| handled.outputs.len()).map_err(|error: NotDispatched| error)
    };
    assert_eq!(outputs(router.handle(event(1, "a", Some("k"))).await).unwrap(), 3);
    assert_eq!(outputs(router.handle(event(2, "b", None)).await).unwrap(), 2);
    let report = router.stop(SOON).await;
    assert_eq!((report.taken, report.handled), (2, 2));
    assert!(report.is_clean(), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn r08_a_router_says_what_is_not_handled_and_why() {
    let mut router = router();
    let matcher = Matcher::any().when(|event| match event.id() {
        "boom" => panic!("no"),
        id => id != "no",
    });
    let tries = Arc::new(AtomicU32::new(0));
    let seen = tries.clone();
    let fails = answer(move |_, attempt| {
        seen.store(attempt, Ordering::Relaxed);
        Err(Failure::retry("the target is away"))
    });
    router.add_handler("h", HandlerConfig { matcher, ..on(&["t"], fails) }).unwrap();
    let mut strict = on(&["strict"], pass());
    strict.key_required = true;
    router.add_handler("strict", strict).unwrap();
    let router = router.start().await.unwrap();
    let why = async |id: &str, ty: &str| router.handle(event(id, ty, None)).await.unwrap_err();
    assert!(matches!(why("1", "other").await, NotDispatched::NoHandler(ty) if ty == "other"));
    assert!(matches!(why("no", "t").await, NotDispatched::HandlerRejected(_)));
    assert!(matches!(why("boom", "t").await, NotDispatched::MatcherPanicked { .. }));
    let NotDispatched::Failed { failures, .. } = why("1", "t").await else { panic!("no failure") };
    assert_eq!((failures[0].reason, failures[0].attempts), (Reason::RetriesExhausted, 3));
    assert_eq!(failures[0].error, "the target is away");
    assert_eq!(tries.load(Ordering::Relaxed), 3);
    let NotDispatched::Failed { failures, .. } = why("1", "strict").await else {
        panic!("handled")
    };
    assert_eq!((failures[0].reason, failures[0].attempts), (Reason::KeyMissing, 0));
    router.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn r03_one_handler_that_gives_up_takes_nothing_from_what_the_others_return() {
    let mut router = router();
    router.add_handler("pass", on(&["t"], pass())).unwrap();
    let rejects = answer(|_, _| Err(Failure::reject("not mine")));
    router.add_handler("picky", HandlerConfig { fan_out: true, ..on(&["t"], rejects) }).unwrap();
    let router = router.start().await.unwrap();
    match router.handle(event(1, "t", None)).await {
        Err(NotDispatched::Failed { failures, outputs }) => {
            assert_eq!((failures.len(), outputs.len()), (1, 1));
            assert_eq!(&*failures[0].handler, "picky");
        }
        other => panic!("{other:?}"),
    }
    router.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn r05_a_router_waits_for_room_or_refuses_as_the_pool_says() {
    let mut router = Router::new(PoolConfig { on_full: OnFull::Reject, ..pool(1, 1) });
    router.add_handler("slow", on(&["t"], slow(ms(100)))).unwrap();
    let router = Arc::new(router.start().await.unwrap());
    let give = |n: u32| {
        let router = router.clone();
        tokio::spawn(async move { router.handle(event(n, "t", None)).await })
    };
    let mut given = Vec::new();
    for n in 0..4 {
        given.push(give(n));
        tokio::time::sleep(ms(1)).await;
    }
    let mut refused = 0;
    for given in given {
        match given.await.unwrap() {
            Err(NotDispatched::Refused) => refused += 1,
            handled => assert!(handled.is_ok()),
        }
    }
    assert_eq!(refused, 2, "one was in hand and one queued");
}

#[tokio::test(start_paused = true)]
async fn r03_events_of_a_key_are_handled_in_order_whatever_their_pool_has_of_workers() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let notes = seen.clone();
    let mut router = router();
    let noted = handle(move |event, _| {
        let notes = notes.clone();
        async move {
            tokio::time::sleep(ms(event.id().len() as u64)).await;
            notes.lock().unwrap().push(event.id().to_owned());
            Ok(Outputs::None)
        }
    });
    router.add_handler("h", on(&["t"], noted)).unwrap();
    let router = router.start().await.unwrap();
    let ids = ["cccc", "bb", "a"];
    let give = |id: &str| router.handle(event(id, "t", Some("k")));
    let (a, b, c) = tokio::join!(give(ids[0]), give(ids[1]), give(ids[2]));
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(*seen.lock().unwrap(), ids);
    router.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn g05_a_router_that_stops_refuses_what_is_left_at_its_deadline() {
    let mut router = router();
    router.add_handler("never", on(&["t"], never())).unwrap();
    let router = Arc::new(router.start().await.unwrap());
    let waiting = router.clone();
    let given = tokio::spawn(async move { waiting.handle(event(1, "t", None)).await });
    tokio::time::sleep(ms(10)).await;
    given.abort();
    let _ = given.await;
    let router = Arc::into_inner(router).unwrap();
    let report = router.stop(ms(200)).await;
    assert_eq!((report.taken, report.refused), (1, 1));
    assert!(report.elapsed < ms(1_300), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn d09_callers_are_told_of_failures_however_many_events_fail() {
    let mut router = router();
    router.add_handler("h", on(&["t"], answer(|_, _| Err(Failure::retry("503"))))).unwrap();
    let router = router.start().await.unwrap();
    for n in 0..50 {
        let told = tokio::time::timeout(SOON, router.handle(event(n, "t", None))).await;
        let NotDispatched::Failed { failures, .. } = told.unwrap().unwrap_err() else {
            panic!("no failure")
        };
        assert_eq!((failures[0].reason, failures[0].attempts), (Reason::RetriesExhausted, 3));
    }
    router.stop(SOON).await;
}
