//! Partitions that are taken away, and come back.

use super::*;

#[tokio::test(start_paused = true)]
async fn d15_events_of_a_revoked_partition_are_not_started_and_give_up_their_room() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 20)).handler("all", on(&["made"], gate.handler()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", 50));
    a_while().await;
    running.broker.publish(1, events("b", 5));
    a_while().await;
    assert_eq!(gate.started(), ["a0"]);
    running.broker.revoke(0);
    a_while().await;
    assert_eq!(running.broker.revoked(), [0]);
    assert_eq!(running.broker.settled(0).len(), 49, "all but what is in hand, at once");
    assert!(running.partition(0).is_none());
    let input = running.control.input_views().remove(0);
    assert_eq!(input.held_back, 0, "there is room in the pool now");
    gate.open();
    let broker = running.broker.clone();
    let report = running.ended().await;
    assert_eq!(gate.started(), ["a0", "b0", "b1", "b2", "b3", "b4"]);
    assert_eq!((report.taken, report.handled, report.revoked, report.refused), (55, 6, 49, 0));
    assert!(report.is_clean(), "whoever has it now handles the rest: {report:?}");
    let mut expected = vec![REVOKED; 50];
    expected[0] = HANDLED;
    assert_eq!(how(&broker.settled(0)), expected);
}

#[tokio::test(start_paused = true)]
async fn d15_a_partition_that_comes_back_begins_anew_and_a_key_has_one_owner() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(4, 100)).handler("all", on(&["made"], gate.handler()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, of_key("a", 5));
    a_while().await;
    running.broker.revoke(0);
    a_while().await;
    running.broker.assign(0);
    a_while().await;
    assert_eq!(gate.started(), ["a0"], "the same key is in hand still");
    gate.open();
    let report = running.ended().await;
    assert_eq!(gate.started(), ["a0", "a0", "a1", "a2", "a3", "a4"]);
    assert_eq!((report.handled, report.revoked), (6, 4));
}

