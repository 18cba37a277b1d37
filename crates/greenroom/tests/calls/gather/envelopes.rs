//! The envelope is kept for each copy of a broadcast message.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    Answer, AnyAddress, CancellationToken, Class, DeadLetterReason, Delivery, Envelope, Pool, Stop,
    prelude::*,
};

const SECOND: Duration = Duration::from_secs(1);

/// A message, as a worker has seen it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    slot: usize,
    message: u32,
    class: Class,
    sender: Option<AnyAddress>,
}

/// Records its messages. The message 0 takes a second, and 9 waits for its token.
#[derive(Clone, Default)]
struct Scribe(Arc<Mutex<Vec<Seen>>>);

impl Scribe {
    fn seen(&self) -> Vec<Seen> {
        self.0.lock().unwrap().clone()
    }
}

impl Actor for Scribe {
    type Message = u32;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, _: u32, _: &mut Context<Self>) -> Result<u32, ()> {
        unreachable!("it receives deliveries")
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<u32, u32, ()>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, ()> {
        let (class, sender) = (delivery.class(), delivery.sender().cloned());
        let token = delivery.cancellation().cloned();
        let message = delivery.take();
        self.0.lock().unwrap().push(Seen { slot: cx.slot(), message, class, sender });
        match (message, token) {
            (0, _) => tokio::time::sleep(SECOND).await,
            (9, Some(token)) => token.cancelled().await,
            _ => {}
        }
        Ok(Answer::Reply(message))
    }
}

async fn scribes(workers: usize) -> (Pool<Scribe>, Scribe) {
    let scribe = Scribe::default();
    let of_workers = scribe.clone();
    let pool = Pool::new(move |_| of_workers.clone()).workers(workers).spawn().await.unwrap();
    while pool.broadcast().workers().len() < workers {
        tokio::task::yield_now().await;
    }
    (pool, scribe)
}

#[tokio::test(start_paused = true)]
async fn p10_each_copy_keeps_its_class_and_its_sender() {
    let (pool, scribe) = scribes(2).await;
    let sender = pool.erase();
    let all = pool.broadcast();
    assert!(all.try_send(0).unwrap().is_complete());
    tokio::time::sleep(SECOND / 2).await;
    assert!(all.send(1).await.unwrap().is_complete());
    let envelope = || Envelope::urgent().sender(sender.clone());
    assert!(all.send_with(2, envelope()).await.unwrap().is_complete());
    assert!(all.try_send_with(3, envelope()).unwrap().is_complete());
    let called = all.call_with(4, envelope()).all().await.unwrap();
    assert_eq!(called.successes().collect::<Vec<_>>(), [(0, &4), (1, &4)]);
    pool.stop(Stop::within(60 * SECOND)).await;

    let seen = scribe.seen();
    for slot in 0..2 {
        let of_one: Vec<_> = seen.iter().filter(|seen| seen.slot == slot).collect();
        let messages: Vec<_> = of_one.iter().map(|seen| seen.message).collect();
        assert_eq!(messages, [0, 2, 3, 4, 1], "urgent copies overtake the normal one");
        for seen in of_one {
            let expected = match seen.message {
                0 | 1 => (Class::Normal, None),
                _ => (Class::Urgent, Some(&sender)),
            };
            assert_eq!((seen.class, seen.sender.as_ref()), expected, "{seen:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn p10_each_copy_keeps_its_deadline() {
    let (pool, scribe) = scribes(3).await;
    let all = pool.broadcast();
    assert!(all.send(0).await.unwrap().is_complete());
    let soon = Envelope::new().deadline(SECOND / 2);
    assert!(all.send_with(1, soon.clone()).await.unwrap().is_complete());
    let called = all.call_with(2, soon).all().await.unwrap();
    assert!(called.errors().all(|(_, error)| *error == CallError::Expired), "{called:?}");
    assert_eq!(called.errors().count(), 3);
    let stats = pool.stop(Stop::within(60 * SECOND)).await.stats;
    assert_eq!(stats.dead_letters.of(DeadLetterReason::Expired), 6);
    assert!(stats.ledger_holds());
    assert!(scribe.seen().iter().all(|seen| seen.message == 0));
}

#[tokio::test(start_paused = true)]
async fn p10_the_timeout_of_an_envelope_ends_each_call_and_its_token_cancels_all() {
    let (pool, _) = scribes(2).await;
    let all = pool.broadcast();
    let late = all.call_with(0, Envelope::new().timeout(SECOND / 2)).all().await.unwrap();
    assert!(late.errors().all(|(_, error)| *error == CallError::TimedOut), "{late:?}");
    assert_eq!(late.errors().count(), 2);

    let token = CancellationToken::new();
    let (asked, cancels) = (Envelope::new().token(token.clone()), async {
        tokio::time::sleep(5 * SECOND).await;
        token.cancel();
    });
    let (answered, ()) = tokio::join!(all.call_with(9, asked).all(), cancels);
    assert_eq!(answered.unwrap().successes().count(), 2, "both were waiting for it");
}
