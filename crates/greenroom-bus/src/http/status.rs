//! The status map: the consequence of an HTTP status, or of none, as data that can be shown, tested
//! and overridden.

use std::{fmt, str::FromStr};

spelled! {
    as_str:
    /// The meaning of a target's answer for the event.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Verdict {
        /// The event is handled.
        Settle = "settle",
        /// Another attempt may help; `Retry-After` is honoured.
        Retry = "retry",
        /// Another attempt may help; until then, nothing of the share of the event is attempted.
        /// Without a share, as `Retry`.
        Hold = "hold",
        /// The configuration is at fault, not the event: the handler pauses.
        Pause = "pause",
        /// The target wants nothing more of the share of the event: it is paused until an operator
        /// resumes it. Without a share, as `Reject`.
        PauseShare = "pause_share",
        /// No attempt will help: a dead letter.
        Reject = "reject",
        /// An operator has to decide: the key waits with the event at its head. An event without
        /// order is a dead letter.
        Park = "park",
    }
}

impl Verdict {
    /// What waits because of it, beside the event.
    pub const fn holds(self) -> &'static str {
        match self {
            Self::Settle | Self::Reject => "",
            Self::Retry | Self::Park => "key",
            Self::Hold | Self::PauseShare => "share",
            Self::Pause => "handler",
        }
    }
}

/// A word that is no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of settle, retry, hold, pause, pause_share, reject and park")]
pub struct NoVerdict(pub String);

impl FromStr for Verdict {
    type Err = NoVerdict;

    fn from_str(word: &str) -> Result<Self, NoVerdict> {
        let found = Self::ALL.into_iter().find(|verdict| verdict.as_str() == word);
        found.ok_or_else(|| NoVerdict(word.to_owned()))
    }
}

/// How an attempt ended, as far as a row of the status map tells it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// An answer with one of these statuses, both included.
    Status {
        /// The first.
        from: u16,
        /// The last.
        to: u16,
    },
    /// No answer within the time limit.
    Timeout,
    /// No connection, or one that was lost before the answer was complete.
    Connection,
}

/// Statuses have three digits.
const STATUSES: std::ops::RangeInclusive<u16> = 100..=999;

impl On {
    /// Exactly this status.
    const fn exactly(status: u16) -> Self {
        Self::Status { from: status, to: status }
    }

    /// All that begin with this digit.
    const fn class(digit: u16) -> Self {
        Self::Status { from: digit * 100, to: digit * 100 + 99 }
    }

    /// How many statuses a row holds.
    fn width(self) -> u16 {
        match self {
            Self::Status { from, to } => to - from,
            Self::Timeout | Self::Connection => 0,
        }
    }

    fn holds(self, status: u16) -> bool {
        matches!(self, Self::Status { from, to } if (from..=to).contains(&status))
    }
}

/// As it is written in the configuration.
impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Timeout => f.pad("timeout"),
            Self::Connection => f.pad("connection"),
            Self::Status { from, to } if from == to => f.pad(&from.to_string()),
            Self::Status { from, to } if from % 100 == 0 && to == from + 99 => {
                f.pad(&format!("{}xx", from / 100))
            }
            Self::Status { from, to } => f.pad(&format!("{from}..{to}")),
        }
    }
}

/// Text that names no row of the status map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is neither a status (`404`), a class (`5xx`), a range (`520..529`), `timeout` nor `connection`"
)]
pub struct NoRow(pub String);

impl FromStr for On {
    type Err = NoRow;

    fn from_str(text: &str) -> Result<Self, NoRow> {
        let status = |text: &str| text.parse().ok().filter(|status| STATUSES.contains(status));
        let found = match text {
            "timeout" => Some(Self::Timeout),
            "connection" => Some(Self::Connection),
            _ => match (text.strip_suffix("xx"), text.split_once("..")) {
                (Some(digit), _) => {
                    status(&format!("{digit}00")).map(|from| Self::class(from / 100))
                }
                (None, Some((from, to))) => match (status(from), status(to)) {
                    (Some(from), Some(to)) if from <= to => Some(Self::Status { from, to }),
                    _ => None,
                },
                (None, None) => status(text).map(Self::exactly),
            },
        };
        found.ok_or_else(|| NoRow(text.to_owned()))
    }
}

