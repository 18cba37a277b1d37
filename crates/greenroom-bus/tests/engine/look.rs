//! What an operator sees of a running engine, and decides about parked keys.

use std::time::Duration;

use greenroom::{DeadLetterReason, FinalAction, keys::KeyState};
use greenroom_bus::{
    dead_letter::Reason,
    engine::{
        AttemptsSnapshot, Control, Decision, HandlerConfig, KeyView, OutageCause, PoolConfig,
        RunReport,
    },
    event::Event,
    handler::{Failure, FailureKind, Outputs},
};
use tokio::task::JoinHandle;

use crate::engine::support::{
    Bench, checked, event,
    handlers::{answer, handle, never, pass},
    ms, on, pool,
    source::{Script, Step},
};

/// So many events of one key.
fn of_key(ty: &str, key: &str, count: usize) -> Vec<Event> {
    (0..count).map(|n| event(format!("{key}-{n}"), ty, Some(key))).collect()
}

/// Runs it with these events, and lets a second pass.
async fn started(bench: Bench, events: Vec<Event>) -> (Control, JoinHandle<RunReport>) {
    let source = Script::of(events).then(Step::Never);
    let bench = bench.set(|engine| engine.input(Box::new(source)));
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(1_000)).await;
    (control, run)
}

async fn stopped(control: &Control, run: JoinHandle<RunReport>) -> RunReport {
    control.stop_now();
    checked(run.await.unwrap())
}

fn only(views: Vec<KeyView>) -> KeyView {
    assert_eq!(views.len(), 1, "{views:?}");
    views.into_iter().next().unwrap()
}

#[tokio::test(start_paused = true)]
async fn c13_why_tells_of_a_key_in_hand_how_long_and_how_many_wait_behind_it() {
    let bench = Bench::new()
        .set(|engine| engine.pool("default", pool(2, 100)).handler("h", on(&["t"], never())));
    let (control, run) = started(bench, of_key("t", "a", 5)).await;
    let view = only(control.why("a"));
    assert_eq!((&*view.handler, &*view.pool, &*view.input), ("h", "default", "script"));
    assert_eq!((view.unsettled, view.attempts), (5, 3));
    let why = view.why.unwrap();
    assert_eq!((why.waiting, why.attempt, why.last_error), (4, 1, None));
    let KeyState::Running { since, .. } = why.state else { panic!("{:?}", why.state) };
    assert!((ms(900)..=ms(1_010)).contains(&since), "{since:?}");
    assert!(control.why("b").is_empty(), "nobody knows it");
    stopped(&control, run).await;
}

