//! Shares: fairness, caps and holds for each tenant (Q01 to Q09).

mod edges;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    event_pool,
    limits::Rate,
    shares::{ShareLimits, ShareState},
};
use greenroom_bus::{
    engine::{
        HandlerConfig, InputConfig, OnFull, OutageConfig, OutagePer, PausedShare, PoolConfig, Retry,
    },
    event::{Event, OrderBy},
    handler::{Failure, FailureKind, HandlerFactory, Outputs},
    metrics::Observer,
};
use tokio::time::Instant;

use crate::engine::support::{
    Bench, checked,
    handlers::{handle, slow},
    ms, on, pool,
    source::{Script, Step},
};

/// An event of this tenant, with a key of its own.
fn of(tenant: &str, n: usize) -> Event {
    let id = format!("{tenant}-{n}");
    let event = Event::builder(id.clone(), "test", "t").subject(&id);
    event.extension("tenant", tenant).build().unwrap()
}

/// A flood of one, and then a few of another.
fn flood(many: usize, few: usize) -> Vec<Event> {
    let flood = (0..many).map(|n| of("acme", n));
    flood.chain((0..few).map(|n| of("bolt", n))).collect()
}

fn by_tenant() -> Option<OrderBy> {
    Some("tenant".parse().unwrap())
}

fn shared(workers: usize) -> PoolConfig {
    PoolConfig { share_by: by_tenant(), ..pool(workers, 10_000) }
}

/// When each event was handled, since the start.
type Ends = Arc<Mutex<HashMap<String, Duration>>>;

/// When the last of these was handled.
fn last(ends: &Ends, of: &str) -> Duration {
    let ends = ends.lock().unwrap();
    ends.iter().filter(|(id, _)| id.starts_with(of)).map(|(_, at)| *at).max().unwrap()
}

