//! RFC 3339 times: the check that a text is one, and the text of a system time in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// Whether `text` is an RFC 3339 date and time, such as `2026-01-31T12:00:00.5+01:00`.
pub(crate) fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let Some((date_time, rest)) = bytes.split_at_checked(19) else { return false };
    has_shape(date_time, b"dddd-dd-ddTdd:dd:dd")
        && in_range(date_time)
        && is_day(date_time)
        && is_offset(without_fraction(rest))
}

/// `d` matches a digit, `T` either case of that letter or a space, every other character itself.
fn has_shape(bytes: &[u8], shape: &[u8]) -> bool {
    bytes.len() == shape.len()
        && bytes.iter().zip(shape).all(|(byte, wanted)| match wanted {
            b'd' => byte.is_ascii_digit(),
            b'T' => matches!(byte, b'T' | b't' | b' '),
            _ => byte == wanted,
        })
}

fn two_digits(bytes: &[u8], at: usize) -> u8 {
    (bytes[at] - b'0') * 10 + (bytes[at + 1] - b'0')
}

/// A second of 60 is a leap second.
fn in_range(date_time: &[u8]) -> bool {
    (1..=12).contains(&two_digits(date_time, 5))
        && two_digits(date_time, 11) < 24
        && two_digits(date_time, 14) < 60
        && two_digits(date_time, 17) <= 60
}

/// RFC 3339, 5.7: a day that its month has, in that year.
fn is_day(date_time: &[u8]) -> bool {
    let year = u16::from(two_digits(date_time, 0)) * 100 + u16::from(two_digits(date_time, 2));
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let days = match two_digits(date_time, 5) {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (1..=days).contains(&two_digits(date_time, 8))
}

/// The text after a fraction of a second. Without digits after the point nothing is removed, and no
/// offset matches.
fn without_fraction(rest: &[u8]) -> &[u8] {
    let Some(fraction) = rest.strip_prefix(b".") else { return rest };
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 { rest } else { &fraction[digits..] }
}

fn is_offset(offset: &[u8]) -> bool {
    match offset {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', clock @ ..] => {
            has_shape(clock, b"dd:dd") && two_digits(clock, 0) < 24 && two_digits(clock, 3) < 60
        }
        _ => false,
    }
}

/// A moment: seconds since 1970 in UTC, and nanoseconds. Earlier ones are less.
pub(crate) type Moment = (i64, u32);

/// The moment that an RFC 3339 date and time is; `None` for any other text. Digits beyond
/// nanoseconds are left out.
pub(crate) fn moment(text: &str) -> Option<Moment> {
    if !is_time(text) {
        return None;
    }
    let (date_time, rest) = text.as_bytes().split_at_checked(19)?;
    let two = |at| i64::from(two_digits(date_time, at));
    let days = days_from_civil(two(0) * 100 + two(2), two(5), two(8));
    let seconds = ((days * 24 + two(11)) * 60 + two(14)) * 60 + two(17);
    let offset = without_fraction(rest);
    let fraction = rest[..rest.len() - offset.len()].iter().skip(1).copied();
    let nanos = fraction.chain(std::iter::repeat(b'0')).take(9);
    let nanos = nanos.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'));
    Some((seconds - offset_seconds(offset), nanos))
}

fn offset_seconds(offset: &[u8]) -> i64 {
    let [sign, clock @ ..] = offset else { return 0 };
    if clock.is_empty() {
        return 0;
    }
    let seconds = (i64::from(two_digits(clock, 0)) * 60 + i64::from(two_digits(clock, 3))) * 60;
    if *sign == b'-' { -seconds } else { seconds }
}

/// Days from 1970-01-01. Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms",
/// `days_from_civil`.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The time in UTC, with milliseconds. Times before 1970 are written as 1970.
pub(crate) fn format_utc(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let milli = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Year, month and day of a day counted from 1970-01-01, for days from then on.
/// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_of_rfc_3339_are_known_from_others() {
        for good in ["2026-01-31T12:00:00Z", "2009-02-16t13:53:10.25+01:00", "1990-12-31T23:59:60Z"]
        {
            assert!(is_time(good), "{good}");
        }
        for bad in [
            "",
            "2026-01-31",
            "2026-13-31T12:00:00Z",
            "2026-01-31T12:00:00",
            "2026-01-31T12:00:00.Z",
        ] {
            assert!(!is_time(bad), "{bad}");
        }
        for (month, days) in [(1, 31), (2, 28), (4, 30), (6, 30), (9, 30), (11, 30), (12, 31)] {
            for day in 0..=99 {
                let text = format!("2026-{month:02}-{day:02}T00:00:00Z");
                assert_eq!(is_time(&text), (1..=days).contains(&day), "{text}");
            }
        }
        for (year, is_leap) in [(2024, true), (2100, false), (2000, true), (0, true)] {
            assert_eq!(is_time(&format!("{year:04}-02-29T00:00:00Z")), is_leap, "{year}");
        }
        assert!(!is_time("2026-01-31T12:00:00+1:00"));
        assert!(!is_time("äääääääääääääääääääää"));
    }

    #[test]
    fn the_moment_of_a_time_does_not_depend_on_how_it_is_written() {
        let at = |text: &str| moment(text).unwrap();
        assert_eq!(at("1970-01-01T00:00:00Z"), (0, 0));
        assert_eq!(at("2000-02-29T00:00:00.007Z"), (951_782_400, 7_000_000));
        assert_eq!(at("2026-01-31T12:00:00+01:00"), at("2026-01-31t11:00:00.000z"));
        assert_eq!(at("2026-01-31T23:30:00-01:00"), at("2026-02-01T00:30:00Z"));
        assert_eq!(at("1969-12-31T23:59:59.5Z"), (-1, 500_000_000));
        assert!(at("2026-01-31T12:00:00.1Z") < at("2026-01-31T12:00:00.25Z"));
        assert_eq!(moment("2026-01-31"), None);
        for seconds in [0, 1_798_761_599, 4_102_444_800] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(at(&format_utc(time)), (seconds as i64, 0));
        }
    }

    #[test]
    fn system_times_are_written_in_utc() {
        let at = |seconds, millis| {
            UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis)
        };
        assert_eq!(format_utc(at(0, 0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(format_utc(at(951_782_400, 7)), "2000-02-29T00:00:00.007Z");
        assert_eq!(format_utc(at(1_798_761_599, 999)), "2026-12-31T23:59:59.999Z");
        assert!(is_time(&format_utc(SystemTime::now())));
    }
}
