//! One handler of a running engine.

use std::{sync::Arc, time::Duration};

use super::change::ChangeError;
use crate::{
    engine::{
        process::{attempt_figures::AttemptsSnapshot, entries::HandlerEntry},
        shared::Shared,
    },
    name::Name,
    router::{HandlerConfig, PoolConfig, Retry},
};

/// One handler of a running engine: its health, its retries, its pause. Cheap to clone.
#[derive(Clone)]
pub struct HandlerControl {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: usize,
}

/// Other retries for a handler, found to be possible.
pub(crate) struct RetryChange {
    handler: HandlerControl,
    retry: Retry,
}

impl HandlerControl {
    fn entry(&self) -> &HandlerEntry {
        &self.shared.process.handlers[self.place]
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.entry().name.as_str()
    }

    /// The pool that runs it.
    pub fn pool(&self) -> Name {
        self.shared.process.pools[self.entry().pool].name
    }

    pub(crate) fn pool_config(&self) -> PoolConfig {
        *self.shared.process.pools[self.entry().pool].config.lock()
    }

    /// Starts no further attempts of this handler until it is [resumed](Self::resume). Its events
    /// wait, and their attempts do not count. They occupy room in the pool, whose other handlers
    /// continue as long as there is some left. Returns true if it was not paused before.
    pub fn pause(&self) -> bool {
        self.entry().pause.set(true)
    }

    /// Resumes it. Events that waited are attempted within a second. Returns true if it was paused.
    pub fn resume(&self) -> bool {
        self.entry().pause.set(false)
    }

    /// True while it is paused.
    pub fn is_paused(&self) -> bool {
        self.entry().pause.is_on()
    }

    /// How long it has been in outage (D09), and the last error. `None` if it is not.
    pub fn outage(&self) -> Option<(Duration, String)> {
        let view = self.entry().circuits.view()?;
        Some((view.lasted, view.error))
    }

    /// How its attempts have ended so far, and how long they took.
    pub fn attempts(&self) -> AttemptsSnapshot {
        self.entry().attempts.snapshot()
    }

    /// How its failures are retried.
    pub fn retry(&self) -> Retry {
        self.entry().retry()
    }

    /// Retries failures of this handler so from now on; events that wait for an attempt wait
    /// for it as they were told.
    ///
    /// # Errors
    /// No attempts at all.
    pub fn set_retry(&self, retry: Retry) -> Result<(), ChangeError> {
        self.possible(retry)?;
        self.entry().set_retry(retry);
        Ok(())
    }

    fn possible(&self, retry: Retry) -> Result<(), ChangeError> {
        if retry.attempts > 0 {
            return Ok(());
        }
        let what = format!("handlers.{}.retry.attempts", self.name());
        Err(ChangeError::Unusable { what, why: "at least one attempt is made".to_owned() })
    }

    /// The changes to this configuration, in a pool with that one. The factory is ignored: two
    /// cannot be compared.
    pub(crate) fn changes(
        &self,
        to: &HandlerConfig,
        pool: &PoolConfig,
    ) -> Result<Option<RetryChange>, ChangeError> {
        let (is, to) = (&self.entry().config, to.clone().inherit(pool));
        let fixed = [
            ("on", is.on != to.on),
            ("match", is.matcher != to.matcher),
            ("fan_out", is.fan_out != to.fan_out),
            ("ack", is.ack != to.ack),
            ("loopback", is.loopback != to.loopback),
            ("pool", is.pool != to.pool),
            ("order_by", is.order_by != to.order_by),
            ("key_required", is.key_required != to.key_required),
        ];
        if let Some((what, _)) = fixed.iter().find(|(_, changed)| *changed) {
            let what = format!("handlers.{}.{what}", self.name());
            return Err(ChangeError::already_started(what));
        }
        let retry = to.retry.unwrap_or_default();
        self.possible(retry)?;
        let change = RetryChange { handler: self.clone(), retry };
        Ok((self.retry() != retry).then_some(change))
    }
}

impl RetryChange {
    /// The change that was made.
    pub(crate) fn carry_out(self) -> String {
        self.handler.entry().set_retry(self.retry);
        format!("handlers.{}.retry", self.handler.name())
    }
}