/// Notes when each attempt ended.
fn noting(ends: &Ends, took: Duration) -> Arc<dyn HandlerFactory> {
    let (ends, began) = (ends.clone(), Instant::now());
    handle(move |event, _| {
        let ends = ends.clone();
        async move {
            tokio::time::sleep(took).await;
            ends.lock().unwrap().insert(event.id().to_owned(), began.elapsed());
            Ok(Outputs::Same)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn q01_q02_a_flood_of_one_share_delays_no_other() {
    for (engine, order_by) in [
        (event_pool::Engine::Keyed, Some("subject")),
        (event_pool::Engine::Keyed, None),
        (event_pool::Engine::Shared, None),
    ] {
        let ends = Ends::default();
        let factory = noting(&ends, ms(10));
        let bench = Bench::new().set(|builder| {
            let order_by = order_by.map(|by| by.parse().unwrap());
            let handler = HandlerConfig { order_by, ..on(&["t"], factory) };
            builder
                .input(Box::new(Script::of(flood(2_000, 20))))
                .pool("default", PoolConfig { engine, ..shared(4) })
                .handler("h", handler)
        });
        assert_eq!(bench.run().await.handled, 2_020);
        let last = last(&ends, "bolt");
        // Half of four workers: 20 events of 10 ms in 100 ms, and what was in hand.
        assert!(last <= ms(160), "{engine:?} {order_by:?}: {last:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn q01_two_handlers_of_a_pool_may_name_their_shares_differently() {
    let ends = Ends::default();
    let events: Vec<_> = (0..600)
        .map(|n| match n < 500 {
            true => of("acme", n),
            false => {
                let event = Event::builder(format!("u-{n}"), "test", "u").subject("bolt");
                event.build().unwrap()
            }
        })
        .collect();
    let (one, other) = (noting(&ends, ms(10)), noting(&ends, ms(10)));
    let bench = Bench::new().set(|builder| {
        let unordered =
            |types: &[&str], factory| HandlerConfig { order_by: None, ..on(types, factory) };
        let other = HandlerConfig {
            share_by: Some("subject".parse().unwrap()),
            ..unordered(&["u"], other)
        };
        builder
            .input(Box::new(Script::of(events)))
            .pool("default", shared(2))
            .handler("one", unordered(&["t"], one))
            .handler("other", other)
    });
    assert_eq!(bench.run().await.handled, 600);
    // One of two workers: 100 events of 10 ms in a second.
    assert!(last(&ends, "u-") <= ms(1_050));
}

#[tokio::test(start_paused = true)]
async fn q04_caps_of_a_share_hold_and_leave_the_others_alone() {
    let ends = Ends::default();
    let factory = noting(&ends, ms(10));
    let bench = Bench::new().set(|builder| {
        let slow = ShareLimits::default().rate(Rate::per_second(100));
        builder
            .input(Box::new(Script::of(flood(200, 50))))
            .pool(
                "default",
                PoolConfig { share_limits: ShareLimits::default().in_hand(2), ..shared(8) },
            )
            .share("default", "acme", slow)
            .handler("h", on(&["t"], factory))
    });
    let report = bench.run().await;
    assert_eq!(report.handled, 250);
    // 50 events, two at a time; and 200 at a hundred a second.
    let last = last(&ends, "bolt");
    assert!((ms(250)..=ms(270)).contains(&last), "{last:?}");
    assert!((ms(1_850)..=ms(2_100)).contains(&report.elapsed), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn q05_a_pool_with_sticky_keys_has_no_shares() {
    let bench = Bench::new().set(|builder| {
        let sticky = PoolConfig { engine: event_pool::Engine::Sticky, ..shared(2) };
        builder
            .input(Box::new(Script::of(flood(1, 1))))
            .pool("default", sticky)
            .handler("h", on(&["t"], slow(ms(1))))
    });
    let why = bench.engine.build().await.map(drop).unwrap_err().to_string();
    assert!(why.contains("shares") && why.contains("sticky"), "{why}");
}

/// Answers `no` to events of acme until this long after the start. Notes its attempts.
fn busy(
    until: Duration,
    no: FailureKind,
    attempts: &Arc<Mutex<Vec<(String, Duration)>>>,
) -> Arc<dyn HandlerFactory> {
    let (attempts, began) = (attempts.clone(), Instant::now());
    handle(move |event, _| {
        attempts.lock().unwrap().push((event.id().to_owned(), began.elapsed()));
        async move {
            tokio::time::sleep(ms(10)).await;
            match event.id().starts_with("acme") && began.elapsed() < until {
                true => Err(Failure::new(no, "429")),
                false => Ok(Outputs::Same),
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn q06_a_failed_attempt_holds_its_share_and_one_attempt_probes() {
    let attempts = Arc::default();
    let hold = FailureKind::HoldShare { after: Some(Duration::from_secs(5)) };
    let factory = busy(Duration::from_secs(7), hold, &attempts);
    let bench = Bench::new().set(|builder| {
        let four = PoolConfig { share_limits: ShareLimits::default().in_hand(4), ..shared(8) };
        builder
            .input(Box::new(Script::of(flood(100, 100))))
            .pool("default", four)
            .handler("h", on(&["t"], factory))
    });
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered), (200, 0));
    let attempts = attempts.lock().unwrap();
    let failed = attempts.iter().filter(|(id, at)| id.starts_with("acme") && *at < ms(7_000));
    // Four are in hand when the first answer comes; then one probes after five seconds.
    assert_eq!(failed.clone().count(), 5, "{:?}", failed.collect::<Vec<_>>());
    let bolt = attempts.iter().filter(|(id, _)| id.starts_with("bolt"));
    assert!(bolt.map(|(_, at)| *at).max().unwrap() < ms(500), "the others go on");
    assert!(report.elapsed < ms(11_000), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn q12_a_share_whose_target_is_gone_is_paused_until_it_is_resumed() {
    let attempts = Arc::default();
    let factory = busy(Duration::from_secs(60), FailureKind::PauseShare, &attempts);
    let bench = Bench::new().set(|builder| {
        let source = Script::of(flood(10, 10)).then(Step::Wait(ms(100_000)));
        builder
            .input(Box::new(source))
            .pool(
                "default",
                PoolConfig { share_limits: ShareLimits::default().in_hand(1), ..shared(8) },
            )
            .handler("h", on(&["t"], factory))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(61_000)).await;
    let of_acme = |attempts: &Mutex<Vec<(String, Duration)>>| {
        let attempts = attempts.lock().unwrap();
        attempts.iter().filter(|(id, _)| id.starts_with("acme")).count()
    };
    assert_eq!((of_acme(&attempts), control.progress().settled), (1, 10));
    let shares = control.pool("default").unwrap().shares().unwrap();
    let acme = shares.status("acme");
    assert!(matches!(acme.state, ShareState::Held(_)) && acme.waiting == 10, "{acme:?}");
    assert_eq!(shares.paused(), [PausedShare::new("acme", true, 10)]);
    shares.resume("acme");
    tokio::time::sleep(ms(2_000)).await;
    assert_eq!(control.progress().settled, 20);
    let report = checked(run.await.unwrap());
    assert_eq!((report.handled, report.dead_lettered), (20, 0));
}

#[tokio::test(start_paused = true)]
async fn q12_a_share_whose_target_is_gone_does_not_keep_a_run_from_its_end() {
    let attempts = Arc::default();
    let factory = busy(Duration::from_secs(3_600), FailureKind::PauseShare, &attempts);
    let bench = Bench::new().set(|builder| {
        builder
            .input(Box::new(Script::of(flood(10, 10))))
            .pool("default", shared(2))
            .handler("h", on(&["t"], factory))
    });
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered), (10, 10));
    assert!(report.elapsed < ms(2_000), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn q09_shares_are_limited_held_and_paused_while_it_runs() {
    let source = Script::of(flood(1_000, 0)).then(Step::Wait(ms(600_000)));
    let bench = Bench::new().set(|builder| {
        builder
            .input(Box::new(source))
            .pool("default", shared(4))
            .handler("h", on(&["t"], slow(ms(100))))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    let shares = control.pool("default").unwrap().shares().unwrap();
    tokio::time::sleep(ms(50)).await;
    assert_eq!(shares.status("acme").in_hand, 4);
    let why = control.why("acme-500").pop().unwrap().share.unwrap();
    assert!(why.to_string().starts_with("share acme: 4 in hand; "), "{why}");
    shares.set("acme", ShareLimits::default().in_hand(1)).unwrap();
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!(shares.status("acme").in_hand, 1);
    assert_eq!(shares.by_hand().keys().map(|share| &**share).collect::<Vec<_>>(), ["acme"]);
    shares.pause("acme");
    tokio::time::sleep(ms(1_000)).await;
    let paused = shares.paused();
    assert_eq!((paused.len(), &*paused[0].share, paused[0].by_target), (1, "acme", false));
    assert_eq!(paused[0].waiting, shares.status("acme").waiting + shares.beside(&"acme".into()));
    let settled = control.progress().settled;
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!(control.progress().settled, settled);
    shares.resume("acme");
    assert_eq!(shares.paused(), []);
    shares.hold("acme", ms(5_000));
    tokio::time::sleep(ms(4_900)).await;
    assert_eq!(control.progress().settled, settled);
    shares.reset("acme");
    tokio::time::sleep(ms(1_000)).await;
    assert!(control.progress().settled > settled + 20);
    assert!(shares.by_hand().is_empty());
    control.stop_now();
    checked(run.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn q09_a_share_that_the_configuration_names_no_more_is_like_all_others() {
    let in_hand = |most: usize| ShareLimits::default().in_hand(most);
    let source = Script::of(flood(1_000, 0)).then(Step::Wait(ms(600_000)));
    let bench = Bench::new().set(|builder| {
        builder
            .input(Box::new(source))
            .pool("default", PoolConfig { share_limits: in_hand(2), ..shared(8) })
            .share("default", "acme", in_hand(3))
            .handler("h", on(&["t"], slow(ms(100))))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    let shares = control.pool("default").unwrap().shares().unwrap();
    let busy = async || {
        tokio::time::sleep(ms(250)).await;
        shares.status("acme").in_hand
    };
    assert_eq!(busy().await, 3);
    shares.configure(in_hand(2), [].into()).unwrap();
    assert_eq!(busy().await, 2);
    shares.configure(in_hand(5), [].into()).unwrap();
    assert_eq!(busy().await, 5, "the limits of all are its own");
    shares.set("acme", in_hand(1)).unwrap();
    assert_eq!(busy().await, 1);
    shares.reset("acme");
    assert_eq!(busy().await, 5, "what the run began with is gone");
    control.stop_now();
    checked(run.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn q11_metrics_say_what_each_share_has_in_hand_and_for_how_long() {
    let source = Script::of(flood(1_000, 1_000)).then(Step::Wait(ms(600_000)));
    let bench = Bench::new().set(|builder| {
        builder
            .input(Box::new(source))
            .pool("default", shared(4))
            .share("default", "acme", ShareLimits::default().weight(3))
            .handler("h", on(&["t"], slow(ms(100))))
    });
    let engine = bench.engine.build().await.unwrap();
    let (control, observer) = (engine.control(), Observer::new(engine.control()));
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(10_050)).await;
    control.pool("default").unwrap().shares().unwrap().pause("bolt");
    let families = observer.families();
    let value = |metric: &str, share: &str| {
        let family = families.get(&format!("actor_pool_share_{metric}")).unwrap();
        family.value(&["default", share]).unwrap().as_f64()
    };
    assert_eq!([value("in_hand", "acme"), value("in_hand", "bolt")], [3.0, 1.0]);
    assert_eq!([value("held", "acme"), value("held", "bolt")], [0.0, 1.0]);
    let times = ["acme", "bolt", "other"].map(|share| value("in_hand_seconds_total", share));
    assert!((29.0..=31.0).contains(&times[0]) && (9.0..=11.0).contains(&times[1]), "{times:?}");
    assert!(times[2] < 0.001 && value("waiting", "bolt") > 850.0, "{times:?}");
    control.stop_now();
    checked(run.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn q11_a_dead_letter_names_the_share_of_its_event() {
    let fails = handle(|_, _| async { Err(Failure::reject("no")) });
    let bench = Bench::new().set(|builder| {
        builder
            .input(Box::new(Script::of(flood(1, 1))))
            .pool("default", shared(1))
            .handler("h", on(&["t"], fails))
    });
    let letters = bench.letters.clone();
    assert_eq!(bench.run().await.dead_lettered, 2);
    let mut shares: Vec<_> = letters.stored().into_iter().filter_map(|of| of.share).collect();
    shares.sort_unstable();
    assert_eq!(shares, ["acme".into(), "bolt".into()]);
}

/// A pool with a short queue, of which one share has a quarter.
fn short(queue: usize) -> PoolConfig {
    PoolConfig { queue, ..shared(4) }
}

#[tokio::test(start_paused = true)]
async fn q08_a_share_that_has_its_part_of_the_queue_takes_no_other_shares_room() {
    for order_by in [Some("subject"), None] {
        let ends = Ends::default();
        let factory = noting(&ends, ms(10));
        let source = Script::of(flood(2_000, 0)).then(Step::Wait(ms(50)));
        let source = source.then(Step::Batch(flood(0, 20).into_iter().map(Ok).collect()));
        let bench = Bench::new().set(|builder| {
            let order_by = order_by.map(|by| by.parse().unwrap());
            builder
                .input(Box::new(source))
                .pool("default", short(40))
                .handler("h", HandlerConfig { order_by, ..on(&["t"], factory) })
        });
        let engine = bench.engine.build().await.unwrap();
        let control = engine.control();
        let run = tokio::spawn(engine.run());
        tokio::time::sleep(ms(35)).await;
        let shares = control.pool("default").unwrap().shares().unwrap();
        let acme = shares.status("acme");
        assert_eq!((shares.share_queue(), acme.waiting), (10, 10), "{acme:?}");
        assert!(shares.beside(&acme.share) > 1_900);
        let report = checked(run.await.unwrap());
        assert_eq!(report.handled, 2_020);
        let last = last(&ends, "bolt");
        assert!(last <= ms(250), "{order_by:?}: {last:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn q08_many_floods_at_once_leave_room_for_an_event_of_another_share() {
    let ends = Ends::default();
    let factory = noting(&ends, ms(10));
    let floods = (0..20).flat_map(|flood| (0..100).map(move |n| of(&format!("f{flood}"), n)));
    let source = Script::of(floods.collect::<Vec<_>>()).then(Step::Wait(ms(50)));
    let source = source.then(Step::Batch(vec![Ok(of("bolt", 0))]));
    let bench = Bench::new().set(|builder| {
        builder.input(Box::new(source)).pool("default", short(40)).handler("h", on(&["t"], factory))
    });
    assert_eq!(bench.run().await.handled, 2_001);
    // 21 shares with an event each have four workers.
    let last = last(&ends, "bolt");
    assert!(last <= ms(120), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn q08_the_room_of_a_share_is_changed_while_it_runs() {
    let source = Script::of(flood(500, 0)).then(Step::Wait(ms(600_000)));
    let bench = Bench::new().set(|builder| {
        builder
            .input(Box::new(source))
            .pool("default", short(40))
            .handler("h", on(&["t"], slow(ms(100))))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    let pool = control.pool("default").unwrap();
    let shares = pool.shares().unwrap();
    let waiting = || shares.status("acme").waiting;
    assert_eq!(shares.all_nameless(), Some(0));
    tokio::time::sleep(ms(50)).await;
    assert_eq!((waiting(), shares.all_nameless()), (10, None), "a quarter");
    pool.set_share_queue(Some(25));
    tokio::time::sleep(ms(1)).await;
    assert_eq!((shares.share_queue(), waiting()), (25, 25));
    pool.set_share_queue(Some(3));
    tokio::time::sleep(ms(1)).await;
    assert_eq!((shares.share_queue(), waiting()), (3, 25), "what is there stays");
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!(waiting(), 3);
    pool.set_share_queue(None);
    pool.set_queue(80).unwrap();
    tokio::time::sleep(ms(1)).await;
    assert_eq!((shares.share_queue(), waiting()), (20, 20), "a quarter again");
    control.stop_now();
    checked(run.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn q08_a_key_of_several_shares_stays_in_order_beside_the_pool() {
    let handled: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = handled.clone();
    let factory = handle(move |event, _| {
        noted.lock().unwrap().push(event.id().to_owned());
        async move {
            tokio::time::sleep(ms(10)).await;
            Ok(Outputs::Same)
        }
    });
    let tenants = ["acme", "acme", "bolt", "acme", "cord"];
    let events = (0..300).map(|n| {
        let event = Event::builder(n.to_string(), "test", "t").subject(["x", "y", "z"][n % 3]);
        event.extension("tenant", tenants[n % 5]).build().unwrap()
    });
    let events: Vec<_> = events.collect();
    let bench = Bench::new().set(|builder| {
        builder
            .input(Box::new(Script::of(events)))
            .pool("default", PoolConfig { share_queue: Some(3), ..shared(4) })
            .handler(
                "h",
                HandlerConfig { order_by: Some("subject".parse().unwrap()), ..on(&["t"], factory) },
            )
    });
    assert_eq!(bench.run().await.handled, 300);
    let handled = handled.lock().unwrap();
    for key in 0..3 {
        let of_key = handled.iter().map(|id| id.parse::<usize>().unwrap()).filter(|n| n % 3 == key);
        assert!(of_key.is_sorted(), "{handled:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn q08_what_finds_no_room_of_its_share_is_refused_or_a_dead_letter_by_option() {
    for on_share_full in [OnFull::Reject, OnFull::DeadLetter] {
        let ends = Ends::default();
        let factory = noting(&ends, ms(10));
        let bench = Bench::new().set(|builder| {
            let pool = PoolConfig { on_share_full: Some(on_share_full), ..short(40) };
            builder
                .input(Box::new(Script::of(flood(100, 5))))
                .pool("default", pool)
                .handler("h", on(&["t"], factory))
        });
        let report = bench.run().await;
        let others = ends.lock().unwrap().keys().filter(|id| id.starts_with("bolt")).count();
        assert_eq!(others, 5, "{on_share_full:?}");
        let (refused, buried) = match on_share_full {
            OnFull::Reject => (report.refused, report.dead_lettered),
            _ => (report.dead_lettered, report.refused),
        };
        // Ten wait, and as many have been started as there are workers.
        assert!((86..=90).contains(&refused) && buried == 0, "{report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn q08_an_input_that_stands_still_names_the_share() {
    let source = Script::of(flood(500, 1)).then(Step::Wait(ms(60_000)));
    let config = InputConfig { run_ahead: 50, ..InputConfig::default() };
    let bench = Bench::new().set(|builder| {
        builder
            .input_with(Box::new(source), config)
            .pool("default", short(40))
            .handler("h", on(&["t"], slow(ms(20_000))))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(15_000)).await;
    let view = control.input_views().remove(0);
    let held = view.stands_for_share().expect("it stands because of a share");
    assert_eq!((&*held.pool, held.share.as_deref()), ("default", Some("acme")));
    assert!(held.events > 50 && view.stands_still(), "{view:?}");
    assert!(view.stands_long_for_share(), "{view:?}");
    let text = format!(
        "{} events of the share \"acme\" wait for room in the pool \"default\"",
        held.events
    );
    assert_eq!(held.to_string(), text);
    // What waits beside the pool is found, too.
    let key = control.why("acme-40").pop().unwrap();
    let share = key.share.unwrap().share.to_string();
    assert_eq!((&*share, key.beside as u64), ("acme", held.events));
    control.stop_now();
    checked(run.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn q08_events_behind_a_parked_key_take_no_room_of_their_share() {
    let ends = Ends::default();
    let handled = ends.clone();
    let factory = handle(move |event, _| {
        let handled = handled.clone();
        async move {
            if event.id() == "acme-0" {
                return Err(Failure::new(FailureKind::Park, "an operator decides"));
            }
            handled.lock().unwrap().insert(event.id().to_owned(), ms(0));
            Ok(Outputs::Same)
        }
    });
    // All of one key, and then others of the same share.
    let event = |n: usize| {
        let subject = if n < 9 { "parked".to_owned() } else { n.to_string() };
        let event = Event::builder(format!("acme-{n}"), "test", "t").subject(&subject);
        event.extension("tenant", "acme").build().unwrap()
    };
    let source = Script::of((0..9).map(event).collect::<Vec<_>>())
        .then(Step::Wait(ms(2_000)))
        .then(Step::Batch((9..200).map(event).map(Ok).collect()))
        .then(Step::Wait(ms(10_000)));
    let bench = Bench::new().set(|builder| {
        let handler =
            HandlerConfig { order_by: Some("subject".parse().unwrap()), ..on(&["t"], factory) };
        builder
            .input(Box::new(source))
            .pool(
                "default",
                PoolConfig { share_queue: Some(8), max_per_key: Some(100), ..shared(4) },
            )
            .handler("h", handler)
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(5_000)).await;
    assert_eq!(ends.lock().unwrap().len(), 191, "the other keys go on");
    control.stop_now();
    drop(run.await.unwrap());
}

/// Fails for the shares that this says, until this long after the start; notes its attempts.
fn failing(
    is_down: fn(&str) -> bool,
    until: Duration,
    attempts: &Arc<Mutex<Vec<(String, Duration)>>>,
) -> Arc<dyn HandlerFactory> {
    let (attempts, began) = (attempts.clone(), Instant::now());
    handle(move |event, _| {
        attempts.lock().unwrap().push((event.id().to_owned(), began.elapsed()));
        async move {
            tokio::time::sleep(ms(10)).await;
            match is_down(event.id()) && began.elapsed() < until {
                true => Err(Failure::retry("503")),
                false => Ok(Outputs::Same),
            }
        }
    })
}

fn per_share(factory: Arc<dyn HandlerFactory>, source: Script) -> Bench {
    Bench::new().set(|builder| {
        let outage = OutageConfig { per: OutagePer::Share, ..OutageConfig::default() };
        let retry = Retry { attempts: 3, ..Retry::default() };
        builder
            .input(Box::new(source))
            .outage(outage)
            .pool("default", shared(8))
            .handler("h", HandlerConfig { retry: Some(retry), ..on(&["t"], factory) })
    })
}

#[tokio::test(start_paused = true)]
async fn q07_one_share_in_outage_leaves_the_others_alone_and_loses_nothing() {
    let attempts = Arc::default();
    let factory = failing(|id| id.starts_with("acme"), Duration::from_secs(60), &attempts);
    let others = (0..200).map(|n| of(["bolt", "cord", "dune"][n % 3], n));
    let events: Vec<_> = (0..100).map(|n| of("acme", n)).chain(others).collect();
    let engine = per_share(factory, Script::of(events)).engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(30_000)).await;
    let handler = control.handler_views().remove(0);
    assert_eq!(handler.outage, None, "only one of four shares is in outage");
    let shares = control.pool("default").unwrap().shares().unwrap();
    let outage = shares.outage(&"acme".into()).expect("the share is in outage");
    assert_eq!(outage.error, "503");
    assert!(shares.outage(&"bolt".into()).is_none());
    assert!(control.why("acme-7").pop().unwrap().share_outage.is_some());
    let report = checked(run.await.unwrap());
    assert_eq!((report.handled, report.dead_lettered), (300, 0));
    let attempts = attempts.lock().unwrap();
    let bolt = attempts.iter().filter(|(id, _)| !id.starts_with("acme"));
    assert!(bolt.map(|(_, at)| *at).max().unwrap() < ms(2_000), "the others go on");
    // 20 failures make the outage, with those in hand; then one probes at a time, up to 5 s apart.
    let failed = attempts.iter().filter(|(id, _)| id.starts_with("acme")).count() - 100;
    assert!((20..60).contains(&failed), "{failed} attempts failed in a minute");
}

#[tokio::test(start_paused = true)]
async fn q07_the_handler_is_in_outage_only_when_most_shares_are() {
    let attempts = Arc::default();
    let factory = failing(|id| !id.starts_with("dune"), Duration::from_secs(60), &attempts);
    let all = (0..400).map(|n| of(["acme", "bolt", "cord", "dune"][n % 4], n));
    let engine =
        per_share(factory, Script::of(all.collect::<Vec<_>>())).engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(30_000)).await;
    assert!(control.handler_views().remove(0).outage.is_some());
    let report = checked(run.await.unwrap());
    assert_eq!((report.handled, report.dead_lettered), (400, 0));
    let attempts = attempts.lock().unwrap();
    let dune = attempts.iter().filter(|(id, _)| id.starts_with("dune"));
    assert!(dune.map(|(_, at)| *at).max().unwrap() < ms(3_000), "one that works goes on");
}

#[tokio::test(start_paused = true)]
async fn q07_a_single_event_of_a_share_burns_its_attempts() {
    let attempts = Arc::default();
    let factory = failing(|id| id.starts_with("acme"), Duration::from_secs(3_600), &attempts);
    let events: Vec<_> = (0..50).map(|n| of("bolt", n)).chain([of("acme", 0)]).collect();
    let report = per_share(factory, Script::of(events)).run().await;
    assert_eq!((report.handled, report.dead_lettered), (50, 1));
}

#[tokio::test(start_paused = true)]
async fn q07_a_share_in_outage_beyond_the_limit_ends_the_run_and_is_named() {
    let factory =
        failing(|id| id.starts_with("acme"), Duration::from_secs(36_000), &Arc::default());
    let report = per_share(factory, Script::of(flood(50, 50))).run().await;
    assert_eq!((report.handled, report.dead_lettered, report.refused), (50, 0, 50));
    let error = "the share \"acme\" at the handler \"h\" has been in outage for 300 s: 503";
    assert!(report.errors[0].contains(error), "{report:?}");
}
