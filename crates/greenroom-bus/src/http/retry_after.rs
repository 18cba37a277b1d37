//! The `Retry-After` header: seconds, or a date (RFC 9110, 10.2.3).

use std::time::{Duration, SystemTime};

/// How long to wait, seen from `now`; `None` for a value that names no wait. Neither 0 nor a date
/// that has passed does: taken for one, they would have the event sent again and again without any
/// pause.
pub(super) fn parse(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let wait = match value.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(value).ok()?.duration_since(now).ok()?,
    };
    Some(wait).filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

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
        let leap_day = parse("Thu, 29 Feb 2024 00:00:00 GMT", at(0));
        assert_eq!(leap_day, Some(Duration::from_secs(1_709_164_800)));
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
