//! Where events go: to the most specific handler, or as `no_handler` says (R03, R08).

use greenroom_bus::{
    dead_letter::Reason,
    engine::{BuildError, Engine, HandlerConfig, NoHandler, PoolConfig},
    event::Event,
    handler::Failure,
    router::{Matcher, Router, RouterError},
};

use crate::engine::support::{
    Bench, checked, event,
    handlers::{answer, pass, slow},
    ms, on, pool,
    source::{Script, Step},
};

fn bench(no_handler: NoHandler) -> Bench {
    let events = ["order.created", "order.paid", "price", "unknown"].map(|ty| event(ty, ty, None));
    Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(events))).no_handler(no_handler);
        let engine = engine.handler("orders", on(&["order.*"], pass()));
        engine.handler("created", on(&["order.created", "price"], pass()))
    })
}

#[tokio::test(start_paused = true)]
async fn r08_an_event_without_a_handler_ends_as_the_option_says() {
    let dead = bench(NoHandler::DeadLetter);
    let letters = dead.letters.clone();
    let report = dead.run().await;
    assert_eq!((report.handled, report.dead_lettered), (3, 1));
    let letter = &letters.stored()[0];
    assert_eq!((letter.reason, &letter.pool), (Reason::NoHandler, &None));
    assert_eq!(letter.event.as_ref().unwrap().ty(), "unknown");
    let report = bench(NoHandler::Ignore).run().await;
    assert_eq!((report.handled, report.ignored, report.refused), (3, 1, 0));
    let report = bench(NoHandler::Refuse).run().await;
    assert_eq!((report.handled, report.ignored, report.refused), (3, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn an_event_without_its_key_is_a_dead_letter_only_where_one_is_required() {
    for required in [false, true] {
        let mut handler = on(&["t"], pass());
        handler.key_required = required;
        let bench = Bench::new().set(|engine| {
            engine.input(Box::new(Script::of([event(1, "t", None)]))).handler("h", handler)
        });
        let report = bench.run().await;
        assert_eq!(report.handled, u64::from(!required));
        assert_eq!(report.pools[0].dead_lettered, u64::from(required));
    }
}

#[tokio::test(start_paused = true)]
async fn r01_names_that_clash_or_are_missing_are_errors() {
    let bench = || Bench::new().engine.input(Box::new(Script::of([])));
    let why = |built: Result<Engine, BuildError>| match built {
        Err(BuildError::Router(why)) => why,
        other => panic!("{:?}", other.err()),
    };
    let same = bench().handler("a", on(&["t"], pass())).handler("b", on(&["t"], pass()));
    assert!(matches!(why(same.build().await), RouterError::HandlerExists { .. }));
    let mut lost = on(&["t"], pass());
    lost.pool = "nowhere".to_owned();
    let lost = bench().handler("a", lost).build().await;
    assert!(matches!(why(lost), RouterError::PoolNotFound { .. }));
    for name in ["p", "default"] {
        let twice = bench().pool(name, pool(2, 5)).pool(name, pool(2, 5)).build().await;
        assert_eq!(why(twice), RouterError::PoolExists(name.to_owned()));
    }
    let unnamed = bench().pool("", pool(2, 5)).build().await;
    assert_eq!(why(unnamed), RouterError::PoolNameEmpty);
    let nothing = bench().handler("a", on(&[], pass())).build().await;
    assert_eq!(why(nothing), RouterError::HandlerForNothing("a".to_owned()));
    assert!(matches!(Engine::builder().build().await, Err(BuildError::NoInput)));
}

#[tokio::test(start_paused = true)]
async fn g07_pools_and_handlers_can_be_added_to_the_engine_with_an_error_at_once() {
    let mut engine = Bench::new().engine.buffer(77).input(Box::new(Script::of([])));
    engine.add_pool("erp", PoolConfig { workers: 5, ..*engine.pool_config() }).unwrap();
    engine.add_handler("a", on(&["a"], pass())).unwrap();
    engine.add_handler_to_pool("b", on(&["b"], pass()), "erp").unwrap();
    let exists = RouterError::PoolExists("erp".to_owned());
    assert_eq!(engine.add_pool("erp", pool(1, 1)), Err(exists));
    let lost = engine.add_handler_to_pool("c", on(&["c"], pass()), "nowhere");
    assert!(matches!(lost, Err(RouterError::PoolNotFound { .. })));
    let engine = engine.build().await.unwrap();
    let control = engine.control();
    let queues: Vec<_> =
        control.pools().iter().map(|pool| (pool.name(), pool.config().queue)).collect();
    assert_eq!(queues, [("default", 77), ("erp", 77)], "the engine's buffer is inherited");
    assert_eq!(&*control.handler("b").unwrap().pool(), "erp");
    assert!(checked(engine.run().await).is_clean());
}

#[tokio::test(start_paused = true)]
async fn r01_a_pool_overrides_the_router_which_overrides_the_buffer_of_the_engine() {
    let with_router = |buffer_first: bool| async move {
        let config = PoolConfig { workers: 3, queue: 200, ..PoolConfig::default() };
        let mut router = Router::new(config);
        router.add_pool("own", PoolConfig { queue: 300, ..*router.pool_config() }).unwrap();
        let engine = Bench::new().engine.input(Box::new(Script::of([])));
        let engine = match buffer_first {
            true => engine.buffer(100).router(router),
            false => engine.router(router).buffer(100),
        };
        let engine = engine.build().await.unwrap();
        let of = |name: &str| engine.control().pool(name).unwrap().config();
        assert_eq!((of("default").queue, of("default").workers), (200, 3));
        assert_eq!((of("own").queue, of("own").workers), (300, 3));
        engine
    };
    let plain = Bench::new().engine.input(Box::new(Script::of([]))).build().await.unwrap();
    let default = plain.control().pool("default").unwrap().config();
    assert_eq!((default.workers, default.queue), (1, 1_000));
    for engine in [with_router(true).await, with_router(false).await, plain] {
        engine.control().drain();
        engine.run().await;
    }
}

/// Events `1` to `6` of one type, of two sources in turn.
fn from_two_sources() -> Vec<Event> {
    let event = |n: u32| {
        let source = if n.is_multiple_of(2) { "/eu/shop" } else { "/us/shop" };
        Event::builder(n.to_string(), source, "order").build().unwrap()
    };
    (1..=6).map(event).collect()
}

#[tokio::test(start_paused = true)]
async fn r08_an_event_that_every_matcher_refuses_ends_as_the_option_says() {
    let bench = |option| {
        let matcher = Matcher::any().source("/eu/*".parse().unwrap());
        Bench::new().set(|engine| {
            let engine = engine.input(Box::new(Script::of(from_two_sources())));
            let engine = engine.handler_rejected(option).no_handler(NoHandler::Refuse);
            engine.handler("eu", HandlerConfig { matcher, ..on(&["order"], pass()) })
        })
    };
    let dead = bench(NoHandler::DeadLetter);
    let (letters, sink) = (dead.letters.clone(), dead.sink.clone());
    let report = dead.run().await;
    assert_eq!((report.handled, report.dead_lettered), (3, 3));
    assert_eq!(sink.ids(), ["2", "4", "6"]);
    assert!(letters.stored().iter().all(|letter| letter.reason == Reason::HandlerRejected));
    let report = bench(NoHandler::Ignore).run().await;
    assert_eq!((report.handled, report.ignored), (3, 3));
    let report = bench(NoHandler::Refuse).run().await;
    assert_eq!((report.handled, report.refused), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn r03_a_matcher_that_panics_makes_a_dead_letter_and_the_source_goes_on() {
    let matcher = Matcher::any().when(|event| {
        assert_ne!(event.id(), "3", "no threes");
        true
    });
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(from_two_sources())));
        engine.handler("all", HandlerConfig { matcher, ..on(&["order"], pass()) })
    });
    let letters = bench.letters.clone();
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered), (5, 1));
    let letter = &letters.stored()[0];
    assert_eq!((letter.reason, letter.attempts), (Reason::Rejected, 0));
    assert!(letter.error.contains("the matcher of the handler \"all\" panicked"), "{letter:?}");
    assert!(letter.error.contains("no threes"), "{letter:?}");
}

