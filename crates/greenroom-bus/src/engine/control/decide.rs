//! Deciding about keys that wait for an operator (K08).

use greenroom::keys::KeyStatus;
use greenroom_config::words;

use super::{Control, look::error_text};
use crate::{dead_letter::Reason, engine::account::order_audit::OrderLine, excerpt::excerpt};

words! {
    /// A decision about a key that waits for an operator.
    pub enum Decision {
        /// The failed event is attempted again, and its earlier failures no longer count.
        Resume = "resume",
        /// That event becomes a dead letter, and the next event of the key is handled.
        Skip = "skip",
        /// That event and all that wait behind it become dead letters; later events of the key are
        /// handled.
        Drop = "drop",
    }
}

/// A key that was decided about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decided {
    /// The handler by which it is ordered.
    pub handler: String,
    /// The input that its events come from.
    pub input: String,
    /// How many events became dead letters by the decision.
    pub dead_letters: usize,
}

/// The key is parked, but by another event than the intended one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is the event {:?} that parks this key by now", excerpt(event))]
#[non_exhaustive]
pub struct OtherEvent {
    /// The id of that event.
    pub event: String,
}

impl Control {
    /// Decides about a parked key: with this handler, or with each that it is parked with. Empty if
    /// it is not parked.
    pub fn decide(&self, key: &str, handler: Option<&str>, decision: Decision) -> Vec<Decided> {
        self.decide_where(key, handler, decision, |_| true).unwrap_or_default()
    }

    /// Like [`decide`](Self::decide), about the event with this id: the one that the operator has
    /// looked at.
    ///
    /// # Errors
    /// Another event parks the key by now: nothing was decided.
    pub fn decide_about(
        &self,
        key: &str,
        handler: Option<&str>,
        event: &str,
        decision: Decision,
    ) -> Result<Vec<Decided>, OtherEvent> {
        self.decide_where(key, handler, decision, |id| id == Some(event))
    }

    fn decide_where(
        &self,
        key: &str,
        handler: Option<&str>,
        decision: Decision,
        is_meant: impl Fn(Option<&str>) -> bool,
    ) -> Result<Vec<Decided>, OtherEvent> {
        let (mut decided, mut other) = (Vec::new(), None);
        for line in self.lines(key) {
            if handler.is_some_and(|wanted| *self.names(&line).0.name != *wanted) {
                continue;
            }
            let Some(keys) = self.keys_of(&line) else { continue };
            // Looked at before the event: that is the one of this failure, or of a later one.
            let Some(why) = keys.status(&line, error_text) else { continue };
            let parked = self.shared.process.parked.event(&line);
            let id = parked.as_ref().map(|parked| parked.event.id());
            match is_meant(id) {
                true => decided.extend(self.decide_line(&line, &why, decision)),
                false if keys.is_parked(&line) => other = id.map(str::to_owned),
                false => {}
            }
        }
        match other {
            Some(event) if decided.is_empty() => Err(OtherEvent { event }),
            _ => Ok(decided),
        }
    }

    fn decide_line(
        &self,
        line: &OrderLine,
        why: &KeyStatus,
        decision: Decision,
    ) -> Option<Decided> {
        let (keys, failed_at) = (self.keys_of(line)?, why.failed_at?);
        let dead_letters = match decision {
            Decision::Resume => keys.replay_if(line, failed_at).then_some(0)?,
            Decision::Skip => keys.release_if(line, failed_at).then_some(1)?,
            Decision::Drop => {
                let jobs = keys.remove_if(line, failed_at)?;
                let error = why.last_error.as_ref();
                let why = error.map(|error| format!("; its key was parked after: {error}"));
                let error = format!("dropped by an operator{}", why.unwrap_or_default());
                let dropped = jobs.len();
                for job in jobs {
                    self.shared.give_up(job, Reason::Dropped, error.clone());
                }
                dropped
            }
        };
        let (handler, input) = self.names(line);
        let (key, handler) = (&*excerpt(&line.key), handler.name.to_string());
        tracing::info!(
            key,
            handler,
            input,
            ?decision,
            dead_letters,
            "a parked key was decided about"
        );
        Some(Decided { handler, input, dead_letters })
    }
}