#[tokio::test(start_paused = true)]
async fn f06_events_without_a_key_are_counted_where_they_meet_an_order_and_told_in_the_report() {
    let without = |ty: &str, count: usize| (0..count).map(|n| event(n, ty, None)).collect();
    let events: Vec<Vec<Event>> = vec![of_key("t", "a", 5), without("t", 3), without("u", 2)];
    let unordered = HandlerConfig { order_by: None, ..on(&["u"], pass()) };
    let bench = Bench::new()
        .set(|engine| engine.handler("h", on(&["t"], pass())).handler("any", unordered));
    let (control, run) = started(bench, events.concat()).await;
    let counted = control.handler_views().into_iter().map(|view| (view.name, view.without_key));
    assert!(counted.eq([("h".to_owned(), 3), ("any".to_owned(), 0)]));
    let report = stopped(&control, run).await;
    let told = "3 events had no key at the handler `h` (order_by: subject): no order was kept \
                among them";
    assert_eq!((report.handled, report.warnings), (10, vec![told.to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn c13_why_tells_of_a_retry_when_it_comes_and_what_the_last_attempt_failed_of() {
    let failing = HandlerConfig {
        retry: Some(greenroom_bus::engine::Retry {
            attempts: 4,
            backoff: greenroom::Backoff::new(ms(60_000), ms(60_000)),
            total: None,
        }),
        ..on(&["t"], answer(|_, _| Err(Failure::retry("503 after 12 ms"))))
    };
    let bench = Bench::new().set(|engine| engine.handler("h", failing));
    let (control, run) = started(bench, of_key("t", "a", 3)).await;
    let view = only(control.why("a"));
    let why = view.why.unwrap();
    assert_eq!((view.attempts, why.attempt, why.waiting), (4, 1, 2));
    assert_eq!(why.last_error.as_deref(), Some("503 after 12 ms"));
    let KeyState::Retrying { since, next, .. } = why.state else { panic!("{:?}", why.state) };
    assert!((ms(900)..=ms(1_010)).contains(&since), "{since:?}");
    assert!(next > ms(20_000) && next <= ms(59_100), "{next:?}");
    stopped(&control, run).await;
}

#[tokio::test(start_paused = true)]
async fn c13_why_has_a_row_for_each_handler_that_orders_by_the_key_and_none_once_all_is_settled() {
    let beside = HandlerConfig { fan_out: true, ..on(&["**"], never()) };
    let unordered = HandlerConfig { order_by: None, fan_out: true, ..on(&["**"], never()) };
    let bench = Bench::new().set(|engine| {
        engine
            .pool("default", pool(8, 100))
            .handler("quick", on(&["t", "only"], pass()))
            .handler("beside", beside)
            .handler("unordered", unordered)
    });
    let (control, run) = started(bench, of_key("t", "a", 2)).await;
    let view = only(control.why("a"));
    assert_eq!(view.handler, "beside", "`quick` is done, and `unordered` has no keys");
    stopped(&control, run).await;
    assert!(control.why("a").is_empty(), "what was refused is settled");
}

#[tokio::test(start_paused = true)]
async fn c13_an_event_that_waits_beside_its_pool_is_told_as_unsettled() {
    let stuck = HandlerConfig { order_by: None, ..on(&["stuck"], never()) };
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 1)).handler("stuck", stuck).handler("h", on(&["t"], pass()))
    });
    let events = (0..2).map(|n| event(n, "stuck", None)).chain(of_key("t", "a", 3)).collect();
    let (control, run) = started(bench, events).await;
    let view = only(control.why("a"));
    assert_eq!((view.unsettled, view.why.is_none()), (3, true), "{view:?}");
    stopped(&control, run).await;
}

/// Two keys whose first events are parked, with two events behind each; `mended` events pass.
async fn parked(bench: Bench) -> (Control, JoinHandle<RunReport>) {
    let handler = answer(|event, attempt| match event.id() {
        "a-0" | "b-0" if attempt == 1 => Err(Failure::new(FailureKind::Park, "by hand, please")),
        _ => Ok(Outputs::Same),
    });
    let config = PoolConfig { on_final_failure: FinalAction::ParkKey, ..pool(2, 100) };
    let bench =
        bench.set(|engine| engine.pool("default", config).handler("h", on(&["t"], handler)));
    let events = [of_key("t", "a", 3), of_key("t", "b", 3), of_key("t", "c", 3)].concat();
    started(bench, events).await
}

#[tokio::test(start_paused = true)]
async fn k08_parked_keys_are_listed_with_their_error_and_what_waits_behind() {
    let bench = Bench::new();
    let sink = bench.sink.clone();
    let (control, run) = parked(bench).await;
    let parked = control.parked();
    let mut keys: Vec<_> = parked.iter().map(|parked| &*parked.key).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["a", "b"]);
    for parked in &parked {
        assert_eq!((&*parked.handler, &*parked.pool, &*parked.input), ("h", "default", "script"));
        assert_eq!((parked.waiting, parked.error.as_deref()), (2, Some("by hand, please")));
        assert!((ms(900)..=ms(1_010)).contains(&parked.since), "{parked:?}");
    }
    let why = only(control.why("a")).why.unwrap();
    assert!(
        matches!(why.state, KeyState::Parked { reason: DeadLetterReason::Failed, .. }),
        "{why}"
    );
    assert_eq!(control.pool_views()[0].keys.as_ref().unwrap().parked, 2);
    assert_eq!(sink.ids(), ["c-0", "c-1", "c-2"], "another key goes on");
    assert_eq!(stopped(&control, run).await.refused, 6);
}

