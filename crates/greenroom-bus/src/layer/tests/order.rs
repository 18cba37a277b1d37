//! What layers promise, whatever they do.

use tower::{ServiceBuilder, limit::ConcurrencyLimitLayer, load_shed::LoadShedLayer, service_fn};

use super::*;

fn noting(
    log: &Log,
    name: &'static str,
) -> Before<impl Fn(&mut Request) -> Result<(), HandlerResult> + Clone + use<>> {
    let log = log.clone();
    Before(move |_: &mut Request| {
        log.lock().unwrap().push(name.to_owned());
        Ok(())
    })
}

#[tokio::test]
async fn r07_the_first_layer_added_is_the_outermost() {
    let log = Log::default();
    let inside = Layers::new()
        .layer(noting(&log, "third"))
        .layer(ServiceBuilder::new().layer(noting(&log, "fourth")).layer(noting(&log, "fifth")));
    let layers =
        Layers::new().layer(noting(&log, "first")).layer(noting(&log, "second")).and(&inside);
    let at_last = log.clone();
    let inner = handler(move |_| {
        at_last.lock().unwrap().push("handler".to_owned());
        async { Ok(Outputs::None) }
    });
    let mut handler = layers.around(inner).build(0).unwrap();
    for _ in 0..2 {
        make(&mut handler, &event(1)).await.unwrap();
        let expected = ["first", "second", "third", "fourth", "fifth", "handler"];
        assert_eq!(logged(&log), expected);
    }
}

#[tokio::test]
async fn r07_without_layers_a_handler_is_what_it_was() {
    let factory = obedient();
    assert!(Arc::ptr_eq(&Layers::new().around(factory.clone()), &factory));
    assert!(Layers::new().layer(Traced).around(factory).watches_settlement());
}

#[tokio::test]
async fn r07_a_layer_may_answer_in_the_handlers_place_and_put_another_event_in() {
    let answers = Before(|request: &mut Request| match request.event.id() {
        "skipped" => Err(Ok(Outputs::None)),
        "refused" => Err(Err(Failure::reject("refused"))),
        _ => {
            request.event = event("another");
            Ok(())
        }
    });
    let inner = handler(|event| async move { Ok(Outputs::Events(vec![event])) });
    let mut handler = Layers::new().layer(answers).around(inner).build(0).unwrap();
    assert!(matches!(make(&mut handler, &event("skipped")).await, Ok(Outputs::None)));
    assert_eq!(kind(make(&mut handler, &event("refused")).await), Some(FailureKind::Reject));
    let Ok(Outputs::Events(made)) = make(&mut handler, &event("1")).await else { panic!() };
    assert_eq!(made[0].id(), "another");
}

#[tokio::test(start_paused = true)]
async fn r07_a_layer_that_never_answers_ends_at_the_limit_outside_of_it() {
    let silent = Layers::new().layer(TimeoutLayer::new(ms(50))).layer(tower::layer::layer_fn(
        |_inner: LayersService| {
            service_fn(|_: Request| std::future::pending::<Result<Outputs, BoxError>>())
        },
    ));
    let mut handler = silent.around(obedient()).build(0).unwrap();
    for _ in 0..2 {
        assert_eq!(kind(make(&mut handler, &event(1)).await), Some(FailureKind::Timeout));
    }
}

/// Cancelling is all that can be done about it, and leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn r07_a_layer_that_is_never_ready_can_be_cancelled() {
    let held = ConcurrencyLimitLayer::new(1);
    let factory = Layers::new().layer(held).around(obedient());
    let (mut first, mut second) = (factory.build(0).unwrap(), factory.build(1).unwrap());
    let never = order(1, "never");
    {
        let holds = tokio::time::timeout(ms(20), make(&mut first, &never));
        let waits = async {
            tokio::time::sleep(ms(1)).await;
            tokio::time::timeout(ms(9), make(&mut second, &event(2))).await
        };
        let (held, waited) = tokio::join!(holds, waits);
        assert!(held.is_err() && waited.is_err());
    }
    make(&mut second, &event(3)).await.unwrap();
    make(&mut first, &event(4)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn r07_a_layer_without_room_gives_the_event_back_unstarted() {
    let layers = Layers::new().layer(LoadShedLayer::new()).layer(ConcurrencyLimitLayer::new(1));
    let factory = layers.around(obedient());
    let (mut first, mut second) = (factory.build(0).unwrap(), factory.build(1).unwrap());
    let never = order(1, "never");
    let holds = tokio::time::timeout(ms(20), make(&mut first, &never));
    let other = event(2);
    let (_, shed) = tokio::join!(holds, make(&mut second, &other));
    assert_eq!(kind(shed), Some(FailureKind::Released));
}

#[tokio::test]
async fn r07_a_layer_that_panics_is_built_anew_and_what_it_shares_is_kept() {
    let built = Arc::new(Mutex::new(0));
    let counted = built.clone();
    let panics = tower::layer::layer_fn(move |inner: LayersService| {
        *counted.lock().unwrap() += 1;
        let panics = Before(|request: &mut Request| match request.event.id() {
            "bad" => panic!("a layer that cannot bear it"),
            _ => Ok(()),
        });
        Surrounded::new(panics, inner)
    });
    let metrics = Metrics::default();
    let factory = Layers::new().layer(metrics.clone()).layer(panics).around(obedient());
    for (id, panics) in [("good", false), ("bad", true), ("good", false), ("good", false)] {
        let mut handler = factory.build(0).unwrap();
        let task = tokio::spawn(async move { make(&mut handler, &event(id)).await });
        assert_eq!(task.await.is_err(), panics);
    }
    assert_eq!(*built.lock().unwrap(), 2);
    let seen = metrics.snapshot();
    assert_eq!((seen.begun, seen.handled, seen.cancelled, seen.in_hand), (4, 3, 1, 0));
}

#[tokio::test]
async fn r07_a_layer_that_says_it_is_of_no_use_any_more_is_built_anew() {
    #[derive(Clone)]
    struct Broken(bool, LayersServiceOnce);
    type LayersServiceOnce = Arc<Mutex<u32>>;
    impl<S> Layer<S> for Broken {
        type Service = Self;
        fn layer(&self, _inner: S) -> Self {
            let mut built = self.1.lock().unwrap();
            *built += 1;
            Self(*built == 1, self.1.clone())
        }
    }
    impl Service<Request> for Broken {
        type Response = Outputs;
        type Error = BoxError;
        type Future = std::future::Ready<Result<Outputs, BoxError>>;
        fn poll_ready(
            &mut self,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), BoxError>> {
            std::task::Poll::Ready(if self.0 { Err("it broke".into()) } else { Ok(()) })
        }
        fn call(&mut self, _: Request) -> Self::Future {
            std::future::ready(Ok(Outputs::Same))
        }
    }
    let layers = Layers::new().layer(Broken(false, Arc::default()));
    let mut handler = layers.around(obedient()).build(0).unwrap();
    let failure = make(&mut handler, &event(1)).await.unwrap_err();
    assert_eq!((failure.kind, &*failure.error), (FailureKind::Retry { after: None }, "it broke"));
    assert!(make(&mut handler, &event(1)).await.is_ok());
}
