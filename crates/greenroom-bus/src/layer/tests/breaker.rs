//! The circuit breaker.

use super::*;

fn breaker() -> (CircuitBreaker, Arc<dyn HandlerFactory>) {
    let breaker = CircuitBreaker::new(3, ms(100));
    let factory = Layers::new().layer(breaker.clone()).around(obedient());
    (breaker, factory)
}

async fn open(breaker: &CircuitBreaker, handler: &mut Box<dyn Handler>) {
    for _ in 0..3 {
        assert_eq!(breaker.state(), CircuitState::Closed);
        let failed = kind(make(handler, &order(1, "retry")).await);
        assert_eq!(failed, Some(FailureKind::Retry { after: None }));
    }
    assert_eq!(breaker.state(), CircuitState::Open);
}

const RELEASED: Option<FailureKind> = Some(FailureKind::Released);

#[tokio::test(start_paused = true)]
async fn r07_a_breaker_opens_after_failures_in_a_row_and_closes_after_a_probe() {
    let (breaker, factory) = breaker();
    let mut handler = factory.build(0).unwrap();
    open(&breaker, &mut handler).await;
    tokio::time::advance(ms(99)).await;
    assert_eq!(kind(make(&mut handler, &event(1)).await), RELEASED);
    tokio::time::advance(ms(1)).await;
    make(&mut handler, &event(1)).await.unwrap();
    assert_eq!((breaker.state(), breaker.opened()), (CircuitState::Closed, 1));
    open(&breaker, &mut handler).await;
}

#[tokio::test(start_paused = true)]
async fn r07_a_probe_that_fails_opens_the_breaker_again() {
    let (breaker, factory) = breaker();
    let mut handler = factory.build(0).unwrap();
    open(&breaker, &mut handler).await;
    tokio::time::advance(ms(100)).await;
    make(&mut handler, &order(1, "retry")).await.unwrap_err();
    assert_eq!((breaker.state(), breaker.opened()), (CircuitState::Open, 2));
    assert_eq!(kind(make(&mut handler, &event(1)).await), RELEASED);
}

#[tokio::test(start_paused = true)]
async fn r07_a_success_or_a_reject_between_failures_keeps_the_breaker_closed() {
    let (breaker, factory) = breaker();
    let mut handler = factory.build(0).unwrap();
    for subject in ["retry", "retry", "reject", "retry", "retry", "released", "retry"] {
        assert_eq!(breaker.state(), CircuitState::Closed);
        make(&mut handler, &order(1, subject)).await.unwrap_err();
    }
    assert_eq!(breaker.state(), CircuitState::Open, "what is given back unstarted says nothing");
}

#[tokio::test(start_paused = true)]
async fn r07_an_event_that_is_parked_shows_that_the_system_answers() {
    let (breaker, factory) = breaker();
    let mut handler = factory.build(0).unwrap();
    for subject in ["retry", "retry", "park", "retry", "retry", "park", "park", "park"] {
        make(&mut handler, &order(1, subject)).await.unwrap_err();
        assert_eq!(breaker.state(), CircuitState::Closed);
    }
    open(&breaker, &mut handler).await;
    tokio::time::advance(ms(100)).await;
    make(&mut handler, &order(1, "park")).await.unwrap_err();
    assert_eq!((breaker.state(), breaker.opened()), (CircuitState::Closed, 1));
}

#[tokio::test(start_paused = true)]
async fn r07_what_a_layer_inside_answers_says_nothing_of_the_system() {
    let breaker = CircuitBreaker::new(3, ms(100));
    let inside = Before(|request: &mut Request| match request.event.id() {
        "seen" => Err(Ok(Outputs::None)),
        "bad" => Err(Err(Failure::reject("it does not fit its schema"))),
        _ => Ok(()),
    });
    let layers = Layers::new().layer(breaker.clone()).layer(inside);
    let mut handler = layers.around(obedient()).build(0).unwrap();
    for n in 0..3 {
        assert_eq!(breaker.state(), CircuitState::Closed);
        make(&mut handler, &event("seen")).await.unwrap();
        make(&mut handler, &event("bad")).await.unwrap_err();
        make(&mut handler, &order(n, "retry")).await.unwrap_err();
    }
    assert_eq!(breaker.state(), CircuitState::Open, "three failures in a row");
    tokio::time::advance(ms(100)).await;
    for id in ["seen", "bad"] {
        let _ = make(&mut handler, &event(id)).await;
        assert_eq!(breaker.state(), CircuitState::Open, "{id} was no probe");
    }
    make(&mut handler, &event(1)).await.unwrap();
    assert_eq!((breaker.state(), breaker.opened()), (CircuitState::Closed, 1));
}

#[tokio::test(start_paused = true)]
async fn r07_one_event_probes_at_a_time_and_a_probe_that_is_dropped_has_failed() {
    let (breaker, factory) = breaker();
    let (mut first, mut second) = (factory.build(0).unwrap(), factory.build(1).unwrap());
    open(&breaker, &mut first).await;
    tokio::time::advance(ms(100)).await;
    let never = order(1, "never");
    {
        let mut probe = Box::pin(make(&mut first, &never));
        assert!(tokio::time::timeout(ms(1), &mut probe).await.is_err());
        assert_eq!(breaker.state(), CircuitState::HalfOpen);
        assert_eq!(kind(make(&mut second, &event(2)).await), RELEASED);
    }
    assert_eq!((breaker.state(), breaker.opened()), (CircuitState::Open, 2));
    tokio::time::advance(ms(100)).await;
    make(&mut second, &event(2)).await.unwrap();
    assert_eq!(breaker.state(), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn r07_a_probe_that_was_not_made_leaves_its_place_to_another() {
    let (breaker, factory) = breaker();
    let mut handler = factory.build(0).unwrap();
    open(&breaker, &mut handler).await;
    tokio::time::advance(ms(100)).await;
    assert_eq!(kind(make(&mut handler, &order(1, "released")).await), RELEASED);
    make(&mut handler, &event(1)).await.unwrap();
    assert_eq!((breaker.state(), breaker.opened()), (CircuitState::Closed, 1));
}

#[tokio::test(start_paused = true)]
async fn r07_an_attempt_from_before_says_nothing_of_a_breaker_that_has_changed_since() {
    let (breaker, factory) = breaker();
    let (mut slow, mut other) = (factory.build(0).unwrap(), factory.build(1).unwrap());
    let never = order(1, "never");
    {
        let mut old = Box::pin(make(&mut slow, &never));
        assert!(tokio::time::timeout(ms(1), &mut old).await.is_err());
        open(&breaker, &mut other).await;
        tokio::time::advance(ms(100)).await;
        make(&mut other, &event(1)).await.unwrap();
    }
    assert_eq!(breaker.state(), CircuitState::Closed);
    make(&mut other, &order(1, "retry")).await.unwrap_err();
    make(&mut other, &order(1, "retry")).await.unwrap_err();
    assert_eq!(breaker.state(), CircuitState::Closed, "the old one's failure was not counted");
}

#[tokio::test(start_paused = true)]
async fn r07_clones_of_a_breaker_stand_for_one_system() {
    let breaker = CircuitBreaker::new(1, ms(100));
    let layers = Layers::new().layer(breaker.clone());
    let mut one = layers.around(obedient()).build(0).unwrap();
    let mut other = layers.around(obedient()).build(0).unwrap();
    make(&mut one, &order(1, "retry")).await.unwrap_err();
    assert_eq!(kind(make(&mut other, &event(1)).await), RELEASED);
}