#[tokio::test(start_paused = true)]
async fn k08_a_parked_key_is_resumed_skipped_or_dropped_as_an_operator_decides() {
    for (decision, letters, handled) in [
        (Decision::Resume, 0, vec!["a-0", "a-1", "a-2"]),
        (Decision::Skip, 1, vec!["a-1", "a-2"]),
        (Decision::Drop, 3, vec![]),
    ] {
        let bench = Bench::new();
        let (sink, stored) = (bench.sink.clone(), bench.letters.clone());
        let (control, run) = parked(bench).await;
        assert!(control.decide("a", Some("other"), decision).is_empty(), "not this handler");
        assert!(control.decide("c", None, decision).is_empty(), "it is not parked");
        let decided = control.decide("a", Some("h"), decision);
        assert_eq!(decided.len(), 1);
        assert_eq!((&*decided[0].handler, decided[0].dead_letters), ("h", letters));
        tokio::time::sleep(ms(1_000)).await;
        let of_a: Vec<_> = sink.ids().into_iter().filter(|id| id.starts_with('a')).collect();
        assert_eq!(of_a, handled, "{decision:?}");
        let stored = stored.stored();
        assert_eq!(stored.len(), letters, "{decision:?}");
        if decision == Decision::Drop {
            assert!(stored.iter().all(|letter| letter.reason == Reason::Dropped));
            assert!(stored[0].error.contains("by hand, please"), "{}", stored[0].error);
        }
        assert!(control.decide("a", None, decision).is_empty(), "once is enough");
        assert_eq!(control.parked().len(), 1, "the other key waits on");
        stopped(&control, run).await;
    }
}

#[tokio::test(start_paused = true)]
async fn o16_the_event_that_parks_a_key_is_shown_and_a_decision_is_about_that_one() {
    let handler = answer(|event, _| match event.id() {
        "a-0" => Err(Failure::new(FailureKind::Park, "first")),
        "a-1" => panic!("second"),
        _ => Ok(Outputs::Same),
    });
    let config = PoolConfig { on_final_failure: FinalAction::ParkKey, ..pool(2, 100) };
    let bench =
        Bench::new().set(|engine| engine.pool("default", config).handler("h", on(&["t"], handler)));
    let (sink, stored) = (bench.sink.clone(), bench.letters.clone());
    let (control, run) = started(bench, of_key("t", "a", 3)).await;
    let shown = || {
        let parked = control.parked();
        let of_list = parked[0].event.clone().unwrap();
        let of_key = only(control.why("a")).parked_for.unwrap();
        assert_eq!(of_list.event.id(), of_key.event.id());
        of_key
    };
    assert_eq!((shown().event.id(), shown().attempts), ("a-0", 1));
    let about = |event, decision| control.decide_about("a", Some("h"), event, decision);
    let other = about("a-1", Decision::Skip).unwrap_err();
    assert_eq!(other.event, "a-0", "nobody has looked at that one");
    assert_eq!(about("a-0", Decision::Skip).unwrap().len(), 1);
    assert!(about("a-0", Decision::Skip).unwrap().is_empty(), "it is in hand, and not parked");
    // Its panic parks the key as well, after a few attempts.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(shown().event.id(), "a-1");
    for decision in [Decision::Resume, Decision::Skip, Decision::Drop] {
        assert_eq!(about("a-0", decision).unwrap_err().event, "a-1", "two clicked, one saw this");
    }
    assert_eq!(stored.stored().len(), 1);
    assert_eq!(about("a-1", Decision::Skip).unwrap().len(), 1);
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!((sink.ids(), stored.stored().len()), (vec!["a-2".to_owned()], 2));
    assert!(control.why("a").is_empty(), "it is done");
    stopped(&control, run).await;
}

#[tokio::test(start_paused = true)]
async fn o16_a_worker_whose_handler_waits_shows_its_event() {
    let handler = handle(|event, _| async move {
        match event.id() {
            "a-0" => Ok(Outputs::None),
            _ => std::future::pending().await,
        }
    });
    let bench = Bench::new()
        .set(|engine| engine.pool("default", pool(1, 100)).handler("h", on(&["t"], handler)));
    let (control, run) = started(bench, of_key("t", "a", 3)).await;
    let workers = control.pool("default").unwrap().workers();
    assert_eq!(workers[0].event.as_ref().unwrap().id(), "a-1");
    let attempts = control.handler("h").unwrap().attempts();
    assert_eq!((attempts.succeeded, attempts.failed), (1, 0));
    stopped(&control, run).await;
}

