//! Workload B: messages of one key are handled in order.

use crate::{
    Failure,
    keys::Keys,
    message::{Counters, Message},
    route::Route,
    stage::{PRODUCERS, Producer, Stage, share, time},
    system::{Handle, System, To, counting},
    task::Counting,
    window::Window,
    work::Work,
};

pub const WORKERS: usize = 256;

/// Millions of messages a second.
pub fn run<S: System>(keys: &Keys, messages: u64) -> Result<f64, Failure> {
    let (stage, counters) = (S::Stage::new()?, Counters::new(WORKERS));
    let started = counting::<S>(&stage, &counters, WORKERS, Work::NONE, Route::keys());
    let to = stage.block_on(started)?;
    let took = time(&stage, producers::<S>(&to, keys, messages, &counters), &counters, messages)?;
    stage.block_on(to.stop());
    Ok(messages as f64 / took.as_secs_f64() / 1e6)
}

fn producers<S: System>(
    to: &S::To<Counting>,
    keys: &Keys,
    messages: u64,
    counters: &Counters,
) -> Vec<impl Producer + use<S>> {
    let window = Window::new(counters);
    let producer = |index| {
        let (mut to, keys, mut window) = (to.clone(), keys.clone(), window.clone());
        async move {
            for seq in share(index, PRODUCERS, messages) {
                if !S::BOUNDED {
                    window.admit().await;
                }
                to.send(Message::new(seq, keys.of(seq))).await?;
            }
            Ok(())
        }
    };
    (0..PRODUCERS).map(producer).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashMap,
        sync::{Arc, Mutex},
    };

    use super::*;
    use crate::{
        message::Counter,
        peers::{
            actix::ActixActors,
            crossbeam::Crossbeam,
            flume::Flume,
            kameo::Kameo,
            kanal::Kanal,
            queues::Own,
            ractor::{KeyPersistent, Ractor, RoundRobin, Sticky},
        },
        task::Task,
    };

    const MESSAGES: u64 = 20_000;
    const KEYS: u64 = 1_000;
    /// Few enough that messages come while others of their key wait and yet
    /// others are being handled.
    const IN_FLIGHT: u64 = 2_000;

    /// The last number of each producer and key that was handled, and how
    /// many came after a later one.
    #[derive(Default)]
    struct Order {
        last: HashMap<(u64, u64), u64>,
        late: u64,
    }

    /// Lets others run in the middle of each message.
    struct Watching(Arc<Mutex<Order>>, Arc<Counter>);

    impl Task for Watching {
        type Message = Message;

        const WAITS: bool = true;

        async fn take(&mut self, message: Message) -> u64 {
            tokio::task::yield_now().await;
            let producer = u64::from(message.seq >= MESSAGES / PRODUCERS);
            let mut order = self.0.lock().unwrap();
            let last = order.last.insert((producer, message.key), message.seq);
            order.late += u64::from(last > Some(message.seq));
            self.1.add();
            0
        }
    }

    /// How many messages were handled after a later one of their producer and key.
    fn late<S: System>() -> u64 {
        let (stage, counters) = (S::Stage::new().unwrap(), Counters::new(WORKERS));
        let (order, of) = (Arc::new(Mutex::new(Order::default())), counters.clone());
        let watched = order.clone();
        let make = move |worker| Watching(watched.clone(), of.of(worker));
        let to = stage.block_on(S::start(&stage, WORKERS, make, Route::keys())).unwrap();
        let producer = |index: u64| {
            let (mut to, counters) = (to.clone(), counters.clone());
            async move {
                for (sent, seq) in share(index, PRODUCERS, MESSAGES).enumerate() {
                    while counters.sum() + IN_FLIGHT < sent as u64 * PRODUCERS {
                        tokio::task::yield_now().await;
                    }
                    to.send(Message::new(seq, seq % KEYS)).await?;
                }
                Ok(())
            }
        };
        time(&stage, (0..PRODUCERS).map(producer).collect(), &counters, MESSAGES).unwrap();
        stage.block_on(to.stop());
        order.lock().unwrap().late
    }

    #[test]
    fn messages_of_a_key_are_handled_in_order() {
        assert_eq!(late::<Own<Flume>>(), 0, "flume");
        assert_eq!(late::<Own<Kanal>>(), 0, "kanal");
        assert_eq!(late::<Own<Crossbeam>>(), 0, "crossbeam");
        assert_eq!(late::<Ractor<KeyPersistent>>(), 0, "ractor key persistent");
        assert_eq!(late::<Kameo>(), 0, "kameo");
        assert_eq!(late::<ActixActors<false>>(), 0, "actix");
        assert_eq!(late::<ActixActors<true>>(), 0, "actix bounded");
    }

    #[test]
    fn round_robin_does_not_keep_the_order_of_a_key() {
        assert!(late::<Ractor<RoundRobin>>() > 0);
    }

    /// Which is why it is not offered for this workload: a job goes to the worker that
    /// has its key in hand, past jobs of this key that wait in the factory's queue. Once
    /// this test fails, it can be.
    #[test]
    fn ractors_sticky_queuer_does_not_keep_the_order_of_a_key_when_jobs_queue() {
        assert!(late::<Ractor<Sticky>>() > 0);
    }
}
