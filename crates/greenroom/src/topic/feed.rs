//! What the tasks do that send events to mailboxes.

use std::{
    collections::HashSet,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use greenroom_queue::discard::discard;
use tokio::task::JoinSet;

use super::{event::Event, receiver::Receiver};
use crate::{Address, NotAccepted, WeakAddress, pool::gather::group::WeakGroup};

/// Sends events to a mailbox, in order, each as soon as there is room. Returns whether the mailbox
/// is gone; false if no event will follow.
pub(super) async fn feed<E, M, R, F>(
    events: &mut Receiver<E>,
    to: &WeakAddress<M, R, F>,
    convert: impl Fn(Event<E>) -> Option<M>,
) -> bool
where
    E: Clone,
    M: Send,
    R: Send,
    F: Send,
{
    let mut untold = 0;
    while let Some(event) = events.next().await {
        let item = match event {
            Event::Item(item) => item,
            Event::Lagged(missed) => {
                untold += missed;
                continue;
            }
        };
        let Some(address) = to.upgrade() else { return true };
        if untold > 0 {
            let news = Event::Lagged(untold);
            match caught(async { send(&address, convert(news)).await }).await {
                // The same news might panic again, for ever: they are told no more.
                Some(Ok(())) | None => untold = 0,
                Some(Err(NotAccepted::Stopped | NotAccepted::NoWorkers)) => return true,
                Some(Err(_)) => {
                    events.miss(1);
                    untold += 1;
                    continue;
                }
            }
        }
        let item = Event::Item(Arc::unwrap_or_clone(item));
        match caught(async { send(&address, convert(item)).await }).await {
            Some(Ok(())) => continue,
            Some(Err(NotAccepted::Stopped | NotAccepted::NoWorkers)) => return true,
            Some(Err(_)) | None => {}
        }
        events.miss(1);
        untold += 1;
    }
    false
}

async fn send<M: Send, R: Send, F: Send>(
    to: &Address<M, R, F>,
    message: Option<M>,
) -> Result<(), NotAccepted> {
    match message {
        Some(message) => to.send(message).await.map_err(|error| error.without_message()),
        None => Ok(()),
    }
}

/// `None` if the future panics.
async fn caught<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Some),
        Err(panic) => {
            discard(panic);
            tracing::error!("no message could be made of an event: a panic; it is missed");
            Poll::Ready(None)
        }
    })
    .await
}

/// Feeds each live worker of a pool, by a task for each; looks for new ones with each event.
/// Returns whether the pool is gone; false if no event will follow.
pub(super) async fn feed_each<E, M, R, F>(
    events: &mut Receiver<E>,
    pool: &dyn WeakGroup<M, R, F>,
) -> bool
where
    E: Clone + Send + Sync + 'static,
    M: From<Event<E>> + Send + 'static,
    R: Send + 'static,
    F: Send + 'static,
{
    let mut feeds: JoinSet<u64> = JoinSet::new();
    // The lives of the workers that have a feed.
    let mut fed: HashSet<u64> = HashSet::new();
    loop {
        // A worker that comes while the list is made gets what is published from here on.
        let end = events.look_ahead();
        let Some(live) = pool.members() else { return true };
        for worker in live {
            let life = worker.address().vtable.life_id();
            if fed.insert(life) {
                let (mut events, to) = (events.fork(), worker.address().downgrade());
                feeds.spawn(async move {
                    feed(&mut events, &to, |event| Some(M::from(event))).await;
                    life
                });
            }
        }
        events.skip_to(end);
        if !events.wait().await {
            while feeds.join_next().await.is_some() {}
            return false;
        }
        while let Some(ended) = feeds.try_join_next() {
            if let Ok(life) = ended {
                fed.remove(&life);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use greenroom_queue::lock::Mutex;
    use tokio::{sync::mpsc, time::sleep};

    use super::*;
    use crate::{Actor, Context, Pool, Topic, pool::gather::Worker, topic::Producer};

    struct Listener(usize, mpsc::UnboundedSender<(usize, u32)>);

    impl Actor for Listener {
        type Message = Event<u32>;
        type Reply = ();
        type Error = ();

        async fn handle(&mut self, event: Event<u32>, _: &mut Context<Self>) -> Result<(), ()> {
            let _ = self.1.send((self.0, event.into_item().unwrap_or(0)));
            Ok(())
        }
    }

    /// At the first look there is one worker fewer, and an event comes just then.
    struct LateWorker(Box<dyn WeakGroup<Event<u32>, (), ()>>, Mutex<Option<Producer<u32>>>);

    impl WeakGroup<Event<u32>, (), ()> for LateWorker {
        fn members(&self) -> Option<Vec<Worker<Event<u32>, (), ()>>> {
            let mut live = self.0.members()?;
            let producer = self.1.lock().take();
            if let Some(mut producer) = producer {
                producer.publish(2);
                live.pop();
            }
            Some(live)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a14_a_worker_that_joins_during_a_look_gets_what_is_published_meanwhile() {
        let (sender, mut seen) = mpsc::unbounded_channel();
        let pool = Pool::new(move |slot| Listener(slot, sender.clone())).workers(2);
        let pool = pool.spawn().await.unwrap();
        pool.ready(2, Duration::from_secs(1)).await.unwrap();
        let (topic, mut producer) = Topic::named("numbers").open();
        let mut events = Receiver::new(&topic.hub);
        producer.publish(1);
        let late = LateWorker(pool.broadcast().weak_group(), Mutex::new(Some(producer)));
        let feeding = tokio::spawn(async move { feed_each(&mut events, &late).await });
        sleep(Duration::from_secs(1)).await;
        let mut seen: Vec<_> = std::iter::from_fn(|| seen.try_recv().ok()).collect();
        seen.sort_unstable();
        assert_eq!(seen, [(0, 1), (0, 2), (1, 2)]);
        feeding.abort();
    }
}
