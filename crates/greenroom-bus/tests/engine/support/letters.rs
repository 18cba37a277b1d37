//! Dead letters in memory.

use std::sync::{Arc, Mutex};

use greenroom_bus::{
    BoxFuture,
    dead_letter::{DeadLetter, DeadLetterStore, OutputRejection, Reason},
    event::Event,
    settlement::Ack,
    sink::SinkError,
};
use tokio::sync::{mpsc, watch};

use super::sink::Behaviour;

/// A letter that was stored.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    pub(crate) event: Option<Event>,
    pub(crate) raw: Option<Vec<u8>>,
    pub(crate) reason: Reason,
    pub(crate) error: String,
    pub(crate) attempts: u32,
    pub(crate) source: Arc<str>,
    pub(crate) position: u64,
    pub(crate) pool: Option<Arc<str>>,
    pub(crate) share: Option<Arc<str>>,
    pub(crate) rejected: Vec<OutputRejection>,
}

pub(crate) struct MemoryLetters {
    taken: Mutex<Option<mpsc::UnboundedSender<DeadLetter>>>,
    state: Arc<State>,
    done: watch::Receiver<bool>,
}

#[derive(Default)]
struct State {
    stored: Mutex<Vec<Letter>>,
    /// The most letters that were on their way at once.
    most: Mutex<usize>,
    failure: Mutex<Option<SinkError>>,
}

impl Default for MemoryLetters {
    fn default() -> Self {
        Self::new(Behaviour::default())
    }
}

impl MemoryLetters {
    /// Needs a runtime. Of the behaviour, latency and failure count.
    pub(crate) fn new(behaviour: Behaviour) -> Self {
        let (taken, coming) = mpsc::unbounded_channel();
        let (tell, done) = watch::channel(false);
        let state = Arc::new(State::default());
        tokio::spawn(store(behaviour, coming, state.clone(), tell));
        Self { taken: Mutex::new(Some(taken)), state, done }
    }

    pub(crate) fn stored(&self) -> Vec<Letter> {
        self.state.stored.lock().unwrap().clone()
    }

    pub(crate) fn most(&self) -> usize {
        *self.state.most.lock().unwrap()
    }
}

async fn store(
    behaviour: Behaviour,
    mut coming: mpsc::UnboundedReceiver<DeadLetter>,
    state: Arc<State>,
    done: watch::Sender<bool>,
) {
    let mut left = behaviour.fails_after.unwrap_or(usize::MAX);
    while let Some(letter) = coming.recv().await {
        if left == 0 {
            *state.failure.lock().unwrap() = Some(SinkError::new("letters", "it is full for good"));
            continue;
        }
        if !behaviour.latency.is_zero() {
            tokio::time::sleep(behaviour.latency).await;
        }
        left -= 1;
        keep(&state, letter, coming.len()).confirm();
    }
    done.send_replace(true);
}

fn keep(state: &State, letter: DeadLetter, behind: usize) -> Ack {
    let mut most = state.most.lock().unwrap();
    *most = (behind + 1).max(*most);
    state.stored.lock().unwrap().push(Letter {
        event: letter.event,
        raw: letter.raw,
        reason: letter.reason,
        error: letter.error,
        attempts: letter.attempts,
        source: letter.source,
        position: letter.position,
        pool: letter.pool,
        share: letter.share,
        rejected: letter.rejected,
    });
    letter.ack
}

impl DeadLetterStore for MemoryLetters {
    fn describe(&self) -> String {
        "letters".to_owned()
    }

    fn store(&self, letter: DeadLetter) {
        if let Some(taken) = &*self.taken.lock().unwrap() {
            let _ = taken.send(letter);
        }
    }

    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
        self.taken.lock().unwrap().take();
        let mut done = self.done.clone();
        Box::pin(async move {
            let _ = done.wait_for(|done| *done).await;
            self.failure().map_or(Ok(()), Err)
        })
    }

    fn failure(&self) -> Option<SinkError> {
        self.state.failure.lock().unwrap().clone()
    }
}
