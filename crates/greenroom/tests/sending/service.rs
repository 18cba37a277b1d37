//! A pool as a tower service (P29).

use std::{
    future::poll_fn,
    task::{Context as Task, Poll, Waker},
    time::Duration,
};

use greenroom::{
    Actor, CallError, Context, NotAccepted, Pool, SendError, Stop, service::PoolService,
};
use tower::{Service, ServiceBuilder, ServiceExt, load_shed::error::Overloaded};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Ask {
    Echo(u32),
    Sleep(Duration),
    Fail,
    BadKey,
}

struct Desk;

impl Actor for Desk {
    type Message = Ask;
    type Reply = u32;
    type Error = &'static str;

    async fn handle(&mut self, message: Ask, _cx: &mut Context<Self>) -> Result<u32, &'static str> {
        match message {
            Ask::Echo(number) => return Ok(number),
            Ask::Sleep(time) => tokio::time::sleep(time).await,
            Ask::Fail | Ask::BadKey => return Err("as asked"),
        }
        Ok(0)
    }
}

type DeskService = PoolService<Ask, u32, &'static str>;
type Ready = Poll<Result<(), CallError<&'static str>>>;

const SECOND: Duration = Duration::from_secs(1);

async fn desks(workers: usize, capacity: usize) -> Pool<Desk> {
    Pool::new(|_| Desk).workers(workers).capacity(capacity).spawn().await.unwrap()
}

fn poll_ready(service: &mut DeskService) -> Ready {
    service.poll_ready(&mut Task::from_waker(Waker::noop()))
}

fn is_full(pool: &Pool<Desk>) -> bool {
    pool.try_reserve().is_err_and(|why| why == NotAccepted::Full)
}

#[tokio::test]
async fn p29_a_request_is_answered_by_a_worker() {
    let pool = desks(2, 2).await;
    let mut service = pool.service();
    assert_eq!(service.ready().await.unwrap().call(Ask::Echo(7)).await, Ok(7));
    let failed = service.ready().await.unwrap().call(Ask::Fail).await;
    assert_eq!(failed, Err(CallError::Failed("as asked")));
}

#[tokio::test]
async fn p29_readiness_holds_a_permit_and_a_drop_releases_it() {
    let pool = desks(1, 1).await;
    let mut service = pool.service();
    assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
    assert!(is_full(&pool));
    assert_eq!(
        poll_ready(&mut service),
        Poll::Ready(Ok(())),
        "asking again takes no second permit"
    );
    drop(service);
    assert!(!is_full(&pool));
}

#[tokio::test]
async fn p29_a_call_uses_the_permit_and_the_next_needs_another() {
    let pool = desks(1, 1).await;
    let mut service = pool.service();
    assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
    let reply = service.call(Ask::Echo(1));
    assert_eq!(poll_ready(&mut service), Poll::Pending, "the message holds the only room");
    assert_eq!(reply.await, Ok(1));
    assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())), "the started message gave it back");
}

#[tokio::test]
async fn p29_a_clone_starts_without_a_permit() {
    let pool = desks(1, 2).await;
    let mut service = pool.service();
    assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
    let clone = service.clone();
    let second = pool.try_reserve().unwrap();
    assert!(is_full(&pool), "one permit each, and none of the clone's");
    drop((second, service));
    let (first, second) = (pool.try_reserve().unwrap(), pool.try_reserve().unwrap());
    assert!(is_full(&pool));
    drop((first, second, clone));
}

