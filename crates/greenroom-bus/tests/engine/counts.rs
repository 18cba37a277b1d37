//! What a running engine says of itself.

use crate::support::{Bench, event, handlers::slow, ms, on, pool, source::Script};

#[tokio::test(start_paused = true)]
async fn g08_progress_never_shows_more_settled_than_taken_and_ends_where_the_report_does() {
    let events = (0..200).map(|n| event(n, "t", Some(&format!("key-{n}"))));
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(events)));
        engine.pool("default", pool(2, 10)).handler("slow", on(&["t"], slow(ms(1))))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    let mut seen = Vec::new();
    while !run.is_finished() {
        tokio::time::sleep(ms(7)).await;
        let progress = control.progress();
        assert!(progress.settled <= progress.taken, "{progress:?}");
        assert_eq!(progress.read, None, "this source cannot tell");
        seen.push(progress.settled);
    }
    assert!(seen.is_sorted() && seen.iter().any(|settled| (1..200).contains(settled)), "{seen:?}");
    let report = run.await.unwrap();
    assert_eq!((seen.last().copied(), report.handled), (Some(200), 200));
    assert!(report.peak_queued <= 12 && report.peak_queued > 0, "{}", report.peak_queued);
    assert_eq!(report.outputs[0].events, 200);
}
