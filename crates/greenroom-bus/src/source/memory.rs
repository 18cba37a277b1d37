//! Events that the program itself hands to an engine (B04).
//!
//! ```text
//! MemoryInput::send    ──▶ bounded queue ──▶ MemorySource ──▶ engine ──▶ settled
//! MemoryInput::deliver ──▶                                                  │
//!        ▲──────────────────── how it was settled ──────────────────────────┘
//! ```
//!
//! The queue holds events that the engine has not asked for yet; an engine whose pools are full
//! asks for none, and [`send`](MemoryInput::send) waits. No accepted event is dropped silently:
//! events that the engine has not taken when its run ends are returned to the caller that delivers
//! them, or by [`take_back`](MemoryInput::take_back).
//!
//! ```
//! use std::sync::Arc;
//!
//! use greenroom_bus::{
//!     dead_letter::file::FileDeadLetterStore,
//!     engine::{Engine, HandlerConfig, PoolConfig},
//!     event::Event,
//!     handler::pass::PassFactory,
//!     settlement::{Outcome, Settled},
//!     source::memory,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("dead-letters.ndjson");
//! let (input, source) = memory::channel("orders", 100);
//! let engine = Engine::builder()
//!     .input(Box::new(source))
//!     .pool("default", PoolConfig::default())
//!     .handler("pass", HandlerConfig::new(vec!["**".parse()?], Arc::new(PassFactory)))
//!     .dead_letters(Arc::new(FileDeadLetterStore::open(path)?))
//!     .build()
//!     .await?;
//! let run = tokio::spawn(engine.run());
//! let event = Event::builder("1", "/shop", "order.placed").build()?;
//! assert_eq!(input.deliver(event).await?, Settled::Acknowledged(Outcome::Handled));
//! drop(input); // the last one: the source ends, and with it the run
//! assert_eq!(run.await?.handled, 1);
//! # Ok(()) }
//! ```

use std::{collections::HashMap, fmt, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::{Pull, Pulling, Receipts, Source, Taken};
use crate::{
    event::Event,
    settlement::{Refusal, Settled},
};

/// Events of one pull: as many as the engine routes in one turn.
const BATCH: usize = 256;

/// How an event that was delivered ended: settled, or given back.
type DeliveryEnd = Result<Settled, Event>;

/// Waits for the settlement of an event.
type SettlementWaiter = oneshot::Sender<DeliveryEnd>;

/// An input of this name, called `memory:NAME` in reports and logs, and its source. As many events
/// as `capacity`, at least one, wait between the two.
pub fn channel(name: &str, capacity: usize) -> (MemoryInput, MemorySource) {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    let end = Arc::<Mutex<SourceEnd>>::default();
    let input = MemoryInput { sender, end: end.clone() };
    let source = MemorySource {
        name: format!("memory:{name}"),
        receiver,
        batch: Vec::with_capacity(BATCH),
        taken: 0,
        delivered: Arc::default(),
        is_delivered: false,
        end,
    };
    (input, source)
}

/// The end of a source. Events are queued under this lock, so that each is either seen by the
/// ending source, or not accepted.
#[derive(Default)]
struct SourceEnd {
    has_come: bool,
    /// Events that were sent, and not given to the engine by then.
    left: Vec<Event>,
}

/// An event on its way to the source.
struct Sent {
    event: Event,
    waiting: Option<SettlementWaiter>,
}

/// Takes events in. Clones feed the same source, which ends when the last of them is dropped.
#[derive(Clone)]
pub struct MemoryInput {
    sender: mpsc::Sender<Sent>,
    end: Arc<Mutex<SourceEnd>>,
}

impl MemoryInput {
    /// Queues an event, once there is room for it. Ok says that it is
    /// queued, not that it is handled.
    ///
    /// # Errors
    /// The engine takes nothing any more. The event is in the error.
    ///
    /// # Cancel safety
    /// A dropped future has queued nothing, and the event is dropped with it.
    pub async fn send(&self, event: Event) -> Result<(), InputClosed> {
        match self.sender.reserve().await {
            Ok(room) => self.queue(room, Sent { event, waiting: None }),
            Err(_) => Err(InputClosed(event)),
        }
    }

    fn queue(&self, room: mpsc::Permit<'_, Sent>, sent: Sent) -> Result<(), InputClosed> {
        let end = self.end.lock();
        if end.has_come {
            return Err(InputClosed(sent.event));
        }
        room.send(sent);
        Ok(())
    }

    /// Queues an event if there is room for it now.
    ///
    /// # Errors
    /// There is no room, or the engine takes nothing any more. The event is in the error.
    pub fn try_send(&self, event: Event) -> Result<(), TrySendError> {
        match self.sender.try_reserve() {
            Ok(room) => Ok(self.queue(room, Sent { event, waiting: None })?),
            Err(mpsc::error::TrySendError::Full(())) => Err(TrySendError::Full(event)),
            Err(mpsc::error::TrySendError::Closed(())) => Err(InputClosed(event).into()),
        }
    }

    /// Queues an event, once there is room for it, and waits until it is settled: acknowledged,
    /// once its results are stored, or refused.
    ///
    /// # Errors
    /// The engine has ended without taking the event, which is in the error.
    ///
    /// # Cancel safety
    /// A dropped future that waited for room has queued nothing; one that waited for the settlement
    /// has no effect on the event.
    pub async fn deliver(&self, event: Event) -> Result<Settled, InputClosed> {
        let Ok(room) = self.sender.reserve().await else { return Err(InputClosed(event)) };
        let (waiting, answer) = oneshot::channel();
        self.queue(room, Sent { event, waiting: Some(waiting) })?;
        match answer.await {
            Ok(answer) => answer.map_err(InputClosed),
            // The answer was dropped unsent: whether the event is safe is unknown.
            Err(_) => Ok(Settled::Refused(Refusal::Dropped)),
        }
    }

    /// Takes out the events that were sent (not delivered) and that the engine had not taken when
    /// its run ended. Empty while it runs.
    pub fn take_back(&self) -> Vec<Event> {
        std::mem::take(&mut self.end.lock().left)
    }

    /// How many events may be queued now.
    pub fn room(&self) -> usize {
        self.sender.capacity()
    }

    /// True once the engine takes nothing any more.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl fmt::Debug for MemoryInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryInput").field("room", &self.room()).finish_non_exhaustive()
    }
}

