//! Inspecting a pool and its workers while they are full and stuck (A16).

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use greenroom::{
    Actor, Context, Pool, Restarts, Stop,
    inspect::{Inspection, Items, Value, WorkerStatus},
};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
enum Do {
    Publish(&'static str, i32),
    Panic,
    Hang,
}

struct Clerk;

impl Actor for Clerk {
    type Message = Do;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, what: Do, cx: &mut Context<Self>) -> Result<(), ()> {
        match what {
            Do::Publish(key, value) => cx.publish(key, value).map_err(drop),
            Do::Panic => panic!("on purpose"),
            Do::Hang => std::future::pending().await,
        }
    }
}

fn published(inspection: &Inspection, slot: usize) -> Vec<(&str, Value)> {
    let worker = &inspection.workers[slot];
    worker.published.iter().map(|(key, value)| (&**key, value.clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn a16_a_full_pool_with_a_stuck_handler_is_seen_at_once() {
    let pool = Pool::new(|_| Clerk).workers(1).capacity(3).name("desk").spawn().await.unwrap();
    pool.call(Do::Publish("cached", 17)).await.unwrap();
    pool.send(Do::Hang).await.unwrap();
    tokio::time::sleep(SECOND).await;
    while pool.try_send(Do::Hang).is_ok() {}
    let seen = pool.admin().inspect(&Items::All);
    assert_eq!(&*seen.pool, "desk");
    let stats = seen.stats.unwrap();
    assert_eq!((stats, stats.queued, stats.in_hand), (pool.stats(), 3, 1));
    let worker = &seen.workers[0];
    assert_eq!((seen.workers.len(), worker.slot, &*worker.name), (1, 0, "desk-0"));
    let figures = worker.figures.unwrap();
    assert_eq!((figures.status, figures.in_hand), (WorkerStatus::Live, true));
    assert_eq!((figures.restarts, figures.mailbox), (0, 0));
    assert_eq!(worker.value("cached"), Some(&Value::Int(17)));
}

/// Blocks its thread, and reports when it does.
struct Stone {
    stuck: Arc<AtomicBool>,
    held: Arc<Mutex<mpsc::Receiver<()>>>,
}

impl Actor for Stone {
    type Message = ();
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, (): (), cx: &mut Context<Self>) -> Result<(), ()> {
        cx.publish("state", "about to block").map_err(drop)?;
        self.stuck.store(true, Ordering::SeqCst);
        let _ = self.held.lock().unwrap().recv();
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a16_a_handler_that_blocks_its_thread_holds_up_nobody_who_looks() {
    let (let_go, held) = mpsc::channel();
    let (stuck, held) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(held)));
    let told = stuck.clone();
    let stone = move |_| Stone { stuck: told.clone(), held: held.clone() };
    for keyed in [false, true] {
        stuck.store(false, Ordering::SeqCst);
        let pool = Pool::new(stone.clone()).workers(1).capacity(2);
        let pool = match keyed {
            true => pool.ordered_by(|()| 1).max_per_key(4).spawn().await.unwrap(),
            false => pool.spawn().await.unwrap(),
        };
        pool.send(()).await.unwrap();
        while !stuck.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        while pool.try_send(()).is_ok() {}
        let seen = pool.admin().inspect(&Items::All);
        assert_eq!(seen.workers[0].value("state"), Some(&"about to block".into()));
        assert!(seen.workers[0].figures.unwrap().in_hand);
        assert_eq!(seen.stats.unwrap().queued, 2);
        (0..3).for_each(|_| let_go.send(()).unwrap());
        pool.stop(Stop::within(60 * SECOND)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a16_a_filter_leaves_out_what_is_not_wanted() {
    let pool = Pool::new(|_| Clerk).workers(1).spawn().await.unwrap();
    for (key, value) in [("a", 1), ("b", 2), ("c", 3)] {
        pool.call(Do::Publish(key, value)).await.unwrap();
    }
    let figures = pool.admin().inspect(&Items::Figures);
    assert!(figures.stats.is_some() && figures.workers[0].figures.is_some());
    assert_eq!(published(&figures, 0), []);
    let some = pool.admin().inspect(&Items::keys(["c", "a", "of nobody"]));
    assert!(some.stats.is_none() && some.workers[0].figures.is_none());
    assert_eq!(published(&some, 0), [("a", Value::Int(1)), ("c", Value::Int(3))]);
}

#[tokio::test(start_paused = true)]
async fn a16_values_survive_a_restart_and_not_the_worker() {
    let restarts = Restarts { max: 1, ..Restarts::default() };
    let pool = Pool::new(|_| Clerk).workers(2).restarts(restarts).spawn().await.unwrap();
    let admin = pool.admin();
    let first = admin.workers()[0].clone();
    first.call(Do::Publish("cached", 5)).await.unwrap();
    first.send(Do::Panic).await.unwrap();
    tokio::time::sleep(SECOND).await;
    let seen = admin.inspect(&Items::All);
    assert_eq!(seen.workers[0].figures.unwrap().restarts, 1);
    assert_eq!(published(&seen, 0), [("cached", Value::Int(5))]);
    first.send(Do::Panic).await.unwrap();
    tokio::time::sleep(SECOND).await;
    let seen = admin.inspect(&Items::All);
    assert_eq!(seen.workers[0].figures.unwrap().status, WorkerStatus::Disabled);
    assert_eq!(published(&seen, 0), [("cached", Value::Int(5))], "to see what it died of");
    admin.remove_worker(0).unwrap().done(SECOND).await;
    let slots = |seen: &Inspection| seen.workers.iter().map(|seen| seen.slot).collect::<Vec<_>>();
    assert_eq!(slots(&admin.inspect(&Items::All)), [1]);
    admin.add(1).unwrap().done(SECOND).await;
    let seen = admin.inspect(&Items::All);
    assert_eq!((slots(&seen), published(&seen, 0)), (vec![0, 1], vec![]), "another worker");
}

#[tokio::test(start_paused = true)]
async fn a16_messages_for_one_worker_are_its_mailbox_and_one_that_leaves_is_seen() {
    let pool = Pool::new(|_| Clerk).workers(1).spawn().await.unwrap();
    let worker = pool.admin().workers()[0].clone();
    for _ in 0..4 {
        worker.send(Do::Hang).await.unwrap();
    }
    tokio::time::sleep(SECOND).await;
    let figures = pool.admin().inspect(&Items::Figures).workers[0].figures.unwrap();
    assert_eq!((figures.mailbox, figures.in_hand), (3, true));
    let _begun = pool.admin().remove(1).unwrap();
    let figures = pool.admin().inspect(&Items::Figures).workers[0].figures.unwrap();
    assert_eq!((figures.status, figures.in_hand), (WorkerStatus::Leaving, true));
}
