//! What handlers make comes back in, and no cycle stands still (G03).

use std::sync::Arc;

use greenroom_bus::{
    dead_letter::Reason,
    engine::{BuildError, HandlerConfig, LoopbackConfig, RunReport},
    event::Event,
    handler::{HandlerFactory, Outputs},
};

use crate::engine::support::{
    Bench, checked, event,
    handlers::{answer, handle, pass},
    ms, on, pool,
    source::{Script, Step},
};

fn back(on: &str, room: usize) -> LoopbackConfig {
    LoopbackConfig { room, ..LoopbackConfig::new(vec![on.parse().unwrap()]) }
}

fn sends_back(events: usize, handler: HandlerConfig) -> HandlerConfig {
    HandlerConfig { loopback: events, ..handler }
}

/// Turns `hop.n` into so many of `hop.n-1`, and `hop.0` into one `done`.
fn hops(copies: usize) -> Arc<dyn HandlerFactory> {
    answer(move |event, _| {
        let left: u32 = event.ty().strip_prefix("hop.").unwrap().parse().unwrap();
        let made = |ty: String, n: usize| {
            let id = format!("{}.{n}", event.id());
            Event::builder(id, "test", &ty).subject("key").build().unwrap()
        };
        Ok(Outputs::Events(match left {
            0 => vec![made("done".to_owned(), 0)],
            _ => (0..copies).map(|n| made(format!("hop.{}", left - 1), n)).collect(),
        }))
    })
}

/// `count` events with so many hops before them, in one small pool.
fn cycle(count: usize, left: u32, copies: usize, room: usize) -> Bench {
    let events = (0..count).map(|n| event(n, &format!("hop.{left}"), Some("key")));
    let source = Script::of(events.collect::<Vec<_>>());
    Bench::new().set(|engine| {
        let engine = engine.input(Box::new(source)).pool("default", pool(1, 1));
        let engine = engine.loopback(back("hop.*", room));
        engine.handler("hops", sends_back(copies, on(&["hop.*"], hops(copies))))
    })
}

#[tokio::test(start_paused = true)]
async fn g03_what_comes_back_belongs_to_the_event_that_it_was_made_of() {
    let bench = cycle(10, 3, 1, 100);
    let sink = bench.sink.clone();
    let report = bench.run().await;
    assert_eq!((report.taken, report.handled), (10, 10), "only what came from an input is taken");
    assert_eq!(report.pools[0].handled, 40);
    assert_eq!(sink.stored().iter().filter(|stored| stored.event.ty() == "done").count(), 10);
    assert_eq!(sink.ids().len(), 10, "what comes back goes to no output");
    assert!(report.is_clean(), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn g03_the_event_is_settled_when_all_that_came_back_is() {
    let makes_b = answer(|event, _| {
        let b = Event::builder(event.id(), "test", "b").build().unwrap();
        Ok(Outputs::Events(vec![b]))
    });
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of([event(1, "a", None)]).then(Step::Never)));
        let engine = engine.loopback(back("b", 10));
        let engine = engine.handler("a", sends_back(1, on(&["a"], makes_b)));
        let done = answer(|event, _| {
            let done = Event::builder(event.id(), "test", "done").build().unwrap();
            Ok(Outputs::Events(vec![done]))
        });
        engine.handler("b", on(&["b"], done))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    control.handler("b").unwrap().pause();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(5_000)).await;
    assert_eq!((control.progress().taken, control.progress().settled), (1, 0));
    control.handler("b").unwrap().resume();
    tokio::time::sleep(ms(1_100)).await;
    assert_eq!(control.progress().settled, 1);
    control.drain();
    assert_eq!(checked(run.await.unwrap()).handled, 1);
}

#[tokio::test(start_paused = true)]
async fn g03_a_cycle_with_room_for_one_does_not_stand_still() {
    let report = cycle(50, 30, 1, 1).run().await;
    assert_eq!((report.handled, report.dead_lettered), (50, 0));
    assert_eq!(report.pools[0].handled, 50 * 31);
}

