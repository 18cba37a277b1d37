//! Whether the endpoint accepts items: reported once when it stops accepting, and once when it
//! accepts again.

use parking_lot::Mutex;

use super::counts::Signal;

/// The result of an attempt to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sent {
    /// It was accepted.
    Taken,
    /// There was no answer, or the answer asked for a retry later. The text describes it.
    NotNow(String),
    /// It was refused: a retry does not help.
    Refused(String),
}

/// The report of a change.
#[derive(Debug, PartialEq, Eq)]
enum ReachChange {
    Nothing,
    NotNow,
    Refused,
    Again,
}

/// The known state of the endpoint. It is the same for all signals, except that refusals apply to
/// each by itself.
#[derive(Default)]
pub(super) struct EndpointReach(Mutex<Known>);

#[derive(Default)]
struct Known {
    not_now: [bool; 3],
    refused: [bool; 3],
}

impl EndpointReach {
    /// Reports the state if it has changed.
    pub(super) fn note(&self, signal: Signal, sent: &Sent) {
        let told = self.0.lock().note(signal, sent);
        let signal = signal.name();
        match (told, sent) {
            (ReachChange::NotNow, Sent::NotNow(error)) => tracing::warn!(
                error,
                "telemetry does not reach its endpoint: until it does, data without room is dropped and counted; the run continues"
            ),
            (ReachChange::Refused, Sent::Refused(error)) => tracing::warn!(
                signal,
                error,
                "the telemetry endpoint refuses the data: it is dropped and counted; the run continues"
            ),
            (ReachChange::Again, _) => {
                tracing::info!("telemetry reaches its endpoint again")
            }
            _ => {}
        }
    }
}

impl Known {
    fn note(&mut self, signal: Signal, sent: &Sent) -> ReachChange {
        let at = signal as usize;
        let is_well = |known: &Self| !known.not_now.contains(&true) && !known.refused[at];
        let was_well = is_well(self);
        let was_refused = self.refused[at];
        let others_wait = self.not_now.contains(&true);
        self.not_now[at] = matches!(sent, Sent::NotNow(_));
        self.refused[at] = matches!(sent, Sent::Refused(_));
        match sent {
            Sent::NotNow(_) if !others_wait => ReachChange::NotNow,
            Sent::Refused(_) if !was_refused => ReachChange::Refused,
            Sent::Taken if !was_well && is_well(self) => ReachChange::Again,
            _ => ReachChange::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o06_an_endpoint_that_is_gone_is_told_once_and_once_that_it_is_back() {
        use Signal::{Logs, Metrics, Traces};
        let (taken, not_now) = (Sent::Taken, Sent::NotNow("no".into()));
        let refused = Sent::Refused("401".into());
        let mut known = Known::default();
        let steps = [
            (Traces, &taken, ReachChange::Nothing),
            (Traces, &not_now, ReachChange::NotNow),
            (Logs, &not_now, ReachChange::Nothing),
            (Traces, &not_now, ReachChange::Nothing),
            (Traces, &taken, ReachChange::Nothing),
            (Logs, &taken, ReachChange::Again),
            (Metrics, &taken, ReachChange::Nothing),
            (Logs, &refused, ReachChange::Refused),
            (Logs, &refused, ReachChange::Nothing),
            (Traces, &taken, ReachChange::Nothing),
            (Traces, &not_now, ReachChange::NotNow),
            (Traces, &taken, ReachChange::Again),
            (Logs, &taken, ReachChange::Again),
            (Logs, &taken, ReachChange::Nothing),
        ];
        for (place, (signal, sent, told)) in steps.into_iter().enumerate() {
            assert_eq!(known.note(signal, sent), told, "step {place}");
        }
    }
}
