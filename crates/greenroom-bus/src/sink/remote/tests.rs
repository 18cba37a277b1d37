//! Requests to a target that answers as the test says, when the test says.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use greenroom::Backoff;
use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::*;
use crate::{
    event::Event,
    settlement::{Ack, Settle, Settled},
};

const SECOND: Duration = Duration::from_secs(1);

/// The events of a request, and the way to answer it.
type Asked = (Vec<u32>, oneshot::Sender<Attempted>);

/// A target whose requests wait for their answers.
#[derive(Clone, Default)]
struct Asking {
    batching: Option<Batching>,
    requests: Arc<Mutex<Vec<Asked>>>,
}

impl Remote for Asking {
    type Kept = u32;

    fn describe(&self) -> String {
        "asking".to_owned()
    }

    fn keep(&self, _: Event, _: Option<u64>) -> u32 {
        unreachable!("the tests push what is kept")
    }

    fn pace(&self) -> RequestPace {
        let (backoff, probe) = (Backoff::new(SECOND, SECOND), Backoff::new(SECOND, 64 * SECOND));
        RequestPace { concurrency: 8, batching: self.batching, backoff, probe }
    }

    async fn attempt(&self, events: &[WaitingEvent<u32>]) -> Attempted {
        let (answer, answered) = oneshot::channel();
        self.requests.lock().push((events.iter().map(|waiting| waiting.kept).collect(), answer));
        answered.await.unwrap()
    }
}

impl Asking {
    /// The request under way of the event with this number, once there is one.
    async fn request(&self, event: u32) -> Asked {
        for _ in 0..100_000 {
            if let Some(request) = self.take(event) {
                return request;
            }
            sleep(Duration::from_millis(1)).await;
        }
        panic!("event {event} is not sent");
    }

    fn take(&self, event: u32) -> Option<Asked> {
        let mut requests = self.requests.lock();
        let found = requests.iter().position(|(events, _)| events.contains(&event));
        found.map(|at| requests.swap_remove(at))
    }

    async fn answer(&self, event: u32, answer: Attempted) {
        self.request(event).await.1.send(answer).unwrap();
        // Its driver takes note.
        sleep(Duration::from_millis(1)).await;
    }
}

/// The settlement of an event whose partition may be lost.
struct Ticket(Arc<AtomicBool>);

impl Settle for Ticket {
    fn settled(&self, _how: Settled) {}

    fn is_revoked(&self) -> bool {
        self.0.load(Relaxed)
    }
}

struct Tell(std::sync::mpsc::Sender<Settled>);

impl Settle for Tell {
    fn settled(&self, how: Settled) {
        let _ = self.0.send(how);
    }
}

fn begin(target: &Asking, events: u32) -> Requests<Asking> {
    let requests = Requests::begin(target.clone(), SinkRoom::new(1 << 20, 100)).unwrap();
    (0..events).for_each(|event| requests.take(event, Ack::detached()));
    requests
}

fn failed() -> Attempted {
    Attempted::Failed { error: "500".to_owned(), after: None, had: TargetHad::Answered }
}

fn refused() -> Attempted {
    Attempted::Misconfigured("401".to_owned())
}

#[tokio::test(start_paused = true)]
async fn d13_what_an_earlier_configuration_is_told_does_not_end_the_pause_of_the_present_one() {
    let target = Asking::default();
    let requests = begin(&target, 2);
    target.answer(0, refused()).await;
    target.answer(1, Attempted::Replaced(TargetHad::Unknown)).await;
    assert!(requests.trouble().is_some_and(|trouble| trouble.paused));
    assert!(target.requests.lock().is_empty(), "it waits for the probe");
    assert_eq!(requests.unanswered(), 1);
    target.answer(0, Attempted::Stored).await;
    assert!(requests.trouble().is_none(), "it counts as no failure");
    target.answer(1, Attempted::Stored).await;
}

#[tokio::test(start_paused = true)]
async fn d13_refusals_of_requests_that_were_under_way_do_not_put_off_the_probe() {
    let target = Asking::default();
    let _requests = begin(&target, 8);
    let paused = Instant::now();
    for event in 0..8 {
        target.answer(event, refused()).await;
    }
    // They probe in the order in which they were refused.
    target.answer(0, refused()).await;
    target.answer(1, Attempted::Stored).await;
    assert!(paused.elapsed() < 4 * SECOND, "after 1 s and 2 s at most: {:?}", paused.elapsed());
}

#[tokio::test(start_paused = true)]
async fn d13_an_event_that_is_refused_until_it_is_corrected_holds_up_no_other() {
    let target = Asking::default();
    let requests = begin(&target, 3);
    target.answer(0, failed()).await;
    target.answer(1, Attempted::Refused("413".to_owned())).await;
    let trouble = requests.trouble().unwrap();
    assert_eq!((trouble.paused, &*trouble.error), (true, "413"));
    target.answer(2, Attempted::Stored).await;
    target.answer(1, Attempted::Stored).await;
    assert!(requests.trouble().is_some_and(|trouble| !trouble.paused), "the other still fails");
    target.answer(0, Attempted::Stored).await;
    assert!(requests.trouble().is_none());
}

#[tokio::test(start_paused = true)]
async fn d13_once_nothing_can_be_delivered_any_more_all_that_waits_is_refused() {
    let target = Asking::default();
    let requests = begin(&target, 0);
    let (told, ends) = std::sync::mpsc::channel();
    for event in 0..10 {
        let told = told.clone();
        requests.take(event, Ack::new(Tell(told)));
    }
    target.answer(0, failed()).await;
    target.answer(1, Attempted::Ended("no more".to_owned())).await;
    assert_eq!(requests.room().failure().unwrap().reason, "no more");
    assert_eq!(ends.try_iter().filter(|end| !end.is_acknowledged()).count(), 3);
    for event in 2..9 {
        target.answer(event, Attempted::Stored).await;
    }
    assert!(requests.room().ended().await.is_err());
    assert_eq!(ends.try_iter().filter(|end| end.is_acknowledged()).count(), 7);
}

#[tokio::test(start_paused = true)]
async fn d13_a_batch_whose_first_event_is_lost_leaves_no_trouble_behind() {
    let batching = Batching { events: 2, ..Batching::default() };
    let target = Asking { batching: Some(batching), ..Asking::default() };
    let requests = begin(&target, 0);
    let is_revoked = Arc::<AtomicBool>::default();
    requests.take(0, Ack::new(Ticket(is_revoked.clone())));
    requests.take(1, Ack::detached());
    target.answer(0, failed()).await;
    is_revoked.store(true, Relaxed);
    let (events, answer) = target.request(1).await;
    assert_eq!(events, [1]);
    answer.send(failed()).unwrap();
    target.answer(1, Attempted::Stored).await;
    assert!(requests.trouble().is_none(), "{:?}", requests.trouble());
}
