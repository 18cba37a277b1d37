//! The stage, tried on handlers that are right, and on some that are wrong (V02).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use greenroom_bus::{
    BoxFuture,
    codec::Decoders,
    dead_letter::Reason,
    engine::{HandlerConfig, NoHandler, PoolConfig, Retry},
    event::Event,
    handler::{
        Failure, HandlerFactory, HandlerResult, Outputs, pass::PassFactory, typed::TypedFactory,
    },
    router::Router,
};
use greenroom_test::{
    Stage, assert_order, assert_settled,
    stage::{AttemptEnd, StageRun},
};

fn order(n: u32) -> Event {
    let order = Event::builder(n.to_string(), "/shop", "order.placed");
    order.subject(format!("customer-{}", n % 7)).data_json(&n).build().unwrap()
}

fn orders(count: u32) -> Stage {
    Stage::new((0..count).map(order))
}

/// Handles the number of an order.
fn handler(
    handle: impl Fn(u32, Event) -> BoxFuture<'static, HandlerResult> + Send + Sync + 'static,
) -> impl HandlerFactory {
    TypedFactory::new(Decoders::json(), handle)
}

#[test]
fn v02_a_handler_is_run_on_virtual_time_and_its_results_are_there() {
    let slow = handler(|n, event| {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let made = Event::builder(format!("{n}-price"), "/prices", "price.set");
            drop(event);
            Ok(Outputs::Events(vec![made.data_json(&(n * 2)).build()?]))
        })
    });
    let run = orders(100).run_handler(slow);
    assert_settled!(run);
    assert_order!(run);
    assert_eq!((run.report().handled, run.outputs().len(), run.attempts().len()), (100, 100, 100));
    assert!(run.attempts().iter().all(|attempt| attempt.end == AttemptEnd::Handled));
    assert!(run.attempts()[99].began >= Duration::from_secs(60 * 10), "of virtual time");
}

#[test]
fn v02_chaos_disturbs_a_run_that_is_right_and_nothing_is_lost_or_out_of_order() {
    let (mut repeated, mut revoked) = (0, 0);
    for seed in 0..30 {
        let run = orders(150).chaos(seed).run_handler(PassFactory);
        assert_settled!(run);
        assert_order!(run);
        let report = run.report();
        assert!(report.retried > 0 && run.letters().is_empty(), "seed {seed}: {report:?}");
        repeated += report.repeated_at_most;
        revoked += report.revoked;
    }
    assert!(repeated > 0 && revoked > 0, "{repeated} {revoked}");
}

/// How the attempts at each event ended, by its id and their number.
fn ends(run: &StageRun) -> HashMap<(String, u32), AttemptEnd> {
    let ended = run.attempts().iter().filter(|attempt| attempt.end != AttemptEnd::Dropped);
    ended.map(|attempt| ((attempt.id.clone(), attempt.number), attempt.end)).collect()
}

#[test]
fn v02_the_same_seed_disturbs_the_same_attempts() {
    let run = |seed| ends(&orders(120).chaos(seed).run_handler(PassFactory));
    let (one, again, other) = (run(3), run(3), run(4));
    let differs = |ends: &HashMap<_, _>| {
        one.iter().any(|(attempt, end)| ends.get(attempt).is_some_and(|found| found != end))
    };
    assert!(!differs(&again) && differs(&other));
}

#[test]
fn v02_an_engine_of_ones_own_has_a_router_and_letters() {
    let mut router = Router::new(PoolConfig { workers: 4, ..PoolConfig::default() });
    let order_by = Some("subject".parse().unwrap());
    let picky = handler(|n, _| {
        Box::pin(async move {
            if n % 10 == 0 { Err(Failure::reject("no tens")) } else { Ok(Outputs::Same) }
        })
    });
    let on = vec!["order.*".parse().unwrap()];
    let config = HandlerConfig { order_by, ..HandlerConfig::new(on, Arc::new(picky)) };
    router.add_handler("orders", config).unwrap();
    let run = orders(100).chaos(1).run(|engine| engine.router(router));
    assert_settled!(run);
    assert_order!(run);
    let letters = run.letters();
    assert!(letters.len() >= 10 && letters.iter().all(|letter| letter.reason == Reason::Rejected));
}

#[test]
fn v02_a_pool_without_order_fails_the_assertion_with_the_seed() {
    let run = orders(100).chaos(42).run(|engine| {
        let pool = PoolConfig { workers: 8, ..PoolConfig::default() };
        let on = vec!["**".parse().unwrap()];
        let loose = HandlerConfig::new(on, Arc::new(PassFactory));
        engine.pool("default", pool).handler("loose", loose)
    });
    assert_settled!(run);
    let why = run.check_order().unwrap_err();
    let first = why.lines().nth(1).unwrap();
    assert!(first.contains(" of key customer-") && first.contains("`loose`"), "{why}");
    assert!(why.contains("seed 42: `.chaos(42)` repeats it") && why.contains("GREENROOM_SEED=42"));
}

#[test]
fn v02_an_event_that_is_refused_or_waits_for_ever_is_not_settled() {
    let refused = orders(5)
        .run(|engine| engine.no_handler(NoHandler::Refuse).pool("default", PoolConfig::default()));
    let why = refused.check_settled().unwrap_err();
    assert!(why.contains("was refused (no_handler)"), "{why}");
    let stuck = orders(5).run_handler(handler(|_, _| Box::pin(std::future::pending())));
    let why = stuck.check_settled().unwrap_err();
    assert!(why.starts_with("not everything was settled:\n  position 1 of partition "), "{why}");
}

#[test]
fn v02_a_handler_that_does_not_bear_repeats_is_found() {
    let sold = Arc::new(AtomicU32::new(0));
    let count = sold.clone();
    let sells = handler(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(Outputs::None) })
    });
    let run = orders(100).chaos(5).run_handler(sells);
    assert_settled!(run);
    assert!(sold.load(Ordering::Relaxed) > 100, "answers are lost, and the events come again");
}

#[test]
fn v02_retries_that_do_not_last_make_letters_under_chaos() {
    let run = orders(60).chaos(2).run(|engine| {
        let retry = Some(Retry { attempts: 1, ..Retry::default() });
        let config = HandlerConfig::new(vec!["**".parse().unwrap()], Arc::new(PassFactory));
        engine.handler("once", HandlerConfig { retry, ..config })
    });
    assert_settled!(run);
    assert!(run.letters().iter().any(|letter| letter.error.contains("chaos")));
}

#[test]
fn v03_an_audit_of_all_keys_finds_nothing_in_an_engine_under_chaos() {
    for seed in 0..5 {
        let run = orders(150).chaos(seed).run(|engine| {
            let order_by = Some("subject".parse().unwrap());
            let config = HandlerConfig::new(vec!["**".parse().unwrap()], Arc::new(PassFactory));
            let pool = PoolConfig { workers: 8, ..PoolConfig::default() };
            let config = HandlerConfig { order_by, ..config };
            engine.audit(1.0).pool("default", pool).handler("all", config)
        });
        assert_settled!(run);
        assert_eq!(run.ledger().overlapping, 0, "seed {seed}");
    }
}
