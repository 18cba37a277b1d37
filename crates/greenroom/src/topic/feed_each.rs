//! The task that sends events to each worker of a pool.

use std::collections::HashSet;

use tokio::task::JoinSet;

use super::{feed::feed, receiver::Receiver};
use crate::{Address, WeakAddress, event::Event, life::Alive, pool::Worker};

/// Feeds each live worker of a pool, by one task each; looks for new ones with each event. Returns
/// whether the pool is gone; false if no event will follow.
pub(super) async fn feed_each<E, M, R, F>(
    events: &mut Receiver<E>,
    pool: &WeakAddress<M, R, F>,
    live: impl Fn(&Address<M, R, F>) -> Vec<Worker<M, R, F>>,
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
        // A worker that arrives while the list is made gets the events published from here on.
        let end = events.look_ahead();
        let Some(address) = pool.upgrade().filter(|_| pool.is_alive()) else { return true };
        for worker in live(&address) {
            let life = worker.erase().life().id();
            if fed.insert(life) {
                let (mut events, to) = (events.fork(), worker.address().downgrade());
                feeds.spawn(async move {
                    feed(&mut events, &to, |event| Some(M::from(event))).await;
                    life
                });
            }
        }
        drop(address);
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
    use crate::{Actor, Context, Pool, Topic, gather::live_workers::live_workers};

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

    #[tokio::test(start_paused = true)]
    async fn a14_a_worker_that_joins_during_a_look_gets_what_is_published_meanwhile() {
        let (sender, mut seen) = mpsc::unbounded_channel();
        let pool = Pool::new(move |slot| Listener(slot, sender.clone())).workers(2);
        let pool = pool.spawn().await.unwrap();
        pool.ready(2, Duration::from_secs(1)).await.unwrap();
        let (topic, mut producer) = Topic::named("numbers").open();
        let mut events = Receiver::new(&topic.hub);
        producer.publish(1);
        let weak = pool.downgrade();
        let producer = Mutex::new(Some(producer));
        // At the first look there is one worker fewer, and an event comes just then.
        let late = move |pool: &Address<_, _, _>| {
            let mut live = live_workers(pool);
            let producer = producer.lock().take();
            if let Some(mut producer) = producer {
                producer.publish(2);
                live.pop();
            }
            live
        };
        let feeding = tokio::spawn(async move { feed_each(&mut events, &weak, late).await });
        sleep(Duration::from_secs(1)).await;
        let mut seen: Vec<_> = std::iter::from_fn(|| seen.try_recv().ok()).collect();
        seen.sort_unstable();
        assert_eq!(seen, [(0, 1), (0, 2), (1, 2)]);
        feeding.abort();
    }
}
