//! The status map: what follows from an HTTP status, as data that can be shown and tested.

/// What a status of the target means for the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The event is handled.
    Settle,
    /// Another attempt may help; `Retry-After` is honoured.
    Retry,
    /// The configuration is at fault, not the event: the handler pauses.
    Pause,
    /// No attempt will help: a dead letter.
    Reject,
}

/// One row of the status map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// First status of the row.
    pub from: u16,
    /// Last status of the row.
    pub to: u16,
    /// What follows.
    pub verdict: Verdict,
    /// Why, for people.
    pub why: &'static str,
}

const fn row(from: u16, to: u16, verdict: Verdict, why: &'static str) -> Row {
    Row { from, to, verdict, why }
}

/// The status map. The first row that holds a status decides; a status that no row holds is tried again.
pub const STATUS_MAP: &[Row] = &[
    row(200, 299, Verdict::Settle, "handled"),
    row(300, 399, Verdict::Reject, "redirects are not followed"),
    row(401, 401, Verdict::Pause, "a credential is missing or wrong"),
    row(403, 403, Verdict::Pause, "the credential does not suffice"),
    row(408, 408, Verdict::Retry, "the target waited too long for the request"),
    row(425, 425, Verdict::Retry, "too early"),
    row(429, 429, Verdict::Retry, "too many requests"),
    row(400, 499, Verdict::Reject, "the target does not want this event"),
    row(500, 599, Verdict::Retry, "the target failed"),
];

/// What follows from `status`.
pub fn verdict(status: u16) -> Verdict {
    let row = STATUS_MAP.iter().find(|row| (row.from..=row.to).contains(&status));
    row.map_or(Verdict::Retry, |row| row.verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u04_every_status_has_its_verdict() {
        for status in 0..=999 {
            let expected = match status {
                200..=299 => Verdict::Settle,
                401 | 403 => Verdict::Pause,
                408 | 425 | 429 => Verdict::Retry,
                300..=499 => Verdict::Reject,
                _ => Verdict::Retry,
            };
            assert_eq!(verdict(status), expected, "{status}");
        }
    }
}