#[tokio::test(start_paused = true)]
async fn o03_attempts_of_each_handler_are_counted_and_measured() {
    let slow = handle(|_, attempt| async move {
        tokio::time::sleep(ms(40)).await;
        match attempt {
            1 => Err(Failure::retry("not yet")),
            _ => Ok(Outputs::None),
        }
    });
    let bench = Bench::new().set(|engine| {
        engine
            .pool("default", pool(4, 100))
            .handler("slow", on(&["slow"], slow))
            .handler("quick", on(&["quick"], pass()))
    });
    let events = [of_key("slow", "a", 3), of_key("quick", "b", 64)].concat();
    let (control, run) = started(bench, events).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let of = |name| control.handler(name).unwrap().attempts();
    let (slow, quick) = (of("slow"), of("quick"));
    assert_eq!((slow.succeeded, slow.failed), (3, 3));
    assert_eq!((quick.succeeded, quick.failed), (64, 0));
    assert!((4..=64).contains(&quick.times().count()), "no more than there were");
    let took = slow.took_since(&AttemptsSnapshot::default()).unwrap();
    assert!((ms(39)..ms(42)).contains(&took.p50), "{took:?}");
    let letter = control.told_letter();
    assert_eq!(letter, None, "nothing was given up");
    stopped(&control, run).await;
}

#[tokio::test(start_paused = true)]
async fn d08_views_tell_of_pauses_outages_and_figures() {
    let down = answer(|_, _| Err(Failure::new(FailureKind::Pause, "401")));
    let slow = handle(|_, attempt| async move {
        match attempt {
            1 => Err(Failure::retry("not yet")),
            _ => Ok(Outputs::Same),
        }
    });
    let bench = Bench::new().set(|engine| {
        engine
            .pool("default", pool(2, 100))
            .pool("other", pool(3, 7))
            .handler("down", on(&["down"], down))
            .handler("slow", HandlerConfig { pool: "other".to_owned(), ..on(&["slow"], slow) })
    });
    let events = [of_key("down", "a", 2), of_key("slow", "b", 4)].concat();
    let (control, run) = started(bench, events).await;
    let handlers = control.handler_views();
    let outage = handlers[0].outage.as_ref().unwrap();
    assert_eq!((&*outage.error, outage.cause), ("401", OutageCause::Refused));
    assert!((ms(900)..=ms(1_010)).contains(&outage.lasted), "{outage:?}");
    assert_eq!((&*handlers[1].pool, &handlers[1].outage), ("other", &None));
    assert_eq!(handlers[1].order_by.as_ref().unwrap().to_string(), "subject");
    let pools = control.pool_views();
    assert_eq!((&*pools[1].name, pools[1].config.queue, pools[1].stats.handled), ("other", 7, 4));
    assert_eq!((pools[1].failed_attempts, pools[1].further_attempts), (4, 4));
    assert!(!pools[1].paused && !handlers[1].paused && control.failures().is_empty());
    control.pool("other").unwrap().pause();
    control.handler("slow").unwrap().pause();
    assert!(control.pool_views()[1].paused && control.handler_views()[1].paused);
    stopped(&control, run).await;
}

#[tokio::test(start_paused = true)]
async fn k11_the_hottest_keys_come_first_and_no_more_than_asked_for() {
    let bench = Bench::new()
        .set(|engine| engine.pool("default", pool(4, 20_000)).handler("h", on(&["t"], pass())));
    let hot = |n: usize| if n.is_multiple_of(2) { "hot".to_owned() } else { (n % 97).to_string() };
    let events = (0..20_000).map(|n| event(n, "t", Some(&hot(n)))).collect();
    let (control, run) = started(bench, events).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let hottest = control.hottest(3);
    assert!((1..=3).contains(&hottest.len()), "{hottest:?}");
    assert_eq!((&*hottest[0].key, &*hottest[0].handler), ("hot", "h"));
    assert!(hottest.windows(2).all(|pair| pair[0].events >= pair[1].events), "{hottest:?}");
    stopped(&control, run).await;
}