/// One row of the status map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The answers that it covers.
    pub on: On,
    /// The consequence.
    pub verdict: Verdict,
    /// Why, for people.
    pub why: &'static str,
}

const fn row(on: On, verdict: Verdict, why: &'static str) -> Row {
    Row { on, verdict, why }
}

/// The rows that hold where nothing else was said. The first that holds a status decides; a status
/// that no row holds is tried again.
pub const STATUS_MAP: &[Row] = &[
    row(On::class(2), Verdict::Settle, "handled"),
    row(On::class(3), Verdict::Reject, "redirects are not followed"),
    row(On::exactly(401), Verdict::Pause, "a credential is missing or wrong"),
    row(On::exactly(403), Verdict::Pause, "the credential does not suffice"),
    row(On::exactly(408), Verdict::Retry, "the target waited too long for the request"),
    row(On::exactly(410), Verdict::PauseShare, "the target is gone for good"),
    row(On::exactly(425), Verdict::Retry, "too early"),
    row(On::exactly(429), Verdict::Hold, "too many requests"),
    row(On::class(4), Verdict::Reject, "the target does not want this event"),
    row(On::class(5), Verdict::Retry, "the target failed"),
    row(On::Timeout, Verdict::Retry, "no answer in time; the target may still be at work"),
    row(On::Connection, Verdict::Retry, "refused, or lost before the answer was there"),
];

/// The origin of a row that comes from a configuration.
const CONFIGURED: &str = "set in the configuration";

/// The consequence of each answer: [`STATUS_MAP`], preceded by rows of the configuration.
///
/// ```
/// use greenroom_bus::http::{On, StatusMap, Verdict};
///
/// let map = StatusMap::with([("404".parse()?, Verdict::Retry), ("4xx".parse()?, Verdict::Park)])?;
/// assert_eq!(map.verdict(404), Verdict::Retry); // the narrowest row decides, wherever it stands
/// assert_eq!(map.verdict(422), Verdict::Park);
/// assert_eq!(map.verdict(503), Verdict::Retry);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusMap {
    /// The narrowest first.
    configured: Vec<Row>,
}

/// Rows that make no status map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatusMapError {
    /// An event without an answer would count as handled.
    #[error("`{0}` cannot settle an event: nobody has said that it was handled")]
    Unanswered(On),
    /// Two rows are for the same answers.
    #[error("`{0}` is given twice")]
    Twice(On),
}

impl StatusMap {
    /// The usual map with these rows before it. Where several hold a status, the narrowest decides;
    /// of those equally narrow, the first.
    ///
    /// # Errors
    /// A row that settles without an answer, or two for the same answers.
    pub fn with(rows: impl IntoIterator<Item = (On, Verdict)>) -> Result<Self, StatusMapError> {
        let mut configured: Vec<Row> = Vec::new();
        for (on, verdict) in rows {
            if verdict == Verdict::Settle && !matches!(on, On::Status { .. }) {
                return Err(StatusMapError::Unanswered(on));
            }
            if configured.iter().any(|row| row.on == on) {
                return Err(StatusMapError::Twice(on));
            }
            configured.push(row(on, verdict, CONFIGURED));
        }
        configured.sort_by_key(|row| row.on.width());
        Ok(Self { configured })
    }

    /// The consequence of `status`.
    pub fn verdict(&self, status: u16) -> Verdict {
        self.find(|on| on.holds(status))
    }

    /// The consequence of `status` in an answer that asks to wait (`Retry-After`), or not: a 503
    /// that does holds the share, where the configuration does not say otherwise.
    pub fn verdict_on(&self, status: u16, asks_to_wait: bool) -> Verdict {
        let is_configured = self.configured.iter().any(|row| row.on.holds(status));
        match status {
            503 if asks_to_wait && !is_configured => Verdict::Hold,
            _ => self.verdict(status),
        }
    }

    /// The consequence of a timeout.
    pub fn timeout(&self) -> Verdict {
        self.find(|on| on == On::Timeout)
    }

    /// The consequence of a failed or lost connection.
    pub fn connection(&self) -> Verdict {
        self.find(|on| on == On::Connection)
    }

