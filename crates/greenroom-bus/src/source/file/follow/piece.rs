//! Messages about a followed file, in order.

use std::{sync::Arc, time::Duration};

use super::super::{lines::Items, positions::FilePositions};

/// A replaced file is done when it has not grown for this long, and a quiet one may be closed.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// The findings of a step, in order.
pub(super) enum Piece {
    /// Lines of a file.
    Items(Arc<Visited>, Items),
    /// All that the file has now is read.
    CaughtUp(Arc<Visited>),
    /// It was quiet for long.
    Quiet {
        /// Which.
        of: Arc<Visited>,
        /// In bytes, if all that it has was read.
        read: Option<u64>,
        /// It is closed: nothing more of it is read, or it is opened again when it has grown.
        is_left: bool,
    },
}

/// A file, as its events name it.
pub(super) struct Visited {
    pub(super) name: Arc<str>,
    /// Its place in the checkpoint.
    pub(super) place: Option<usize>,
    pub(super) positions: Option<FilePositions>,
}
