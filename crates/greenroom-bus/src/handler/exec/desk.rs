//! Where the workers that share one process hand in their events, and wait for the answers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    oneshot,
};

use super::{
    counters::Counters,
    driver::Driver,
    errors,
    message::{Answer, DriverMessage, Stop, WorkerJob},
    options::ExecConfig,
};
use crate::handler::Attempt;

/// One process, as those see it that share it. The task that drives it ends when all have left.
#[derive(Debug)]
pub(super) struct Desk {
    messages: UnboundedSender<DriverMessage>,
    /// The driver, until the first event comes.
    driver: Mutex<Option<Driver>>,
    users: AtomicUsize,
}

impl Desk {
    /// A process that is not started yet, for a first worker.
    pub(super) fn new(config: &Arc<ExecConfig>, counters: &Arc<Counters>) -> Self {
        let (messages, receiver): (_, UnboundedReceiver<DriverMessage>) = unbounded_channel();
        let driver = Driver::new(config.clone(), counters.clone(), receiver);
        Self { messages, driver: Mutex::new(Some(driver)), users: AtomicUsize::new(1) }
    }

    /// One more worker uses the process. False if the last one has left: then it ends.
    pub(super) fn join(&self) -> bool {
        let one_more = |users: usize| (users > 0).then(|| users + 1);
        self.users.fetch_update(Relaxed, Relaxed, one_more).is_ok()
    }

    /// A worker does not use it any more. True for the last one.
    pub(super) fn leave(&self) -> bool {
        self.users.fetch_sub(1, Relaxed) == 1
    }

    /// Starts the driver, within a runtime.
    pub(super) fn open(&self) {
        if let Some(driver) = self.driver.lock().take() {
            tokio::spawn(driver.run());
        }
    }

    /// Hands in an event, and waits for its answer.
    ///
    /// # Cancel safety
    /// The process is killed, since its progress with the event is unknown; the events of other
    /// workers go to the next process.
    pub(super) async fn ask(&self, line: Vec<u8>, attempt: &Attempt) -> Answer {
        let (answer, receiver) = oneshot::channel();
        let job = WorkerJob { line, attempt: attempt.clone(), answer };
        let mut waits = WaitingWorker { desk: self, answer: receiver, is_over: false };
        // Where the driver is gone, so is the other end of the answer.
        let _ = self.messages.send(DriverMessage::Job(job));
        let answer = (&mut waits.answer).await;
        waits.is_over = true;
        answer.unwrap_or_else(|_| Answer { result: Err(errors::no_driver()), line: Vec::new() })
    }

    /// Lets the process finish, and waits until it is gone.
    pub(super) async fn stop(&self, patience: Duration) {
        if self.driver.lock().is_some() {
            return;
        }
        let (done, gone) = oneshot::channel();
        let _ = self.messages.send(DriverMessage::Stop(Stop { patience, done }));
        // Closed without a word: that is the word.
        let _ = gone.await;
    }
}

/// A worker that waits. Dropped before its answer, it has the driver look for it.
struct WaitingWorker<'a> {
    desk: &'a Desk,
    answer: oneshot::Receiver<Answer>,
    is_over: bool,
}

impl Drop for WaitingWorker<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.answer.close();
            let _ = self.desk.messages.send(DriverMessage::Cancelled);
        }
    }
}
