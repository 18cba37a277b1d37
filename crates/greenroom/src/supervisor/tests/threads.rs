//! On real threads, where reports, orders and their ends cross.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{tasks, up};
use crate::{
    Backoff, Restarts, Stop,
    supervisor::{
        ChildSpec, Strategy, Supervisor,
        fake::{Act, Fake},
    },
};

fn tough(child: impl Into<ChildSpec>) -> ChildSpec {
    let at_once = Backoff::new(Duration::ZERO, Duration::ZERO);
    let restarts = Restarts { max: u32::MAX, backoff: at_once, ..Restarts::default() };
    ChildSpec::new(child).restarts(restarts)
}

/// Fails whenever it is up.
async fn torment(fake: Arc<Fake>) {
    for _ in 0..300 {
        fake.may_panic();
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s01_children_that_fail_at_once_never_carry_out_two_orders_at_once() {
    let before = tasks();
    for strategy in [Strategy::OneForAll, Strategy::RestForOne, Strategy::OneForOne] {
        let (log, [a, b, c, d]) = Fake::some();
        let inner = Supervisor::new(strategy).child(tough(c.clone())).child(tough(d.clone()));
        let specs = [tough(a.clone()), tough(b.clone()), tough(inner)];
        let handle = up(strategy, &log, specs).await;
        let fakes = [a, b, c, d];
        fakes.iter().for_each(|fake| fake.queued.store(1, Ordering::SeqCst));
        let torments = fakes.map(|fake| tokio::spawn(torment(fake)));
        for torment in torments {
            torment.await.expect("no panic");
        }
        let report = handle.stop(Stop::within(Duration::from_secs(60))).await;
        assert_eq!(report.summary().left_over, 4, "{strategy:?}");
        let log = log.take();
        assert!(!log.contains("two orders at once"), "{strategy:?}: {log}");
    }
    while tasks() > before {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s01_an_order_waits_until_the_former_has_let_go_of_its_thread() {
    let (log, [a]) = Fake::some();
    let handle = up(Strategy::OneForOne, &log, [tough(a.clone())]).await;
    let (let_go, until) = std::sync::mpsc::channel();
    a.next("start", Act::Blocks(Arc::new(until.into())));
    a.may_panic();
    while !log.take().ends_with("a blocks") {
        tokio::task::yield_now().await;
    }
    let id = handle.children()[0].id;
    let mut removed = handle.remove(id).expect("a child");
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(log.take(), "");
    drop(let_go);
    assert!(removed.done(Duration::from_secs(60)).await.is_ok());
    assert!(log.take().ends_with("stop a"));
}
