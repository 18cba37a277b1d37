//! Who listens, and what is sampled for them, in virtual time.

use std::sync::atomic::Ordering;

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

/// As many as may listen from this address.
fn fill(live: &Live, host: u8, role: Role) -> Vec<Listening> {
    std::iter::from_fn(|| live.enter([10, 0, 0, host].into(), role).ok()).collect()
}

#[test]
fn o07_listeners_are_bounded() {
    let live = Live::default();
    let all = fill(&live, 1, Role::Local);
    assert_eq!(all.len(), LISTENERS);
    let why = live.enter([10, 0, 0, 2].into(), Role::Admin).err();
    assert_eq!(why.as_deref(), Some("16 pages are listening, which is the limit"));
    drop(all);
    assert_eq!(fill(&live, 1, Role::Local).len(), LISTENERS);
}

#[test]
fn o07_who_listens_from_one_address_or_with_the_read_token_locks_nobody_out() {
    let live = Live::default();
    let one = fill(&live, 1, Role::Reader);
    assert_eq!(one.len(), OF_ADDRESS);
    let why = live.enter([10, 0, 0, 1].into(), Role::Reader).err();
    let expected = "8 pages from 10.0.0.1 are listening with the read token, which is the limit";
    assert_eq!(why.as_deref(), Some(expected));
    let other = fill(&live, 2, Role::Reader);
    assert_eq!(one.len() + other.len(), READERS);
    let why = live.enter([10, 0, 0, 3].into(), Role::Reader).err();
    let expected = "12 pages are listening with the read token, which is the limit";
    assert_eq!(why.as_deref(), Some(expected));
    assert_eq!(fill(&live, 1, Role::Admin).len(), LISTENERS - READERS);
    drop(one);
    assert_eq!(fill(&live, 1, Role::Reader).len(), OF_ADDRESS);
}