/// A main handler, one beside it for everything, and one beside it that rejects.
fn fanned(one_pool: bool) -> Bench {
    let rejects = answer(|_, _| Err(Failure::reject("not mine")));
    let beside = |handler: HandlerConfig, pool: &str| HandlerConfig {
        fan_out: true,
        pool: if one_pool { "default".to_owned() } else { pool.to_owned() },
        ..handler
    };
    Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(from_two_sources())));
        let engine = engine.pool("audit", pool(2, 10)).pool("picky", pool(2, 10));
        let engine = engine.handler("main", on(&["order"], pass()));
        let engine = engine.handler("audit", beside(on(&["**"], slow(ms(100))), "audit"));
        let matcher = Matcher::any().source("/eu/*".parse().unwrap());
        let picky = HandlerConfig { matcher, ..on(&["order"], rejects) };
        engine.handler("picky", beside(picky, "picky"))
    })
}

#[tokio::test(start_paused = true)]
async fn r03_handlers_marked_fan_out_get_the_event_as_well_each_with_an_outcome_of_its_own() {
    for one_pool in [true, false] {
        let bench = fanned(one_pool);
        let (sink, letters) = (bench.sink.clone(), bench.letters.clone());
        let report = bench.run().await;
        // Each event once, whatever the number of its handlers.
        assert_eq!((report.taken, report.handled, report.dead_lettered), (6, 3, 3));
        assert_eq!(sink.ids().len(), 12, "main and audit pass every event on");
        assert_eq!(letters.stored().len(), 3);
        assert!(letters.stored().iter().all(|letter| letter.error == "not mine"));
    }
}

