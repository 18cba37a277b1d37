//! An output in memory: as large, as slow and as lasting as a test wants it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom_bus::{
    BoxFuture,
    event::Event,
    sink::{Outgoing, Sink, SinkError},
};
use tokio::sync::{mpsc, watch};

#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) event: Event,
    pub(crate) attempt: u32,
}

/// How a store behaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behaviour {
    /// Events accepted and not stored.
    pub(crate) room: usize,
    /// Of each event.
    pub(crate) latency: Duration,
    /// Stores so many, and then nothing any more.
    pub(crate) fails_after: Option<usize>,
    /// Never answers `finish`.
    pub(crate) hangs: bool,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self { room: 64, latency: Duration::ZERO, fails_after: None, hangs: false }
    }
}

pub(crate) struct MemorySink {
    behaviour: Behaviour,
    accepted: Mutex<Option<mpsc::Sender<Outgoing>>>,
    shared: Arc<SinkState>,
    done: watch::Receiver<bool>,
    /// Who waits for room.
    accepting: AtomicUsize,
    /// Something was accepted after it had been told to finish, or was about to be.
    misused: AtomicBool,
}

#[derive(Default)]
struct SinkState {
    stored: Mutex<Vec<Stored>>,
    failure: Mutex<Option<SinkError>>,
}

/// Somebody who waits for room.
struct Accepting<'a>(&'a AtomicUsize);

impl Drop for Accepting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for MemorySink {
    fn default() -> Self {
        Self::new(Behaviour::default())
    }
}

impl MemorySink {
    /// Needs a runtime.
    pub(crate) fn new(behaviour: Behaviour) -> Self {
        let (accepted, coming) = mpsc::channel(behaviour.room);
        let (tell, done) = watch::channel(false);
        let shared = Arc::new(SinkState::default());
        tokio::spawn(store(behaviour, coming, shared.clone(), tell));
        let (accepted, accepting) = (Mutex::new(Some(accepted)), AtomicUsize::new(0));
        Self { behaviour, accepted, shared, done, accepting, misused: AtomicBool::new(false) }
    }

    pub(crate) fn stored(&self) -> Vec<Stored> {
        self.shared.stored.lock().unwrap().clone()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.stored().iter().map(|stored| stored.event.id().to_owned()).collect()
    }

    /// Whether somebody broke the contract: nothing is accepted after the sink was told to finish.
    pub(crate) fn is_misused(&self) -> bool {
        self.misused.load(Ordering::Relaxed)
    }

    fn door(&self) -> Option<mpsc::Sender<Outgoing>> {
        let door = self.accepted.lock().unwrap().clone();
        self.misused.fetch_or(door.is_none(), Ordering::Relaxed);
        door
    }
}

async fn store(
    behaviour: Behaviour,
    mut coming: mpsc::Receiver<Outgoing>,
    state: Arc<SinkState>,
    done: watch::Sender<bool>,
) {
    let mut left = behaviour.fails_after.unwrap_or(usize::MAX);
    while let Some(outgoing) = coming.recv().await {
        if left == 0 {
            *state.failure.lock().unwrap() = Some(SinkError::new("memory", "it is full for good"));
            coming.close();
            continue;
        }
        if !behaviour.latency.is_zero() {
            tokio::time::sleep(behaviour.latency).await;
        }
        left -= 1;
        let Outgoing { event, attempt, ack, .. } = outgoing;
        state.stored.lock().unwrap().push(Stored { event, attempt });
        ack.confirm();
    }
    done.send_replace(true);
}

impl Sink for MemorySink {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn try_accept(&self, outgoing: Outgoing) -> Result<(), Outgoing> {
        let Some(door) = self.door() else { return Ok(()) };
        match door.try_send(outgoing) {
            Err(mpsc::error::TrySendError::Full(outgoing)) => Err(outgoing),
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
        }
    }

    fn accept<'a>(&'a self, outgoing: Outgoing) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.accepting.fetch_add(1, Ordering::Relaxed);
            let _accepting = Accepting(&self.accepting);
            if let Some(door) = self.door() {
                let _ = door.send(outgoing).await;
            }
        })
    }

    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
        self.accepted.lock().unwrap().take();
        let accepting = self.accepting.load(Ordering::Relaxed) > 0;
        self.misused.fetch_or(accepting, Ordering::Relaxed);
        let mut done = self.done.clone();
        Box::pin(async move {
            if self.behaviour.hangs {
                std::future::pending::<()>().await;
            }
            let _ = done.wait_for(|done| *done).await;
            self.failure().map_or(Ok(()), Err)
        })
    }

    fn failure(&self) -> Option<SinkError> {
        self.shared.failure.lock().unwrap().clone()
    }
}
