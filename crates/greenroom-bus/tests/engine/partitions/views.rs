//! What is told of partitions.

use super::*;

#[tokio::test(start_paused = true)]
async fn d08_a_partition_says_what_is_in_flight_that_it_is_paused_and_when_it_was_settled_last() {
    let (running, gate) = held(40).await;
    let settled = |partition| running.partition(partition).unwrap().last_settled;
    let in_flight = |partition| running.partition(partition).unwrap().in_flight_bytes;
    assert_eq!((settled(0), settled(1)), (None, None));
    let before = [in_flight(0), in_flight(1)];
    assert!(before[0] > 0);
    gate.open.add_permits(1);
    a_while().await;
    let (one, other) = if settled(0).is_some() { (0, 1) } else { (1, 0) };
    assert!(settled(one).is_some_and(|ago| ago <= ms(500)), "{:?}", settled(one));
    assert!(in_flight(one) < before[one as usize]);
    tokio::time::sleep(ms(10_000)).await;
    assert!(settled(one).is_some_and(|ago| (ms(10_000)..=ms(10_500)).contains(&ago)));
    assert_eq!(settled(other), None);
    assert_eq!(running.control.input_views()[0].last_settled, settled(one));
    running.control.pause_partition("broker", Partition(1)).unwrap();
    a_while().await;
    assert!(running.partition(1).unwrap().is_paused && !running.partition(0).unwrap().is_paused);
    running.control.resume_partition("broker", Partition(1)).unwrap();
    gate.open();
    running.ended().await;
}

#[tokio::test(start_paused = true)]
async fn d15_each_partition_says_its_positions_its_epoch_its_lag_and_what_is_open_longest() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 5)).handler("all", on(&["made"], gate.handler()))
    });
    let config = InputConfig { run_ahead: 8, ..InputConfig::default() };
    let running = Running::new(config, bench).await;
    running.broker.skip(0, 3);
    running.broker.publish(0, of_key("a", 40));
    a_while().await;
    let standing = running.partition(0).unwrap().standing.unwrap();
    let given = running.broker.given(0);
    assert_eq!((standing.oldest_open, standing.next), (4, 4 + given));
    assert_eq!(standing.lag, Some(40 - given), "what it was not asked for");
    gate.open.add_permits(2);
    a_while().await;
    assert_eq!(running.partition(0).unwrap().standing.unwrap().oldest_open, 6);
    running.broker.revoke(0);
    a_while().await;
    assert!(running.partition(0).is_none());
    running.broker.assign(0);
    gate.open();
    a_while().await;
    let again = running.partition(0).unwrap().standing.unwrap();
    assert!(again.epoch > standing.epoch, "another assignment: {again:?}");
    assert_eq!((again.oldest_open, again.next, again.lag), (44, 44, Some(0)));
    let report = running.ended().await;
    let [last] = report.positions[0].partitions[..] else { panic!("one partition") };
    let (stored, not_stored) = (last.ahead.stored, last.ahead.not_stored);
    assert_eq!((stored, not_stored), (38, 0), "by the last commit");
    assert_eq!(last, PartitionStanding { ahead: last.ahead, ..again });
}

#[tokio::test(start_paused = true)]
async fn d15_c13_why_says_of_which_partitions_the_events_of_a_key_are() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        let beside = HandlerConfig { fan_out: true, ..on(&["made"], gate.handler()) };
        engine.pool("default", pool(2, 100)).handler("one", beside.clone()).handler("two", beside)
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(3, of_key("k", 2));
    running.broker.publish(1, of_key("k", 5));
    running.broker.publish(2, of_key("other", 4));
    a_while().await;
    let of = |key: &str| -> Vec<Vec<(u32, u64)>> {
        let why = running.control.why(key).into_iter();
        let each = |view: greenroom_bus::engine::KeyView| {
            let of =
                view.partitions.iter().map(|of| (of.partition.0, of.unsettled)).collect::<Vec<_>>();
            assert_eq!(of.iter().map(|(_, events)| events).sum::<u64>(), view.unsettled);
            of
        };
        why.map(each).collect()
    };
    assert_eq!(of("k"), [[(1, 5), (3, 2)], [(1, 5), (3, 2)]], "with each handler");
    assert_eq!(of("other"), [[(2, 4)], [(2, 4)]]);
    running.broker.revoke(1);
    a_while().await;
    let left = of("k").remove(0);
    let in_hand = u64::from(left.len() == 2);
    assert_eq!(left.iter().map(|(_, events)| events).sum::<u64>(), 2 + in_hand, "{left:?}");
    gate.open();
    a_while().await;
    assert!(of("k").is_empty());
    checked(running.ended().await);
}

#[tokio::test(start_paused = true)]
async fn d15_c13_of_an_input_of_one_partition_why_names_none() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        let script = crate::engine::support::source::Script::of(of_key("k", 3)).then(Step::Never);
        let engine = engine.input_named("only", InputConfig::default(), Box::new(script));
        engine.pool("default", pool(2, 100)).handler("all", on(&["made"], gate.handler()))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    a_while().await;
    let why = control.why("k");
    assert_eq!((why[0].unsettled, why[0].partitions.len()), (3, 0));
    control.stop_now();
    checked(run.await.unwrap());
}
