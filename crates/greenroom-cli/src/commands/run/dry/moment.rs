//! The `time` of an event as a number, to see the span of time over which events were made.

/// Seconds since 1970 of an RFC 3339 time; `None` for other text.
pub(super) fn seconds(time: &str) -> Option<f64> {
    let (date, clock) = (time.get(..10)?, time.get(11..)?);
    let mut date = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone = clock.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = clock.split_at(zone);
    let mut clock = clock.split(':');
    let hours: f64 = clock.next()?.parse().ok()?;
    let minutes: f64 = clock.next()?.parse().ok()?;
    let seconds: f64 = clock.next()?.parse().ok()?;
    let midnight = days(year, month, day) as f64 * 86_400.0;
    Some(midnight + hours * 3_600.0 + minutes * 60.0 + seconds - offset(zone)?)
}

/// The offset of a zone from UTC, in seconds.
fn offset(zone: &str) -> Option<f64> {
    let sign = match zone.get(..1)? {
        "+" => 1.0,
        "-" => -1.0,
        _ => return Some(0.0),
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let (hours, minutes): (f64, f64) = (hours.parse().ok()?, minutes.parse().ok()?);
    Some(sign * (hours * 3_600.0 + minutes * 60.0))
}

/// Days from 1970-01-01 in the Gregorian calendar. The year is assumed to begin in March, so that
/// the leap day is its last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn times_are_seconds_since_1970() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(seconds("2024-02-29T00:00:01.5Z"), Some(1_709_164_801.5));
        assert_eq!(seconds("1970-01-01T02:00:00+02:00"), Some(0.0));
        assert_eq!(seconds("1969-12-31T22:30:00-01:30"), Some(0.0));
        assert_eq!(seconds("yesterday"), None);
    }
}