#[tokio::test(start_paused = true)]
async fn g03_a_cycle_through_two_small_pools_does_not_stand_still() {
    let turns = |to: &'static str| {
        answer(move |event: Event, _| {
            let id = format!("{}x", event.id());
            let to = if id.len() > 12 { "done" } else { to };
            let next = Event::builder(id, "test", to).subject("key").build().unwrap();
            Ok(Outputs::Events(vec![next]))
        })
    };
    let events = (0..40).map(|n| event(n % 10, "ping", Some("key"))).collect::<Vec<_>>();
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(events)));
        let engine = engine.pool("one", pool(1, 1)).pool("two", pool(1, 1));
        let mut ping = sends_back(1, on(&["ping"], turns("pong")));
        let mut pong = sends_back(1, on(&["pong"], turns("ping")));
        (ping.pool, pong.pool) = ("one".to_owned(), "two".to_owned());
        let on = ["ping", "pong"].map(|on| on.parse().unwrap()).to_vec();
        let engine = engine.loopback(LoopbackConfig { room: 2, ..LoopbackConfig::new(on) });
        engine.handler("ping", ping).handler("pong", pong)
    });
    let report = bench.run().await;
    assert_eq!((report.taken, report.handled), (40, 40));
}

#[tokio::test(start_paused = true)]
async fn g03_a_cycle_that_grows_beyond_its_room_ends_in_dead_letters() {
    let bench = cycle(3, 9, 2, 16);
    let letters = bench.letters.clone();
    let engine = bench.engine.build().await.unwrap();
    let run = tokio::time::timeout(crate::engine::support::HANG, engine.run());
    let report: RunReport = run.await.expect("the cycle stands still");
    assert!(report.adds_up() && report.refused == 0, "{report:?}");
    assert!(report.dead_lettered > 0, "3 × 2⁹ events have no room in 16");
    let letters = letters.stored();
    assert!(letters.iter().all(|letter| letter.error.contains("no room on the way back")));
    assert!(letters.iter().all(|letter| letter.attempts == 3 && &*letter.source == "loopback"));
}

#[tokio::test(start_paused = true)]
async fn g03_more_than_was_declared_fails_and_follows_the_failure_policy() {
    let events = vec![event(1, "hop.4", Some("key"))];
    let three = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(events))).loopback(back("hop.*", 100));
        engine.handler("hops", sends_back(2, on(&["hop.*"], hops(3))))
    });
    let (letters, sink) = (three.letters.clone(), three.sink.clone());
    let report = three.run().await;
    assert_eq!((report.dead_lettered, report.retried), (1, 2));
    let letter = &letters.stored()[0];
    assert_eq!((letter.reason, letter.attempts), (Reason::RetriesExhausted, 3));
    assert_eq!(letter.error, "3 events would come back in, and its handler declares 2");
    assert!(sink.ids().is_empty(), "none of the three went anywhere");
}

#[tokio::test(start_paused = true)]
async fn g03_a_cycle_without_end_is_refused_at_the_deadline() {
    let again = handle(|_, _| async {
        tokio::time::sleep(ms(1)).await;
        Ok(Outputs::Same)
    });
    let bench = Bench::new().set(|engine| {
        let source = Script::of([event(1, "again", None), event(2, "once", None)]);
        let engine = engine.input(Box::new(source)).loopback(back("again", 5)).deadline(ms(500));
        let engine = engine.handler("again", sends_back(1, on(&["again"], again)));
        engine.handler("once", on(&["once"], pass()))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(10_000)).await;
    assert!(!run.is_finished(), "it goes round and round");
    control.drain();
    let report = checked(run.await.unwrap());
    assert_eq!((report.taken, report.handled, report.refused), (2, 1, 1));
    assert!(report.elapsed < ms(11_550), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn g03_a_handler_without_a_way_back_or_with_too_little_room_is_an_error() {
    let handler = || sends_back(5, on(&["a"], pass()));
    let bench = || Bench::new().engine.input(Box::new(Script::of([]))).handler("h", handler());
    let none = bench().build().await;
    assert!(matches!(none, Err(BuildError::NoLoopback(name)) if name == "h"));
    let small = bench().loopback(back("a", 4)).build().await;
    assert!(matches!(small, Err(BuildError::LoopbackTooSmall { declared: 5, room: 4, .. })));
}
