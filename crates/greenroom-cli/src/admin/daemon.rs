//! The state that the listener answers from.

use std::{sync::Arc, time::Instant};

use axum::extract::State;
use greenroom_bus::engine::Control;

use super::{figures::Figures, history::History};
use crate::run::{assemble::LettersAt, layers::HandlerLayers, reload::Reload};

/// The extractor of routes.
pub(super) type Asked = State<Arc<Daemon>>;

/// The state that the listener answers from.
pub(crate) struct Daemon {
    pub(crate) control: Control,
    /// Rereads the configuration, and knows which one is in effect.
    pub(crate) reload: Arc<Reload>,
    /// The figures of the handlers' layers.
    pub(crate) layers: Arc<HandlerLayers>,
    /// The place of the dead letters.
    pub(crate) dead_letters: LettersAt,
    /// Its figures.
    pub(crate) figures: Arc<Figures>,
    /// The last hour.
    pub(crate) history: History,
    pub(crate) started: Instant,
}

impl Daemon {
    /// Whether dead letters can be edited, replayed and dropped.
    pub(crate) fn has_letter_store(&self) -> bool {
        matches!(self.dead_letters, LettersAt::Store(..))
    }
}
