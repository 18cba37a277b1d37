//! How an attempt gets through the layers to its handler.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::Mutex;

use super::meeting::Meeting;
use crate::handler::{Handler, Settlement};

/// The handler of a worker, which its attempts take through the layers with them. Locked
/// by one of them at a time.
pub(super) type HandlerOfWorker = Arc<Mutex<Box<dyn Handler>>>;

/// How an attempt gets to its handler.
pub(super) enum Way {
    /// To this handler, with what it settles the event through where it does that itself.
    Alone(HandlerOfWorker, Option<Own>),
    /// With others, of which this is the place.
    Together(Arc<Meeting>, usize),
}

/// What a handler settles its event through itself, on its way there.
pub(super) struct Own {
    pub(super) settlement: Settlement,
    /// It has come to the handler, whose it is to say how the event ends.
    pub(super) handed_over: Arc<AtomicBool>,
}

impl Own {
    pub(super) fn hand_over(self) -> Settlement {
        self.handed_over.store(true, Ordering::Release);
        self.settlement
    }
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alone(..) => "Alone",
            Self::Together(..) => "Together",
        })
    }
}
