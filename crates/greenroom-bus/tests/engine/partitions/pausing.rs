//! Partitions that are full, paused and drained.

use super::*;

#[tokio::test(start_paused = true)]
async fn d15_d03_a_full_partition_pauses_that_partition_only() {
    let bench = Bench::new().set(|engine| {
        engine
            .pool("stuck", pool(1, 1))
            .pool("free", pool(1, 10))
            .handler(
                "stuck",
                HandlerConfig { pool: "stuck".into(), ..on(&["made"], Gate::new().handler()) },
            )
            .handler("free", HandlerConfig { pool: "free".into(), ..on(&["free"], pass()) })
    });
    let config = InputConfig { run_ahead: 20, ..InputConfig::default() };
    let running = Running::new(config, bench).await;
    running.broker.publish(0, events("a", 1_000));
    running.broker.publish(1, [event("b", "free", None)]);
    a_while().await;
    assert_eq!(running.broker.paused(), [0]);
    let given = running.broker.given(0);
    assert!(
        (12..=26).contains(&given),
        "{given}: one in hand, one queued, ten beside it, and its batch"
    );
    running.broker.publish(1, (0..500).map(|n| event(n, "free", None)));
    a_while().await;
    assert_eq!(how(&running.broker.settled(1)), [HANDLED; 501]);
    assert_eq!((running.broker.paused(), running.broker.given(0)), (vec![0], given));
    let view = running.partition(0).unwrap();
    assert!(view.is_paused && view.held_back >= 10, "{view:?}");
    assert!(!running.partition(1).unwrap().is_paused);
    running.control.stop_now();
    checked(running.run.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn d15_partitions_take_turns_so_that_keys_of_all_of_them_are_in_hand() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(40, 400)).handler("all", on(&["made"], gate.handler()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    // Each comes in one piece, of four keys.
    for partition in 0..10 {
        let key = |n: usize| format!("{partition}-{}", n % 4);
        let events = (0..400).map(|n| event(format!("{partition}-{n}"), "made", Some(&key(n))));
        running.broker.publish(partition, events.collect::<Vec<_>>());
        // All of it waits before the next one comes.
        a_while().await;
    }
    // The first fills the pool; behind it, each has its turn.
    gate.open.add_permits(600);
    a_while().await;
    let in_hand = running.control.pool_views().remove(0).stats.in_hand;
    // One after the other, the window of the pool holds events of two partitions, so eight keys.
    assert!(in_hand >= 30, "{in_hand} of the 36 keys that the other partitions have");
    gate.open();
    let report = running.ended().await;
    assert_eq!((report.handled, report.out_of_order), (4_000, 0));
}

#[tokio::test(start_paused = true)]
async fn d15_d03_bytes_in_flight_are_of_a_partition() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 1_000)).handler("all", on(&["made"], gate.handler()))
    });
    let config = InputConfig { in_flight_bytes: 100 << 10, ..InputConfig::default() };
    let running = Running::new(config, bench).await;
    let large = |prefix: &str| -> Vec<Event> {
        (0..200)
            .map(|n| sized(format!("{prefix}{n}"), "made", Some(&n.to_string()), 1 << 10))
            .collect()
    };
    running.broker.publish(0, large("a"));
    a_while().await;
    let alone = running.partition(0).unwrap();
    assert_eq!((alone.in_flight_limit, alone.is_paused), (100 << 10, true));
    running.broker.publish(1, large("b"));
    a_while().await;
    let views = [0, 1].map(|partition| running.partition(partition).unwrap());
    assert!(views.iter().all(|view| view.in_flight_limit == 50 << 10), "{views:?}");
    assert!((45 << 10..=50 << 10).contains(&views[1].in_flight_bytes), "{views:?}");
    assert_eq!(running.broker.paused(), [0, 1]);
    gate.open();
    let report = running.ended().await;
    assert_eq!((report.handled, report.revoked), (400, 0));
}

#[tokio::test(start_paused = true)]
async fn d15_a_source_that_heeds_no_pause_loses_nothing_and_keeps_its_order() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 100)).handler("all", on(&["made"], gate.handler()))
    });
    let config = InputConfig { in_flight_bytes: 1_000, ..InputConfig::default() };
    let running = Running::new(config, bench).await;
    running.broker.heed_no_pause();
    running.broker.publish(0, of_key("a", 100));
    a_while().await;
    assert_eq!(running.broker.given(0), 100, "it was not asked for so many");
    gate.open();
    let report = running.ended().await;
    assert_eq!((report.taken, report.handled), (100, 100));
    let expected: Vec<String> = (0..100).map(|n| format!("a{n}")).collect();
    assert_eq!(gate.started(), expected);
}