#[tokio::test(start_paused = true)]
async fn d15_what_waits_for_another_attempt_is_given_up_as_well() {
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let told = attempts.clone();
    let failing = handle(move |event, attempt| {
        told.lock().push((event.id().to_owned(), attempt));
        async {
            Err(Failure::new(
                FailureKind::Retry { after: Some(Duration::from_secs(10)) },
                "not now",
            ))
        }
    });
    let bench = Bench::new()
        .set(|engine| engine.pool("default", pool(4, 100)).handler("all", on(&["made"], failing)));
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, of_key("a", 3));
    a_while().await;
    running.broker.revoke(0);
    a_while().await;
    assert_eq!(how(&running.broker.settled(0)), [REVOKED; 3]);
    let letters = running.letters.clone();
    let report = running.ended().await;
    assert_eq!(*attempts.lock(), [("a0".to_owned(), 1)]);
    assert_eq!((report.revoked, report.dead_lettered, letters.stored().len()), (3, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn d15_parked_keys_of_a_revoked_partition_are_given_up() {
    let parking = handle(|event, _| async move {
        match event.id() {
            "a0" => Err(Failure::new(FailureKind::Park, "ask somebody")),
            _ => Ok(Outputs::Same),
        }
    });
    let bench = Bench::new()
        .set(|engine| engine.pool("default", pool(4, 100)).handler("all", on(&["made"], parking)));
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, of_key("a", 4));
    running.broker.publish(1, of_key("b", 4));
    a_while().await;
    assert_eq!(running.broker.settled(0).len(), 0);
    running.broker.revoke(0);
    tokio::time::sleep(ms(2_000)).await;
    assert_eq!(how(&running.broker.settled(0)), [REVOKED; 4]);
    assert_eq!(running.control.progress().parked_events, 0);
    let report = running.ended().await;
    assert_eq!((report.handled, report.revoked, report.parked), (4, 4, 0));
    assert!(report.is_clean(), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn d15_what_fails_for_good_after_its_partition_was_revoked_is_no_dead_letter() {
    let gate = Gate::new();
    let waits = gate.clone();
    let rejecting = handle(move |event, _| {
        let gate = waits.clone();
        async move {
            gate.started.lock().push(event.id().to_owned());
            gate.open.acquire().await.unwrap().forget();
            match event.id() {
                "a0" => Err(Failure::reject("no")),
                "a1" => Err(Failure::new(FailureKind::Park, "ask somebody")),
                _ => panic!("a handler that panics"),
            }
        }
    });
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(4, 100)).handler("all", on(&["made"], rejecting))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", 3));
    a_while().await;
    assert_eq!(gate.started().len(), 3);
    running.broker.revoke(0);
    a_while().await;
    gate.open();
    tokio::time::sleep(ms(2_000)).await;
    assert_eq!(how(&running.broker.settled(0)), [REVOKED; 3]);
    let letters = running.letters.clone();
    let report = running.ended().await;
    assert_eq!((report.revoked, report.parked, letters.stored().len()), (3, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn d15_what_a_paused_pool_holds_is_given_up() {
    let gate = Gate::new();
    gate.open();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(2, 100)).handler("all", on(&["made"], gate.handler()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.control.pool("default").unwrap().pause();
    running.broker.publish(0, events("a", 10));
    a_while().await;
    running.broker.revoke(0);
    a_while().await;
    assert_eq!(how(&running.broker.settled(0)), [REVOKED; 10], "those in a worker's hands, too");
    running.control.pool("default").unwrap().resume();
    let report = running.ended().await;
    assert!(gate.started().is_empty());
    assert_eq!((report.handled, report.revoked), (0, 10));
}

#[tokio::test(start_paused = true)]
async fn d15_what_waits_for_room_on_the_way_back_is_given_up() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        let handler = HandlerConfig { loopback: 1, ..on(&["made"], gate.handler()) };
        engine
            .loopback(LoopbackConfig { on: vec!["back".parse().unwrap()], room: 2 })
            .pool("default", pool(4, 100))
            .handler("all", handler)
            .handler("back", on(&["back"], pass()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", 10));
    a_while().await;
    assert_eq!(gate.started().len(), 2, "there is room for two on the way back");
    running.broker.revoke(0);
    a_while().await;
    assert_eq!(running.broker.settled(0).len(), 8);
    gate.open();
    let report = running.ended().await;
    assert_eq!((report.handled, report.revoked), (2, 8));
}

/// Gives events with the answer that partitions are taken away, which its contract does not allow.
struct GivesWithRevoke {
    step: u32,
    /// The partition that these events are of, and the one that is taken away.
    given: Partition,
    revoked: Arc<Mutex<Vec<Partition>>>,
}

const TAKEN_AWAY: Partition = Partition(1);

impl Source for GivesWithRevoke {
    fn describe(&self) -> String {
        "gives with revoke".to_owned()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            self.step += 1;
            if self.step > 1 {
                return Ok(Pull::End);
            }
            for (position, event) in (1..).zip(events("a", 5)) {
                into.push(Taken { position, event: Ok(event) });
            }
            Ok(Pull::Revoke)
        })
    }

    fn replayable(&self) -> bool {
        true
    }

    fn is_partitioned(&self) -> bool {
        true
    }

    fn partition(&self) -> Partition {
        self.given
    }

    fn revoking(&mut self) -> Vec<Partition> {
        vec![TAKEN_AWAY]
    }

    fn revoked(&mut self, partition: Partition) {
        self.revoked.lock().push(partition);
    }
}

#[tokio::test(start_paused = true)]
async fn d15_what_comes_with_a_revocation_counts_to_its_own_partition() {
    for (given, handled) in [(Partition(0), 5), (TAKEN_AWAY, 1)] {
        let (gate, revoked) = (Gate::new(), Arc::default());
        let source = GivesWithRevoke { step: 0, given, revoked: Arc::clone(&revoked) };
        let bench = Bench::new().set(|engine| {
            let engine = engine.input_named("broker", InputConfig::default(), Box::new(source));
            engine.pool("default", pool(1, 100)).handler("all", on(&["made"], gate.handler()))
        });
        let engine = bench.engine.build().await.unwrap();
        let run = tokio::spawn(engine.run());
        a_while().await;
        assert_eq!((gate.started().len(), &*revoked.lock()), (1, &vec![TAKEN_AWAY]));
        gate.open();
        let report = checked(run.await.unwrap());
        assert_eq!((report.taken, report.handled), (5, handled), "of {given}: {report:?}");
        assert_eq!((report.revoked, report.refused), (5 - handled, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn d15_bytes_of_a_revoked_partition_are_given_back_and_the_others_have_its_share() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 30)).handler("all", on(&["made"], gate.handler()))
    });
    let config = InputConfig { in_flight_bytes: 100 << 10, ..InputConfig::default() };
    let running = Running::new(config, bench).await;
    let large = |prefix: &str| -> Vec<Event> {
        (0..200)
            .map(|n| sized(format!("{prefix}{n}"), "made", Some(&n.to_string()), 1 << 10))
            .collect()
    };
    // Queued, beside the pool, and waiting for room in the budget.
    running.broker.publish(0, large("a"));
    a_while().await;
    running.broker.publish(1, large("b"));
    a_while().await;
    let full = running.partition(0).unwrap();
    assert!(full.in_flight_bytes > 40 << 10 && full.held_back > 0, "{full:?}");
    assert_eq!(gate.started(), ["a0"]);
    running.broker.revoke(0);
    a_while().await;
    assert_eq!(running.broker.revoked(), [0]);
    assert_eq!(running.broker.open(0), 1, "one is in hand");
    let (input, other) = (running.control.input_views().remove(0), running.partition(1).unwrap());
    assert_eq!(input.in_flight_bytes, other.in_flight_bytes, "{input:?}");
    assert_eq!((input.in_flight_limit, other.in_flight_limit), (100 << 10, 100 << 10));
    assert!(other.in_flight_bytes > 90 << 10, "it has the whole now: {other:?}");
    gate.open();
    let report = running.ended().await;
    assert_eq!((report.handled, report.refused), (201, 0), "{report:?}");
    assert_eq!(report.taken, report.handled + report.revoked);
}

#[tokio::test(start_paused = true)]
async fn d15_the_order_of_a_key_is_audited_across_a_revocation() {
    // In one go: what succeeds behind one that is to be tried again leaves before it.
    let (gate, disorder) = (Gate::new(), Arc::new(AtomicBool::new(false)));
    let handler = InOneGo { gate: gate.clone(), disorder: disorder.clone() };
    let batches = Some(greenroom::batch::Batches::of(2));
    let bench = Bench::new().set(|engine| {
        engine
            .pool("default", PoolConfig { batches, ..pool(1, 100) })
            .handler("all", on(&["made"], Arc::new(handler)))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, of_key("a", 6));
    a_while().await;
    running.broker.revoke(0);
    a_while().await;
    running.broker.assign(0);
    a_while().await;
    // One event of the assignment before, then those of the next: nothing has left out of order.
    gate.open.add_permits(2);
    a_while().await;
    assert_eq!(running.broker.open(0), 6, "of the first assignment all are settled");
    disorder.store(true, Ordering::SeqCst);
    gate.open();
    let (broker, run) = (running.broker.clone(), running.run);
    broker.end();
    let report = run.await.unwrap();
    assert!(report.adds_up() && report.handled >= 6, "{report:?}");
    assert!(report.out_of_order > 0, "it looks at the next assignment as well: {report:?}");
}

/// Handles batches as a whole. Where there is to be disorder, the first of one is tried again.
#[derive(Clone)]
struct InOneGo {
    gate: Gate,
    disorder: Arc<AtomicBool>,
}

impl HandlerFactory for InOneGo {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for InOneGo {
    fn handle<'a>(&'a mut self, _event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        Handling::Later(Box::pin(async {
            self.gate.open.acquire().await.unwrap().forget();
            Ok(Outputs::Same)
        }))
    }

    fn handle_all<'a>(
        &'a mut self,
        events: &'a [(&'a Event, Attempt)],
    ) -> BoxFuture<'a, Vec<HandlerResult>> {
        Box::pin(async move {
            self.gate.open.acquire_many(events.len() as u32).await.unwrap().forget();
            let is_wrong = events.len() > 1 && self.disorder.load(Ordering::SeqCst);
            let result = |(place, (_, attempt)): (usize, &(&Event, Attempt))| match is_wrong
                && place == 0
                && attempt.number == 1
            {
                true => Err(Failure::retry("not yet")),
                false => Ok(Outputs::Same),
            };
            events.iter().enumerate().map(result).collect()
        })
    }
}

#[tokio::test(start_paused = true)]
async fn d15_r02_a_change_while_partitions_come_and_go_holds_for_all_of_them() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 5)).handler("all", on(&["made"], gate.handler()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", 30));
    running.broker.publish(1, events("b", 30));
    a_while().await;
    let changed = running
        .control
        .apply(&[("default", pool(4, 50))], &[("all", on(&["made"], gate.handler()))]);
    assert_eq!(changed.unwrap(), ["pools.default.workers", "pools.default.queue"]);
    a_while().await;
    assert_eq!(gate.started().len(), 4);
    running.broker.revoke(0);
    a_while().await;
    assert_eq!(running.broker.revoked(), [0], "also while a larger queue holds its events");
    let changed = running
        .control
        .apply(&[("default", pool(1, 5))], &[("all", on(&["made"], gate.handler()))]);
    assert_eq!(changed.unwrap().len(), 2);
    running.broker.assign(0);
    a_while().await;
    gate.open();
    running.broker.until(|broker| broker.undone(0).is_empty() && broker.undone(1).is_empty()).await;
    let report = running.ended().await;
    assert_eq!(report.handled + report.revoked, report.taken, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn d15_g01_a_partitioned_input_is_removed_with_all_its_partitions_and_comes_again() {
    let bench = Bench::new().set(|engine| {
        let stays = crate::engine::support::source::Script::new("stays", [Step::Never]);
        engine
            .input_named("stays", InputConfig::default(), Box::new(stays))
            .pool("default", pool(1, 100))
            .handler("all", on(&["made"], slow(ms(100))))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", 10));
    running.broker.publish(1, events("b", 10));
    a_while().await;
    running.broker.revoke(1);
    a_while().await;
    let removal = running.control.remove_input("broker").unwrap();
    running.broker.publish(0, events("later", 10));
    assert_eq!(removal.done().await.taken, running.broker.given(0) + running.broker.given(1));
    assert_eq!((running.broker.open(0), running.broker.open(1)), (0, 0));
    running.broker.assign(1);
    let again = running.broker.source();
    running
        .control
        .add_input("broker", InputConfig::default(), again)
        .map_err(|error| error.why)
        .unwrap();
    running.broker.until(|broker| broker.undone(0).is_empty() && broker.undone(1).is_empty()).await;
    assert_eq!(running.control.input_views()[1].partitions.len(), 2);
    running.control.drain();
    let report = checked(running.run.await.unwrap());
    assert_eq!((report.refused, report.handled + report.revoked), (0, report.taken));
}