#[tokio::test(start_paused = true)]
async fn r03_the_settlement_waits_for_all_of_them() {
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(from_two_sources()).then(Step::Never)));
        let engine = engine.pool("default", pool(1, 10)).pool("stuck", pool(6, 10));
        let engine = engine.handler("main", on(&["order"], pass()));
        let mut beside = on(&["order"], slow(ms(1_000)));
        (beside.fan_out, beside.pool) = (true, "stuck".to_owned());
        engine.handler("beside", beside)
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(900)).await;
    assert_eq!((bench.sink.ids().len(), control.progress().settled), (6, 0));
    tokio::time::sleep(ms(200)).await;
    assert_eq!((bench.sink.ids().len(), control.progress().settled), (12, 6));
    control.drain();
    assert_eq!(checked(run.await.unwrap()).handled, 6);
}

#[tokio::test(start_paused = true)]
async fn r03_an_event_that_one_of_its_handlers_panics_on_is_settled_once() {
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(from_two_sources())));
        let engine = engine.handler("main", on(&["order"], pass()));
        let panics = answer(|event, _| panic!("on {}", event.id()));
        let mut beside = on(&["order"], panics);
        (beside.fan_out, beside.pool) = (true, "beside".to_owned());
        engine.pool("beside", pool(1, 10)).handler("beside", beside)
    });
    let sink = bench.sink.clone();
    let report = bench.run().await;
    assert_eq!((report.taken, report.dead_lettered, report.refused), (6, 6, 0));
    assert_eq!(sink.ids().len(), 6, "the main handler has passed each on");
}

#[tokio::test(start_paused = true)]
async fn r03_a_key_keeps_its_order_in_each_handler_that_an_event_goes_to() {
    let events = (0..60).map(|n| event(n, "order", Some(["a", "b"][n % 2])));
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(events.collect::<Vec<_>>())));
        let engine = engine.pool("default", pool(8, 100)).pool("other", pool(8, 100));
        let jitter = |n: u64| slow(ms(n));
        let engine = engine.handler("main", on(&["order"], jitter(3)));
        let mut beside = on(&["order"], jitter(7));
        (beside.fan_out, beside.pool) = (true, "other".to_owned());
        engine.handler("beside", beside)
    });
    let report = bench.run().await;
    assert_eq!((report.handled, report.out_of_order), (60, 0));
}
