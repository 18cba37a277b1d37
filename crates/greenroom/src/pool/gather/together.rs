//! Several futures that run at once, in the task that waits for them.
//!
//! A future is polled only when it was woken itself, so that gathering from `n` workers costs `n`
//! polls and not `n × n`:
//!
//! ```text
//! waker of future 3 ──▶ 3 is noted as woken ──▶ the task is woken ──▶ it polls future 3
//! ```
//!
//! No task is spawned: dropping the whole drops the futures.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use greenroom_queue::lock::Mutex;

/// The futures, and which of them must be polled.
pub(super) struct Together<F> {
    /// `None` once it has resolved.
    futures: Vec<Option<F>>,
    /// One for each future.
    alarms: Vec<Arc<PartWaker>>,
    /// Written by the alarms.
    woken: Arc<Mutex<Woken>>,
    /// Woken and not polled since; polled in this order.
    due: VecDeque<usize>,
    /// How many have not resolved.
    running: usize,
}

/// The futures that were woken, and the task to wake.
#[derive(Default)]
struct Woken {
    /// Each at most once.
    indexes: Vec<usize>,
    /// The task, unless it has been woken since it last looked.
    task: Option<Waker>,
}

/// The waker of one future.
struct PartWaker {
    index: usize,
    /// Whether the future is already noted as woken, and has not been polled since.
    noted: AtomicBool,
    woken: Arc<Mutex<Woken>>,
}

impl Wake for PartWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.noted.swap(true, Ordering::AcqRel) {
            return;
        }
        let task = self.note();
        // Foreign code, so after the lock.
        task.inspect(Waker::wake_by_ref);
    }
}

impl PartWaker {
    fn note(&self) -> Option<Waker> {
        let mut woken = self.woken.lock();
        woken.indexes.push(self.index);
        woken.task.take()
    }
}

impl<F: Future + Unpin> Together<F> {
    /// None of them is polled before the first [`next`](Self::next).
    pub(super) fn new(futures: impl IntoIterator<Item = F>) -> Self {
        let futures: Vec<_> = futures.into_iter().map(Some).collect();
        let woken = Arc::<Mutex<Woken>>::default();
        let alarm = |index| PartWaker { index, noted: AtomicBool::new(true), woken: woken.clone() };
        let alarms = (0..futures.len()).map(|index| Arc::new(alarm(index))).collect();
        let (due, running) = ((0..futures.len()).collect(), futures.len());
        Self { futures, alarms, woken, due, running }
    }

    /// The next one that resolves, with its index; `None` once all have.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<(usize, F::Output)> {
        std::future::poll_fn(|task| self.poll_next(task)).await
    }

    /// One round over the futures woken so far. A future that is woken during the round wakes the
    /// task again, so futures that wake themselves (as tokio's do when the task has used up its
    /// turn) block no other.
    fn poll_next(&mut self, task: &mut Context<'_>) -> Poll<Option<(usize, F::Output)>> {
        if self.running == 0 {
            return Poll::Ready(None);
        }
        self.look(task.waker());
        while let Some(index) = self.due.pop_front() {
            if let Poll::Ready(output) = self.poll_one(index) {
                return Poll::Ready(Some((index, output)));
            }
        }
        Poll::Pending
    }

    /// Learns which futures were woken, and registers for those that are woken from now on.
    fn look(&mut self, task: &Waker) {
        let mut task = Some(task.clone());
        let mut woken = self.woken.lock();
        std::mem::swap(&mut woken.task, &mut task);
        self.due.extend(woken.indexes.drain(..));
        drop(woken);
        drop(task);
    }

    fn poll_one(&mut self, index: usize) -> Poll<F::Output> {
        let Some(future) = &mut self.futures[index] else { return Poll::Pending };
        self.alarms[index].noted.store(false, Ordering::Release);
        let alarm = Waker::from(self.alarms[index].clone());
        let polled = Pin::new(future).poll(&mut Context::from_waker(&alarm));
        if polled.is_ready() {
            self.futures[index] = None;
            self.running -= 1;
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, time::Duration};

    use super::*;

    type Boxed<'a> = Pin<Box<dyn Future<Output = u64> + 'a>>;

    #[tokio::test(start_paused = true)]
    async fn p10_futures_resolve_in_the_order_in_which_they_are_done() {
        let sleeps = [30_u64, 10, 20].map(|ms| -> Boxed<'_> {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                ms
            })
        });
        let mut together = Together::new(sleeps);
        assert_eq!(together.next().await, Some((1, 10)));
        assert_eq!(together.next().await, Some((2, 20)));
        assert_eq!(together.next().await, Some((0, 30)));
        assert_eq!(together.next().await, None);
    }

    #[tokio::test]
    async fn p10_a_future_is_polled_only_when_it_was_woken() {
        let polls = Cell::new(0);
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..100).map(|_| tokio::sync::oneshot::channel::<u64>()).unzip();
        let counted = receivers.into_iter().map(|mut receiver| -> Boxed<'_> {
            let polls = &polls;
            Box::pin(std::future::poll_fn(move |task| {
                polls.set(polls.get() + 1);
                Pin::new(&mut receiver).poll(task).map(|sent| sent.unwrap_or(0))
            }))
        });
        let mut together = Together::new(counted);
        let sending = tokio::spawn(async move {
            for sender in senders {
                let _ = sender.send(1);
                tokio::task::yield_now().await;
            }
        });
        let mut sum = 0;
        while let Some((_, sent)) = together.next().await {
            sum += sent;
        }
        assert!(sending.await.is_ok());
        assert_eq!(sum, 100);
        assert!(polls.get() <= 200, "once each to begin with, and once when woken: {polls:?}");
    }

    #[tokio::test]
    async fn p10_more_futures_than_a_turn_allows_do_not_spin() {
        let ready = (0..1_000_u64).map(|number| -> Boxed<'_> {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            let _ = sender.send(number);
            Box::pin(async move { receiver.await.unwrap_or(0) })
        });
        let mut together = Together::new(ready);
        let mut sum = 0;
        while let Some((_, number)) = together.next().await {
            sum += number;
        }
        assert_eq!(sum, 499_500);
    }
}
