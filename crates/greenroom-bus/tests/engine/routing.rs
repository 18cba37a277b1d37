//! Where events go: to the most specific handler, or as `no_handler` says (R03, R08).

use greenroom_bus::{
    dead_letter::Reason,
    engine::{BuildError, Engine, NoHandler},
};

use crate::support::{Bench, event, handlers::pass, on, source::Script};

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
    let same = bench().handler("a", on(&["t"], pass())).handler("b", on(&["t"], pass()));
    assert!(matches!(same.build().await, Err(BuildError::HandlerExists { .. })));
    let mut lost = on(&["t"], pass());
    lost.pool = "nowhere".to_owned();
    let lost = bench().handler("a", lost).build().await;
    assert!(matches!(lost, Err(BuildError::PoolNotFound { .. })));
    let twice = bench().pool("p", Default::default()).pool("p", Default::default());
    assert!(matches!(twice.build().await, Err(BuildError::PoolExists(_))));
    let unnamed = bench().pool("", Default::default()).build().await;
    assert!(matches!(unnamed, Err(BuildError::PoolNameEmpty)));
    assert!(matches!(Engine::builder().build().await, Err(BuildError::NoInput)));
}
