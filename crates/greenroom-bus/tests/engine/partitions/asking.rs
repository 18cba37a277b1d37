//! How long a source of partitions is asked (D11).

use super::*;

#[tokio::test(start_paused = true)]
async fn d11_a_source_of_partitions_is_asked_until_its_run_has_drained() {
    let (running, gate) = held(40).await;
    let Running { broker, control, run, .. } = running;
    control.drain();
    a_while().await;
    assert!(broker.is_asked() && !run.is_finished(), "an event is in hand");
    let open = || broker.undone(0).len() + broker.undone(1).len();
    assert_eq!(control.progress().settled, 79, "the others were given back at once");
    assert_eq!(broker.paused(), [0, 1]);
    broker.publish(0, events("later", 5));
    broker.revoke(1);
    a_while().await;
    assert_eq!((broker.revoked(), broker.given(0)), (vec![1], 40), "one is taken away meanwhile");
    broker.publish(2, events("new", 5));
    a_while().await;
    assert!(broker.is_asked());
    assert_eq!(broker.paused(), [0, 1, 2], "one that is new is not taken");
    gate.open();
    let report = checked(run.await.unwrap());
    assert_eq!((report.taken, report.handled, report.given_back), (80, 1, 79));
    assert!(report.is_clean(), "{report:?}");
    assert!(!broker.is_asked());
    assert_eq!(broker.committed(0).next(), 41, "its last positions were stored");
    assert_eq!(open(), 79 + 5, "the next owner has them, and what came later");
    assert_eq!(broker.undone(2), [1, 2, 3, 4, 5]);
    assert_eq!(broker.misuse(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn d11_a_source_of_partitions_is_asked_until_what_was_removed_is_stored() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        let stays = crate::engine::support::source::Script::new("stays", [Step::Never]);
        let engine = engine.input_named("stays", InputConfig::default(), Box::new(stays));
        engine.pool("default", pool(1, 10)).handler("held", on(&["made"], gate.handler()))
    });
    let Running { broker, control, run, .. } = Running::new(InputConfig::default(), bench).await;
    broker.publish(0, events("a", 5));
    a_while().await;
    let removal = control.remove_input("broker").unwrap();
    a_while().await;
    assert!(broker.is_asked(), "an event of it is in hand");
    gate.open();
    assert_eq!(removal.done().await.taken, 5);
    tokio::task::yield_now().await;
    assert!(!broker.is_asked());
    assert_eq!(broker.committed(0).next(), 6);
    control.drain();
    checked(run.await.unwrap());
}

/// A member that is not asked is counted out by its broker, and another one is given what is in
/// hand here.
#[tokio::test(start_paused = true)]
async fn d11_a_source_that_an_event_has_stopped_is_asked_until_the_others_are_stored() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        let stays = crate::engine::support::source::Script::new("stays", [Step::Never]);
        let engine = engine.input_named("stays", InputConfig::default(), Box::new(stays));
        let fatal = handle(|_, _| async { Err(Failure::new(FailureKind::Fatal, "no licence")) });
        engine
            .pool("default", pool(1, 10))
            .pool("other", pool(1, 10))
            .handler("held", on(&["made"], gate.handler()))
            .handler("fatal", HandlerConfig { pool: "other".into(), ..on(&["bad"], fatal) })
    });
    let Running { broker, control, run, .. } = Running::new(InputConfig::default(), bench).await;
    broker.publish(0, events("a", 5));
    broker.publish(0, vec![event("bad", "bad", None)]);
    a_while().await;
    assert!(broker.is_asked(), "an event of it is in hand");
    assert_eq!(broker.paused(), [0]);
    gate.open();
    a_while().await;
    assert!(!broker.is_asked());
    assert!(broker.undone(0).iter().all(|position| *position == 6), "{:?}", broker.undone(0));
    control.drain();
    let report = run.await.unwrap();
    assert!(report.adds_up() && report.errors[0].contains("no licence"), "{report:?}");
}

/// What came back in is still of the input that read the event which it was made of.
#[tokio::test(start_paused = true)]
async fn d05_d15_a_fatal_failure_on_the_way_back_stops_its_input_after_a_revocation_too() {
    let gate = Gate::new();
    let waits = gate.clone();
    let fatal = handle(move |event, _| {
        let gate = waits.clone();
        async move {
            gate.started.lock().push(event.id().to_owned());
            gate.open.acquire().await.unwrap().forget();
            Err(Failure::new(FailureKind::Fatal, "no licence"))
        }
    });
    let sends = handle(|_, _| async { Ok(Outputs::Events(vec![event("b", "back", None)])) });
    let bench = Bench::new().set(|engine| {
        let stays = crate::engine::support::source::Script::new("stays", [Step::Never]);
        engine
            .input_named("stays", InputConfig::default(), Box::new(stays))
            .loopback(LoopbackConfig { on: vec!["back".parse().unwrap()], room: 2 })
            .pool("default", pool(4, 100))
            .handler("sends", HandlerConfig { loopback: 1, ..on(&["made"], sends) })
            .handler("fatal", on(&["back"], fatal))
    });
    let Running { broker, control, run, .. } = Running::new(InputConfig::default(), bench).await;
    broker.publish(0, events("a", 1));
    a_while().await;
    assert_eq!(gate.started(), ["b"]);
    broker.revoke(0);
    a_while().await;
    assert!(broker.is_asked(), "it is in a worker's hands");
    gate.open();
    a_while().await;
    assert!(!broker.is_asked());
    control.drain();
    let report = run.await.unwrap();
    assert!(report.adds_up() && report.errors[0].contains("no licence"), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn d11_a_run_that_is_stopped_now_asks_its_source_for_nothing() {
    let (running, _gate) = held(40).await;
    let Running { broker, control, run, .. } = running;
    control.drain();
    a_while().await;
    control.stop_now();
    let report = run.await.unwrap();
    assert_eq!((report.taken, report.given_back, report.refused), (80, 79, 1));
    assert!(!broker.is_asked());
}

/// Where dead letters cannot be stored, no partition gives anything, and the source is asked all
/// the same.
#[tokio::test(start_paused = true)]
async fn d11_a_source_of_partitions_is_asked_while_dead_letters_have_no_room() {
    let slow = Behaviour { latency: Duration::from_secs(3_600), ..Behaviour::default() };
    let bench = Bench::with(MemorySink::new(Behaviour::default()), MemoryLetters::new(slow));
    let bench = bench.set(|engine| engine.handler("all", on(&["made"], pass())));
    let Running { broker, control, run, .. } = Running::new(InputConfig::default(), bench).await;
    for _ in 0..12_000 {
        broker.publish_malformed(0, "{ torn");
    }
    broker.publish(1, events("b", 1));
    broker.until(|broker| broker.given(0) >= 10_000).await;
    a_while().await;
    assert!(broker.is_asked() && broker.given(0) < 12_000);
    assert_eq!(broker.paused(), [0, 1]);
    broker.revoke(1);
    a_while().await;
    assert_eq!(broker.revoked(), [1], "its broker is answered");
    control.stop_now();
    run.await.unwrap();
}
