//! How an attempt gets through the layers to its handler.

use std::{fmt, sync::Arc};

use tokio::sync::Mutex;

use super::meeting::Meeting;
use crate::handler::{Handler, Settlement};

/// The handler of a worker, which its attempts take through the layers with them. Locked
/// by one of them at a time.
pub(super) type HandlerOfWorker = Arc<Mutex<Box<dyn Handler>>>;

/// How an attempt gets to its handler.
pub(super) enum Way {
    /// To this handler, with the settlement handle if the handler settles the event itself.
    Alone(HandlerOfWorker, Option<Settlement>),
    /// With others; the number is its place among them.
    Together(Arc<Meeting>, usize),
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alone(..) => "Alone",
            Self::Together(..) => "Together",
        })
    }
}
