//! Who listens, and what is sampled for them, in virtual time.

use super::*;

fn counting(from: u64) -> impl FnMut() -> String + Send + 'static {
    let mut next = from;
    move || {
        next += 1;
        next.to_string()
    }
}

async fn next(samples: &mut watch::Receiver<Bytes>) -> String {
    samples.changed().await.unwrap();
    String::from_utf8(samples.borrow_and_update().to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn o07_one_sampler_serves_all_who_listen_and_none_runs_for_nobody() {
    let live = Live::default();
    let mut first = live.listen(|| counting(0));
    assert_eq!(next(&mut first).await, "data: 1\n\n");
    let mut second = live.listen(|| counting(100));
    let (one, other) = (next(&mut first).await, next(&mut second).await);
    assert_eq!((one.as_str(), other.as_str()), ("data: 2\n\n", "data: 2\n\n"));
    assert_eq!(live.0.samplers.load(Ordering::Relaxed), 1);
    drop((first, second));
    sleep(PERIOD * 3).await;
    assert!(live.0.samples.lock().is_none(), "nobody listens: it has ended");
    let mut later = live.listen(|| counting(200));
    assert_eq!(next(&mut later).await, "data: 201\n\n");
    assert_eq!(live.0.samplers.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn o07_who_does_not_keep_up_gets_the_latest_and_holds_up_nobody() {
    let live = Live::default();
    let (mut slow, mut quick) = (live.listen(|| counting(0)), live.listen(|| counting(0)));
    for _ in 0..50 {
        next(&mut quick).await;
    }
    assert_eq!(next(&mut slow).await, "data: 50\n\n");
}

#[test]
fn o07_listeners_are_bounded() {
    let live = Live::default();
    let all: Vec<_> = (0..LISTENERS).map_while(|_| live.enter()).collect();
    assert_eq!(all.len(), LISTENERS);
    assert!(live.enter().is_none());
    drop(all);
    assert!(live.enter().is_some());
}