#[tokio::test]
async fn p29_a_full_pool_is_not_ready_and_wakes_who_waits() {
    let pool = desks(1, 1).await;
    let held = pool.reserve().await.unwrap();
    let mut service = pool.service();
    assert_eq!(poll_ready(&mut service), Poll::Pending);
    let waiting = tokio::spawn(async move { service.ready().await.map(|_| ()) });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(held);
    assert_eq!(waiting.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn p29_a_wait_that_is_dropped_leaves_its_place_to_the_next() {
    let pool = desks(1, 1).await;
    let held = pool.reserve().await.unwrap();
    let (mut first, mut second) = (pool.service(), pool.service());
    assert_eq!(poll_ready(&mut first), Poll::Pending);
    assert_eq!(poll_ready(&mut second), Poll::Pending);
    drop(first);
    drop(held);
    assert_eq!(poll_ready(&mut second), Poll::Ready(Ok(())));
}

#[tokio::test(start_paused = true)]
async fn p29_a_stop_resolves_who_waits_for_readiness() {
    let pool = desks(1, 1).await;
    let held = pool.reserve().await.unwrap();
    let mut service = pool.service();
    let ready = poll_fn(|task| service.poll_ready(task));
    let (ready, _) = tokio::join!(ready, pool.stop(Stop::within(SECOND)));
    assert_eq!(ready, Err(SendError::Stopped(()).into()));
    assert_eq!(
        poll_ready(&mut service),
        Poll::Ready(Err(SendError::Stopped(()).into())),
        "and says it again"
    );
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn p29_a_permit_used_after_the_stop_answers_stopped() {
    let pool = desks(1, 1).await;
    let mut service = pool.service();
    assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
    pool.stop(Stop::within(SECOND)).await;
    assert_eq!(service.call(Ask::Echo(1)).await, Err(SendError::Stopped(()).into()));
    let stats = pool.stats();
    assert_eq!((stats.accepted, stats.rejected), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn p29_a_dropped_response_abandons_the_call() {
    let pool = desks(1, 2).await;
    let mut service = pool.service();
    let busy = service.ready().await.unwrap().call(Ask::Sleep(SECOND));
    let abandoned = service.ready().await.unwrap().call(Ask::Echo(1));
    drop(abandoned);
    assert_eq!(busy.await, Ok(0));
    let stats = pool.stop(Stop::within(SECOND)).await.stats;
    assert_eq!((stats.handled, stats.dead_lettered), (1, 1));
}

#[tokio::test]
async fn p29_a_key_function_that_panics_leaves_the_permit_free() {
    let key = |ask: &Ask| match ask {
        Ask::BadKey => panic!("no key"),
        _ => 0,
    };
    let pool = Pool::new(|_| Desk).workers(1).capacity(1).ordered_by(key).spawn().await.unwrap();
    let mut service = pool.service();
    assert_eq!(poll_ready(&mut service), Poll::Ready(Ok(())));
    let call = std::panic::AssertUnwindSafe(|| drop(service.call(Ask::BadKey)));
    assert!(std::panic::catch_unwind(call).is_err());
    assert!(!is_full(&pool));
    assert_eq!(service.ready().await.unwrap().call(Ask::Echo(3)).await, Ok(3));
}

#[tokio::test]
#[should_panic(expected = "poll_ready has not been ready")]
async fn p29_a_call_without_readiness_is_a_bug_of_the_caller() {
    let pool = desks(1, 1).await;
    drop(pool.service().call(Ask::Echo(1)));
}

#[tokio::test(start_paused = true)]
async fn p29_a_saturated_pool_behind_load_shed_answers_overloaded() {
    let pool = desks(1, 2).await;
    let in_words = |error: CallError<&'static str>| error.to_string();
    let service = ServiceBuilder::new().load_shed().map_err(in_words).service(pool.service());
    let answers = (0..10).map(|_| tokio::spawn(service.clone().oneshot(Ask::Sleep(SECOND))));
    let mut overloaded = 0;
    for answer in answers.collect::<Vec<_>>() {
        match answer.await.unwrap() {
            Ok(reply) => assert_eq!(reply, 0),
            Err(error) if error.is::<Overloaded>() => overloaded += 1,
            Err(error) => panic!("{error}"),
        }
    }
    // There is room for two in line and one in hand.
    assert!((7..=8).contains(&overloaded), "{overloaded} were shed");
    assert_eq!(service.oneshot(Ask::Echo(5)).await.unwrap(), 5, "and none is shed afterwards");
}

#[tokio::test(start_paused = true)]
async fn p29_other_layers_of_tower_fit_around_a_pool() {
    let pool = desks(4, 100).await;
    let service = ServiceBuilder::new().concurrency_limit(1).service(pool.service());
    let started = tokio::time::Instant::now();
    let calls = (0..3).map(|_| tokio::spawn(service.clone().oneshot(Ask::Sleep(SECOND))));
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap(), Ok(0));
    }
    assert!(started.elapsed() >= 3 * SECOND, "one at a time, although four could");
}

#[test]
fn p29_a_service_is_what_frameworks_ask_for() {
    fn asked<S: Service<Ask, Future: Send + 'static> + Clone + Send + Sync + Unpin + 'static>() {}
    asked::<DeskService>();
}
