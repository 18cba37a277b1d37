//! The `Retry-After` header: seconds, or a date (RFC 9110, 10.2.3).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// How long to wait, seen from `now`; `None` for a value that names no wait. Neither 0 nor a date
/// that has passed does: taken for one, they would have the event sent again and again without any
/// pause.
pub(super) fn parse(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let wait = match value.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => date(value)?.duration_since(now).ok()?,
    };
    Some(wait).filter(|wait| !wait.is_zero())
}

/// Reads the one date format that servers may send today, `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(value: &str) -> Option<SystemTime> {
    let mut parts = value.split_once(", ")?.1.split(' ');
    let day: u64 = parts.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month = parts.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let year: u64 = parts.next()?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let seconds = clock(parts.next()?)?;
    let is_gmt = parts.next() == Some("GMT") && parts.next().is_none();
    is_gmt.then(|| UNIX_EPOCH + Duration::from_secs(days(year, month, day) * 86_400 + seconds))
}

/// Seconds into the day.
fn clock(value: &str) -> Option<u64> {
    let mut parts = value.splitn(3, ':').map(str::parse::<u64>);
    let (hours, minutes, seconds) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    (hours < 24 && minutes < 60 && seconds <= 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

/// Days from 1970-01-01 in the Gregorian calendar. The year is taken to begin in March, so that the
/// leap day is its last one.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before = year * 365 + year / 4 - year / 100 + year / 400;
    before + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn u04_retry_after_is_read_as_seconds() {
        assert_eq!(parse(" 120 ", at(0)), Some(Duration::from_secs(120)));
    }

    #[test]
    fn u04_retry_after_is_read_as_a_date() {
        let value = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(parse(value, at(784_111_777 - 5)), Some(Duration::from_secs(5)));
        assert_eq!(date("Thu, 29 Feb 2024 00:00:00 GMT"), Some(at(1_709_164_800)));
        assert_eq!(date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(at(0)));
    }

    #[test]
    fn u04_retry_after_of_no_time_leaves_the_backoff() {
        let value = "Sun, 06 Nov 1994 08:49:37 GMT";
        for now in [784_111_777, 784_111_777 + 5] {
            assert_eq!(parse(value, at(now)), None);
        }
        assert_eq!(parse("0", at(0)), None);
    }

    #[test]
    fn u04_retry_after_that_says_nothing_is_no_wait_named() {
        for value in ["", "soon", "-1", "1.5", "Sun, 06 Nov 1994", "Sun, 06 Foo 1994 08:49:37 GMT"]
        {
            assert_eq!(parse(value, at(0)), None, "{value:?}");
        }
    }
}
