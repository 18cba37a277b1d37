//! The small ones among the supplied layers.

use super::*;
use crate::event::{CAUSATION_ID, CORRELATION_ID, TRACEPARENT};

#[tokio::test(start_paused = true)]
async fn r07_a_timeout_drops_the_handler_at_its_await() {
    struct Told(Log);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.lock().unwrap().push("dropped".to_owned());
        }
    }
    let log = Log::default();
    let told = log.clone();
    let inner = handler(move |event| {
        let told = Told(told.clone());
        async move {
            let _told = told;
            tokio::time::sleep(ms(event.id().parse().unwrap())).await;
            Ok(Outputs::Same)
        }
    });
    let layers = Layers::new().layer(TimeoutLayer::new(ms(100)));
    let mut handler = layers.around(inner).build(0).unwrap();
    let began = tokio::time::Instant::now();
    assert_eq!(kind(make(&mut handler, &event(5_000)).await), Some(FailureKind::Timeout));
    assert!((100..=101).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    assert_eq!(logged(&log), ["dropped"]);
    make(&mut handler, &event(99)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn r07_a_rate_is_that_of_all_workers() {
    let layers = Layers::new().layer(RateLimitLayer::new(2, Duration::from_secs(1)));
    let factory = layers.around(obedient());
    let began = tokio::time::Instant::now();
    let workers = (0..6).map(|worker| {
        let mut handler = factory.build(worker).unwrap();
        tokio::spawn(async move {
            make(&mut handler, &event(worker)).await.unwrap();
            began.elapsed().as_secs()
        })
    });
    let mut when = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        when.push(worker.await.unwrap());
    }
    assert_eq!(when, [0, 0, 1, 1, 2, 2]);
}

#[tokio::test]
async fn r07_correlation_begins_a_flow_and_leaves_one_that_is_there() {
    let inner = handler(|event| async move {
        let made = Event::builder("made", "/h", "made").extension(
            "seen",
            match event.extension(CORRELATION_ID) {
                Some(_) => "yes",
                None => "no",
            },
        );
        Ok(match event.subject() {
            Some(_) => Outputs::Same,
            None => Outputs::Events(vec![made.build()?]),
        })
    });
    let mut handler = Layers::new().layer(Correlation).around(inner).build(0).unwrap();
    let Ok(Outputs::Events(made)) = make(&mut handler, &event("a")).await else { panic!() };
    assert_eq!(made[0].extension("seen"), Some(&"yes".into()));
    assert_eq!(made[0].extension(CORRELATION_ID), Some(&"a".into()));
    assert_eq!(made[0].extension(CAUSATION_ID), Some(&"a".into()));
    let Ok(Outputs::Events(passed)) = make(&mut handler, &order("b", "same")).await else {
        panic!()
    };
    assert_eq!(passed[0].extension(CORRELATION_ID), Some(&"b".into()));
    assert_eq!((passed.len(), passed[0].id()), (1, "b"));
    let flowing =
        Event::builder("c", "/test", "t").subject("same").extension(CORRELATION_ID, "flow");
    let result = make(&mut handler, &flowing.build().unwrap()).await;
    assert!(matches!(result, Ok(Outputs::Same)), "{result:?}");
}

/// What is logged, each line with the spans that it is in.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn take(&self) -> Vec<String> {
        let text = String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }
}

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn r07_tracing_puts_a_span_around_the_handler_also_after_its_await() {
    let log = Lines::default();
    let written = log.clone();
    let format = tracing_subscriber::fmt().with_writer(move || written.clone()).with_ansi(false);
    let format = format.without_time().with_target(false).finish();
    let _guard = tracing::subscriber::set_default(format);
    let inner = handler(|_| async move {
        tokio::time::sleep(ms(1)).await;
        tracing::info!("handled");
        Ok(Outputs::None)
    });
    let mut handler = Layers::new().layer(Traced).around(inner).build(0).unwrap();
    let traced = Event::builder("a", "/test", "t")
        .extension(CORRELATION_ID, "flow")
        .extension(TRACEPARENT, "00-ab-cd-01")
        .build()
        .unwrap();
    make(&mut handler, &traced).await.unwrap();
    let fields = r#"pool="default" handler="sample" worker=0 attempt=1"#;
    let flow = r#"correlation="flow" traceparent="00-ab-cd-01""#;
    let expected =
        format!(r#"INFO event{{type="t" id="a" source="/test" {fields} {flow}}}: handled"#);
    assert_eq!(log.take(), [expected]);
    // Of a batch, the span is that of its first event.
    handler.handle_all(&[(&event("b"), attempt()), (&event("c"), attempt())]).await;
    let first = format!(r#"INFO event{{type="t" id="b" source="/test" {fields}}}: handled"#);
    assert_eq!(log.take(), [first.clone(), first]);
}

#[tokio::test(start_paused = true)]
async fn r07_metrics_count_every_attempt_once_by_what_it_ends_in() {
    let (outside, inside) = (Metrics::default(), Metrics::default());
    let layers =
        Layers::new().layer(outside.clone()).layer(TimeoutLayer::new(ms(80))).layer(inside.clone());
    let factory = layers.around(obedient());
    let mut handler = factory.build(0).unwrap();
    for subject in ["retry", "retry", "reject", "released", "never"] {
        make(&mut handler, &order(1, subject)).await.unwrap_err();
    }
    make(&mut handler, &event(1)).await.unwrap();
    let mut panics = factory.build(1).unwrap();
    tokio::spawn(async move { make(&mut panics, &order(1, "panic")).await }).await.unwrap_err();
    let seen = outside.snapshot();
    assert_eq!((seen.begun, seen.in_hand, seen.handled, seen.failed), (7, 0, 1, 2));
    assert_eq!((seen.rejected, seen.released, seen.timed_out, seen.cancelled), (1, 1, 1, 1));
    assert!((ms(79)..ms(83)).contains(&seen.took_most), "{:?}", seen.took_most);
    let inner = inside.snapshot();
    assert_eq!((inner.begun, inner.timed_out, inner.cancelled), (7, 0, 2));
}
