//! What shares do at the ends of their ranges, and of a run.

use super::*;

/// A handler that takes this long for each event, and what it has handled.
fn handling(took: Duration) -> (Arc<dyn HandlerFactory>, Arc<Mutex<Vec<String>>>) {
    let handled: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = handled.clone();
    let factory = handle(move |event, _| {
        let noted = noted.clone();
        async move {
            tokio::time::sleep(took).await;
            noted.lock().unwrap().push(event.id().to_owned());
            Ok(Outputs::Same)
        }
    });
    (factory, handled)
}

#[tokio::test(start_paused = true)]
async fn q06_a_run_ends_once_the_events_of_a_held_share_were_attempted_again() {
    let attempts = Arc::default();
    let hold = FailureKind::HoldShare { after: Some(Duration::from_secs(60)) };
    let factory = busy(Duration::from_secs(100), hold, &attempts);
    let bench = Bench::new().set(|builder| {
        let one = PoolConfig { share_limits: ShareLimits::default().in_hand(1), ..shared(2) };
        builder
            .input(Box::new(Script::of(flood(10, 1))))
            .pool("default", one)
            .handler("h", on(&["t"], factory))
    });
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered, report.retried), (11, 0, 2));
    assert!((ms(120_000)..ms(121_000)).contains(&report.elapsed), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn q06_a_drain_refuses_what_a_held_share_has_not_started() {
    let attempts = Arc::default();
    let hold = FailureKind::HoldShare { after: Some(Duration::from_secs(60)) };
    let factory = busy(Duration::from_secs(100), hold, &attempts);
    let bench = Bench::new().set(|builder| {
        let one = PoolConfig { share_limits: ShareLimits::default().in_hand(1), ..shared(2) };
        builder
            .input(Box::new(Script::of(flood(10, 1)).then(Step::Never)))
            .pool("default", one)
            .handler("h", on(&["t"], factory))
            .deadline(ms(2_000))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(1_000)).await;
    control.drain();
    let report = checked(run.await.unwrap());
    assert_eq!((report.handled, report.refused, report.dead_lettered), (1, 10, 0));
    assert!(report.elapsed < ms(4_000), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn q04_a_cap_above_the_workers_one_of_none_and_a_rate_of_one_in_two_hours() {
    let ends = Ends::default();
    let factory = noting(&ends, ms(10));
    let events = flood(4, 4).into_iter().chain((0..3).map(|n| of("slow", n)));
    let bench = Bench::new().set(|builder| {
        let in_two_hours = Rate::new(1, Duration::from_secs(7_200));
        builder
            .input(Box::new(Script::of(events.collect::<Vec<_>>())))
            .pool("default", shared(2))
            .share("default", "acme", ShareLimits::default().in_hand(100))
            .share("default", "bolt", ShareLimits::default().in_hand(0))
            .share("default", "slow", ShareLimits::default().rate(in_two_hours))
            .handler("h", on(&["t"], factory))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(3_600_000)).await;
    assert!(last(&ends, "acme") <= ms(40), "no more than there are workers: {ends:?}");
    let shares = control.pool("default").unwrap().shares().unwrap();
    let bolt = shares.status("bolt");
    assert_eq!((bolt.state, bolt.waiting), (ShareState::Paused, 4));
    shares.configure(ShareLimits::default(), [].into()).unwrap();
    tokio::time::sleep(ms(1_000)).await;
    assert!(last(&ends, "bolt") > ms(3_600_000));
    assert_eq!(checked(run.await.unwrap()).handled, 11);
}

#[tokio::test(start_paused = true)]
async fn q05_a_key_whose_events_change_their_share_waits_for_the_one_of_its_first() {
    let (factory, handled) = handling(ms(10));
    let event = |id: &str, key: &str, tenant: &str| {
        let event = Event::builder(id, "test", "t").subject(key).extension("tenant", tenant);
        event.build().unwrap()
    };
    let events = [event("1", "k", "acme"), event("2", "k", "bolt"), event("3", "l", "bolt")];
    let bench = Bench::new().set(|builder| {
        builder
            .input(Box::new(Script::of(events).then(Step::Wait(ms(10_000)))))
            .pool("default", shared(2))
            .share("default", "acme", ShareLimits::default().in_hand(0))
            .handler("h", on(&["t"], factory))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!(*handled.lock().unwrap(), ["3"]);
    let why = control.why("k").pop().unwrap().share.unwrap().to_string();
    assert!(why.starts_with("share acme: "), "{why}");
    control.pool("default").unwrap().shares().unwrap().set("acme", ShareLimits::default()).unwrap();
    checked(run.await.unwrap());
    assert_eq!(*handled.lock().unwrap(), ["3", "1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn q10_shares_that_were_seen_once_leave_nothing_in_the_engine() {
    const MANY: u64 = 30_000;
    let (factory, _) = handling(ms(1));
    let source = Script::of((0..MANY).map(|n| of(&format!("tenant-{n}"), 0)).collect::<Vec<_>>());
    let engine = per_share(factory, source.then(Step::Wait(ms(60_000)))).engine;
    let engine = engine.build().await.unwrap();
    let (control, observer) = (engine.control(), Observer::new(engine.control()));
    let run = tokio::spawn(engine.run());
    let shares = control.pool("default").unwrap().shares().unwrap();
    tokio::time::sleep(ms(1_000)).await;
    assert!(shares.list().len() > 1_000, "so many at once");
    while control.progress().settled < MANY {
        tokio::time::sleep(ms(1_000)).await;
    }
    assert_eq!(shares.list(), []);
    let families = observer.families();
    let series = families.get("actor_pool_share_in_hand").unwrap().series.len();
    assert!(series <= 21, "{series} series");
    assert_eq!(checked(run.await.unwrap()).handled, MANY);
}
