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
    sink::{Outgoing, Sink, SinkError, Trouble},
};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

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
    /// Its target is down: it tries the first event again and again.
    pub(crate) is_down: bool,
    /// Rejects for good one of so many, by its id.
    pub(crate) rejects: Option<u32>,
    /// Fails at one of so many for now, by its id, and tries it again.
    pub(crate) stumbles: Option<u32>,
}

impl Behaviour {
    /// The last error of what it rejects.
    pub(crate) const REJECTED: &str = "not this one";

    pub(crate) fn rejects(&self, id: &str) -> bool {
        self.rejects.is_some_and(|of| number(id).is_multiple_of(of))
    }

    fn stumbles(&self, id: &str) -> bool {
        self.stumbles.is_some_and(|of| number(id).is_multiple_of(of))
    }
}

fn number(id: &str) -> u32 {
    id.bytes().fold(7, |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)))
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            room: 64,
            latency: Duration::ZERO,
            fails_after: None,
            hangs: false,
            is_down: false,
            rejects: None,
            stumbles: None,
        }
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
    /// Since when it fails at an event for now.
    stumbled: Mutex<Option<Instant>>,
}

/// An event that waits for room.
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

    /// Whether the engine broke the contract: nothing is accepted after the sink was told to
    /// finish.
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
        if behaviour.is_down {
            *state.stumbled.lock().unwrap() = Some(Instant::now());
            std::future::pending::<()>().await;
        }
        if behaviour.stumbles(event.id()) {
            *state.stumbled.lock().unwrap() = Some(Instant::now());
            tokio::time::sleep(Duration::from_millis(20)).await;
            *state.stumbled.lock().unwrap() = None;
        }
        if behaviour.rejects(event.id()) {
            ack.reject(Behaviour::REJECTED);
            continue;
        }
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

    fn is_remote(&self) -> bool {
        self.behaviour.rejects.is_some() || self.behaviour.is_down
    }

    fn trouble(&self) -> Option<Trouble> {
        let stumbled = (*self.shared.stumbled.lock().unwrap())?;
        Some(Trouble::failing(stumbled.elapsed(), "busy"))
    }
}
