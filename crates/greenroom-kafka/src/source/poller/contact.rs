//! The known state of the brokers and of the group.

use std::time::{Duration, Instant};

use rdkafka::error::RDKafkaErrorCode;

use crate::{
    client::{Matter, advice},
    properties::Properties,
};

/// The same error is logged at most this often.
pub(super) const TOLD_EVERY: Duration = Duration::from_secs(30);

/// The default session of a member; and how often librdkafka reports its figures.
const SESSION: u64 = 45_000;
const STATISTICS: u64 = 1_000;

/// The known state of the brokers, and of the group.
#[derive(Default)]
pub(super) struct Contact {
    /// Errors, and when they were told.
    told: Vec<(RDKafkaErrorCode, Instant)>,
    /// When the clock of librdkafka began, as ours says it; no later than that.
    began: Option<Instant>,
    /// How long a member may be silent; `None` if the time of its last contact is not known.
    pub(super) session: Option<Duration>,
    pub(super) is_connected: bool,
    pub(super) was_connected: bool,
    /// The group has answered, be it with nothing to read.
    pub(super) has_joined: bool,
    /// Why it may not read.
    pub(super) denied: Option<String>,
    /// A topic is not there.
    pub(super) is_missing: bool,
}

impl Contact {
    pub(super) fn new(properties: &Properties) -> Self {
        Self { session: session(properties), ..Self::default() }
    }

    /// The group has given it something to read.
    pub(super) fn is_assigned(&mut self, any: bool) {
        self.has_joined = true;
        if any {
            (self.denied, self.is_missing) = (None, false);
        }
    }

    pub(super) fn hear(&mut self, code: RDKafkaErrorCode, matter: Matter) {
        match matter {
            Matter::Unreachable | Matter::NotLetIn => {
                self.is_connected &= code != RDKafkaErrorCode::AllBrokersDown;
            }
            Matter::Forbidden => self.denied = Some(format!("{code}{}", advice(code))),
            Matter::NotThere => self.is_missing = true,
            Matter::Other => {}
        }
    }

    /// True if it is to be logged now.
    pub(super) fn is_news(&mut self, code: RDKafkaErrorCode) -> bool {
        let now = Instant::now();
        self.told.retain(|(_, at)| now - *at <= TOLD_EVERY);
        let is_news = !self.told.iter().any(|(told, _)| *told == code);
        if is_news {
            self.told.push((code, now));
        }
        is_news
    }

    /// When these figures were recorded. They may have been delayed by a paused process; the least
    /// delayed ones show the difference between the clocks.
    pub(super) fn moment(&mut self, at: Duration) -> Option<Instant> {
        let began = Instant::now().checked_sub(at)?;
        let began = self.began.map_or(began, |known| known.min(began));
        self.began = Some(began);
        Some(began + at)
    }
}

/// How long a member may be silent. If figures come too rarely, the time of its last contact is not
/// known.
pub(in crate::source) fn session(properties: &Properties) -> Option<Duration> {
    let number = |name, otherwise| match properties.get(name) {
        Some(text) => text.parse::<u64>().ok(),
        None => Some(otherwise),
    };
    let session = number("session.timeout.ms", SESSION)?;
    let every = number("statistics.interval.ms", STATISTICS)?;
    (every > 0 && every.saturating_mul(3) <= session).then(|| Duration::from_millis(session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d12_a_session_is_known_where_figures_come_often_enough() {
        let of = |pairs: &[(&str, &str)]| session(&Properties::from_iter(pairs.iter().copied()));
        assert_eq!(of(&[]), Some(Duration::from_secs(45)));
        assert_eq!(of(&[("session.timeout.ms", "6000")]), Some(Duration::from_secs(6)));
        assert_eq!(of(&[("statistics.interval.ms", "0")]), None);
        assert_eq!(of(&[("statistics.interval.ms", "20000")]), None);
    }

    #[test]
    fn d12_figures_that_waited_for_a_paused_process_are_as_old_as_they_are() {
        let mut contact = Contact::default();
        let first = contact.moment(Duration::from_secs(1)).unwrap();
        contact.began = contact.began.map(|began| began - Duration::from_secs(50));
        let waited = contact.moment(Duration::from_secs(2)).unwrap();
        assert!(waited + Duration::from_secs(48) < first, "they came fifty seconds late");
    }
}
