//! The state of an input's connection (O17): set by its source, in one place, and shown by the log,
//! health, metrics and the screen.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

spelled! {
    word:
    /// The state of an input's connection. A source without a connection, such as a file, is always
    /// [`Assigned`](Self::Assigned).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum InputState {
        /// No broker has answered yet.
        Connecting = "connecting",
        /// A broker answers, and has not assigned anything yet.
        Joining = "joining",
        /// It has an assignment, and reads it; the assignment may be empty, if others read
        /// everything.
        Assigned = "assigned",
        /// The object that it reads does not exist: a topic that was not created yet.
        Waiting = "waiting",
        /// Its login or its access is refused: an operator has to correct that.
        Refused = "refused",
        /// It was connected, and is not any more.
        Lost = "lost",
    }
}

/// The state of an input at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputStatus {
    /// Which.
    pub state: InputState,
    /// Details, in words: which partitions, which error, the next step.
    pub detail: String,
    /// For how long it has been in this state.
    pub lasted: Duration,
    /// A remark that an operator should know, whatever the state.
    pub remark: Option<String>,
}

impl InputStatus {
    /// Whether events can come.
    pub fn is_connected(&self) -> bool {
        self.state == InputState::Assigned
    }
}

/// Where a source reports its state. Each change is logged here, and nowhere else.
#[derive(Debug)]
pub struct StatusCell {
    /// The name of the source in logs.
    name: String,
    now: Mutex<StatusNow>,
}

#[derive(Debug)]
struct StatusNow {
    state: InputState,
    detail: String,
    since: Instant,
    remark: Option<String>,
    /// It was logged.
    is_told: bool,
}

impl StatusCell {
    /// Of a source with this description, which connects.
    pub fn new(name: impl Into<String>, detail: impl Into<String>) -> Arc<Self> {
        let (state, detail) = (InputState::Connecting, detail.into());
        let now = StatusNow { state, detail, since: Instant::now(), remark: None, is_told: false };
        Arc::new(Self { name: name.into(), now: Mutex::new(now) })
    }

    /// Sets the state. If it is unchanged, nothing happens.
    pub fn set(&self, state: InputState, detail: impl Into<String>) {
        let detail = detail.into();
        let mut now = self.now.lock();
        let is_same = now.state == state;
        if is_same && now.detail == detail {
            return;
        }
        // The text of an error may change with each attempt; an assignment is always reported.
        let is_told = is_same && now.is_told && state != InputState::Assigned;
        let since = if is_same { now.since } else { Instant::now() };
        let remark = now.remark.take();
        *now = StatusNow { state, detail: detail.clone(), since, remark, is_told: true };
        drop(now);
        if !is_told {
            self.tell(state, &detail);
        }
    }

    /// A remark that an operator should know from now on, whatever its state. It is not logged
    /// here.
    pub fn remark(&self, remark: impl Into<String>) {
        self.now.lock().remark = Some(remark.into());
    }

    fn tell(&self, state: InputState, detail: &str) {
        let (name, word) = (&self.name, state.word());
        match state {
            InputState::Joining | InputState::Assigned => {
                tracing::info!("{name}: {word}: {detail}");
            }
            InputState::Connecting | InputState::Waiting | InputState::Lost => {
                tracing::warn!("{name}: {word}: {detail}");
            }
            InputState::Refused => tracing::error!("{name}: {word}: {detail}"),
        }
    }

    /// Its state.
    pub fn get(&self) -> InputStatus {
        let now = self.now.lock();
        InputStatus {
            state: now.state,
            detail: now.detail.clone(),
            lasted: now.since.elapsed(),
            remark: now.remark.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o17_a_state_lasts_until_there_is_another_and_its_words_may_change_meanwhile() {
        let cell = StatusCell::new("kafka:orders", "kafka-1:9092");
        assert_eq!(cell.get().state.word(), "connecting");
        cell.set(InputState::Lost, "no broker answers");
        let since = cell.now.lock().since;
        cell.set(InputState::Lost, "no broker answers: refused");
        assert_eq!(cell.get().detail, "no broker answers: refused");
        assert_eq!(cell.now.lock().since, since);
        cell.set(InputState::Assigned, "orders/0");
        cell.remark("it is read without a lease");
        cell.set(InputState::Assigned, "orders/0, orders/1");
        assert!(cell.get().is_connected());
        assert_eq!(cell.get().remark.as_deref(), Some("it is read without a lease"));
        let words = InputState::ALL.map(InputState::word);
        assert_eq!(words, ["connecting", "joining", "assigned", "waiting", "refused", "lost"]);
    }
}