    /// The rows in the order in which they are looked at, those of the configuration first. Of
    /// these, rows of [`STATUS_MAP`] that they replace are left out.
    pub fn rows(&self) -> Vec<Row> {
        let replaced = |row: &&Row| !self.configured.iter().any(|own| own.on == row.on);
        self.configured.iter().chain(STATUS_MAP.iter().filter(replaced)).copied().collect()
    }

    /// True for a row that comes from a configuration.
    pub fn is_configured(&self, row: &Row) -> bool {
        self.configured.contains(row)
    }

    fn find(&self, is: impl Fn(On) -> bool) -> Verdict {
        let row = self.configured.iter().chain(STATUS_MAP).find(|row| is(row.on));
        row.map_or(Verdict::Retry, |row| row.verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u04_every_status_has_its_verdict() {
        let map = StatusMap::default();
        for status in 0..=999 {
            let expected = match status {
                200..=299 => Verdict::Settle,
                401 | 403 => Verdict::Pause,
                408 | 425 => Verdict::Retry,
                410 => Verdict::PauseShare,
                429 => Verdict::Hold,
                300..=499 => Verdict::Reject,
                _ => Verdict::Retry,
            };
            assert_eq!(map.verdict(status), expected, "{status}");
        }
        assert_eq!((map.timeout(), map.connection()), (Verdict::Retry, Verdict::Retry));
    }

    #[test]
    fn q06_a_503_that_says_when_to_come_back_holds_the_share() {
        let usual = StatusMap::default();
        assert_eq!(usual.verdict_on(503, true), Verdict::Hold);
        assert_eq!(usual.verdict_on(503, false), Verdict::Retry);
        assert_eq!(usual.verdict_on(500, true), Verdict::Retry);
        let own = StatusMap::with([("5xx".parse().unwrap(), Verdict::Retry)]).unwrap();
        assert_eq!(own.verdict_on(503, true), Verdict::Retry, "the configuration decides");
        assert_eq!(usual.verdict(429).holds(), "share");
    }

    #[test]
    fn u04_each_row_can_be_overridden_by_its_name() {
        for row in STATUS_MAP {
            let on: On = row.on.to_string().parse().unwrap();
            assert_eq!(on, row.on);
            let map = StatusMap::with([(on, Verdict::Park)]).unwrap();
            let found = match on {
                On::Status { from, .. } => map.verdict(from),
                On::Timeout => map.timeout(),
                On::Connection => map.connection(),
            };
            assert_eq!(found, Verdict::Park, "{on}");
            assert_eq!(map.rows().len(), STATUS_MAP.len(), "it takes the place of the other");
            assert!(map.is_configured(&map.rows()[0]));
        }
    }

    #[test]
    fn u04_the_narrowest_row_decides() {
        let rows = ["4xx", "404..410", "409"].map(|on| on.parse().unwrap());
        let verdicts = [Verdict::Retry, Verdict::Park, Verdict::Settle];
        let map = StatusMap::with(rows.into_iter().zip(verdicts)).unwrap();
        assert_eq!(map.verdict(409), Verdict::Settle);
        assert_eq!(map.verdict(404), Verdict::Park);
        assert_eq!(map.verdict(422), Verdict::Retry);
        assert_eq!(map.verdict(500), Verdict::Retry);
        assert_eq!(map.verdict(302), Verdict::Reject);
    }

    #[test]
    fn u04_what_names_no_row_is_refused() {
        for text in ["", "42", "1000", "6x", "xx", "500..400", "404-410", "timeouts"] {
            assert!(text.parse::<On>().is_err(), "{text}");
        }
        let settles = |on| StatusMap::with([(on, Verdict::Settle)]);
        assert_eq!(settles(On::Timeout), Err(StatusMapError::Unanswered(On::Timeout)));
        assert_eq!(settles(On::Connection), Err(StatusMapError::Unanswered(On::Connection)));
        let twice =
            StatusMap::with([(On::class(4), Verdict::Park), (On::class(4), Verdict::Retry)]);
        assert_eq!(twice, Err(StatusMapError::Twice(On::class(4))));
        assert!("stop".parse::<Verdict>().unwrap_err().to_string().contains("none of settle"));
    }
}