#[tokio::test(start_paused = true)]
async fn d15_a_partition_is_paused_drained_and_resumed_while_others_go_on() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(4, 100)).handler("all", on(&["made"], gate.handler()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", 3));
    a_while().await;
    let drained = running.control.drain_partition("broker", Partition(0)).unwrap();
    let is_drained = Arc::new(AtomicBool::new(false));
    let seen = is_drained.clone();
    let waits = tokio::spawn(async move {
        drained.await;
        seen.store(true, Ordering::SeqCst);
    });
    a_while().await;
    assert_eq!((running.broker.paused(), is_drained.load(Ordering::SeqCst)), (vec![0], false));
    running.broker.publish(0, events("later", 2));
    running.broker.publish(1, events("b", 2));
    gate.open();
    a_while().await;
    waits.await.unwrap();
    assert_eq!((running.broker.settled(0).len(), running.broker.settled(1).len()), (3, 2));
    assert!(running.partition(0).unwrap().is_paused);
    running.control.resume_partition("broker", Partition(0)).unwrap();
    a_while().await;
    assert_eq!((running.broker.settled(0).len(), running.broker.paused()), (5, vec![]));
    let unknown = running.control.pause_partition("nobody", Partition(0)).unwrap_err();
    assert!(unknown.to_string().contains("nobody"), "{unknown}");
    assert_eq!(running.ended().await.handled, 7);
}

#[tokio::test(start_paused = true)]
async fn d15_an_input_of_one_partition_is_paused_as_that() {
    let broker = Bench::new();
    let script = crate::engine::support::source::Script::of(events("a", 20));
    let given = script.given();
    let engine = broker.engine.pool("default", pool(1, 10)).handler("all", on(&["made"], pass()));
    let engine = engine.input_named("only", InputConfig::default(), Box::new(script));
    let engine = engine.build().await.unwrap();
    let control = engine.control();
    control.pause_partition("only", Partition::ONLY).unwrap();
    let run = tokio::spawn(engine.run());
    a_while().await;
    assert_eq!(given.load(Ordering::Relaxed), 0);
    control.resume_partition("only", Partition::ONLY).unwrap();
    assert_eq!(checked(run.await.unwrap()).handled, 20);
}

/// An input of one partition that has room for one of four events at a time. Each is settled as
/// soon as its handler may end.
async fn narrow(open: &Arc<Semaphore>) -> (Control, JoinHandle<RunReport>) {
    let bytes = |n: u32| sized(n, "made", None, 400);
    let steps = [Step::Batch((0..4).map(bytes).map(Ok).collect()), Step::Never];
    let config = InputConfig { in_flight_bytes: 500, ..InputConfig::default() };
    let open = open.clone();
    let waits = handle(move |_, _| {
        let open = open.clone();
        async move {
            open.acquire().await.unwrap().forget();
            Ok(Outputs::None)
        }
    });
    let engine =
        Bench::new().engine.pool("default", pool(1, 10)).handler("all", on(&["made"], waits));
    let script = crate::engine::support::source::Script::new("only", steps);
    let engine = engine.input_named("only", config, Box::new(script)).build().await.unwrap();
    (engine.control(), tokio::spawn(engine.run()))
}

#[tokio::test(start_paused = true)]
async fn d15_an_input_of_one_partition_is_drained_once_what_waits_for_room_is_settled() {
    let open = Arc::new(Semaphore::new(0));
    let (control, run) = narrow(&open).await;
    a_while().await;
    let drained = control.drain_partition("only", Partition::ONLY).unwrap();
    open.add_permits(4);
    tokio::time::timeout(HANG, drained).await.expect("it is drained");
    assert_eq!(open.available_permits(), 0, "all four were handled");
    control.drain();
    assert_eq!(checked(run.await.unwrap()).handled, 4);
}

#[tokio::test(start_paused = true)]
async fn d15_a_partition_is_drained_no_more_once_its_run_is_over() {
    let (control, run) = narrow(&Arc::new(Semaphore::new(0))).await;
    a_while().await;
    let drained = control.drain_partition("only", Partition::ONLY).unwrap();
    control.stop_now();
    assert_eq!(checked(run.await.unwrap()).refused, 4);
    tokio::time::timeout(HANG, drained).await.expect("nothing of it is left");
}