/// The engine takes nothing any more; the event that it did not take.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the engine takes no events any more; this one was not handled")]
pub struct InputClosed(pub Event);

/// An event that was not queued.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TrySendError {
    /// Try again later, or wait with [`MemoryInput::send`].
    #[error("there is no room for the event now")]
    Full(Event),
    /// Nothing more is taken.
    #[error(transparent)]
    Closed(#[from] InputClosed),
}

impl TrySendError {
    /// The event that was not queued.
    pub fn into_event(self) -> Event {
        match self {
            Self::Full(event) | Self::Closed(InputClosed(event)) => event,
        }
    }
}

/// The other end of a [`MemoryInput`], for
/// [`EngineBuilder::input`](crate::engine::EngineBuilder::input). Positions count the events, from
/// 1. Refused events are not given again; [`MemoryInput::deliver`] reports them.
pub struct MemorySource {
    name: String,
    receiver: mpsc::Receiver<Sent>,
    /// Empty between pulls.
    batch: Vec<Sent>,
    /// Events given so far: the position of the last.
    taken: u64,
    delivered: Arc<Delivered>,
    /// A caller waits for the outcome of an event of the last pull.
    is_delivered: bool,
    end: Arc<Mutex<SourceEnd>>,
}

impl Source for MemorySource {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            if self.receiver.recv_many(&mut self.batch, BATCH).await == 0 {
                return Ok(Pull::End);
            }
            self.is_delivered = false;
            for Sent { event, waiting } in self.batch.drain(..) {
                self.taken += 1;
                if let Some(waiting) = waiting {
                    self.is_delivered = true;
                    self.delivered.0.lock().insert(self.taken, waiting);
                }
                into.push(Taken { position: self.taken, event: Ok(event) });
            }
            Ok(Pull::More)
        })
    }

    fn replayable(&self) -> bool {
        false
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        self.is_delivered.then(|| self.delivered.clone() as _)
    }
}

impl Drop for MemorySource {
    fn drop(&mut self) {
        self.receiver.close();
        self.end.lock().has_come = true;
        // No events are added any more.
        let mut left = Vec::new();
        while let Ok(Sent { event, waiting }) = self.receiver.try_recv() {
            match waiting {
                // If the receiver was dropped, no caller waits for the outcome.
                Some(waiting) => _ = waiting.send(Err(event)),
                None => left.push(event),
            }
        }
        self.end.lock().left.append(&mut left);
    }
}

impl fmt::Debug for MemorySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, taken, .. } = self;
        let queued = &self.receiver.len();
        f.debug_struct("MemorySource")
            .field("name", name)
            .field("taken", taken)
            .field("queued", queued)
            .finish_non_exhaustive()
    }
}

/// The waiting callers, by the position of the event.
#[derive(Default)]
struct Delivered(Mutex<HashMap<u64, SettlementWaiter>>);

impl Receipts for Delivered {
    fn settled(&self, position: u64, how: Settled) {
        let waiting = self.0.lock().remove(&position);
        if let Some(waiting) = waiting {
            // If the receiver was dropped, no caller waits for the outcome.
            let _ = waiting.send(Ok(how));
        }
    }
}

#[cfg(test)]
mod tests;
