//! Durations, sizes, rates and counts as people write them.

use std::{fmt, time::Duration};

/// A day, in milliseconds: bounds of durations are declared in these.
pub const DAY_MS: u64 = 86_400_000;

/// A gibibyte, in bytes.
pub const GIB: u64 = 1 << 30;

/// A number of things per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// How many in each second; above zero.
    pub per_second: f64,
}

/// Two durations, the first at most the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurationRange {
    /// The shortest.
    pub from: Duration,
    /// The longest.
    pub to: Duration,
}

/// `200ms`, `5s`, `1.5s`, `1m`, `1h`; also `us` and `d`.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * seconds).ok()
}

/// `200ms..30s`; a single duration is both ends of its range.
pub fn duration_range(text: &str) -> Option<DurationRange> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let range = DurationRange { from: duration(from)?, to: duration(to)? };
    (range.from <= range.to).then_some(range)
}

/// `64KiB`, `1MiB`, `10kB`, or bytes without a unit. Powers of 1024 with an `i`, of 1000 without.
pub fn size(text: &str) -> Option<u64> {
    if let Some(bytes) = count(text) {
        return Some(bytes);
    }
    let (number, unit) = split(text)?;
    let bytes = match unit {
        "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    // Saturates; no configured limit is large enough to lose precision.
    Some((number * bytes) as u64)
}

/// `20/s`, `100/min`, `5/h`.
pub fn rate(text: &str) -> Option<Rate> {
    let (number, unit) = text.split_once('/')?;
    let number: f64 = number.trim().replace('_', "").parse().ok()?;
    let seconds = match unit.trim() {
        "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let per_second = number / seconds;
    (per_second.is_finite() && per_second > 0.0).then_some(Rate { per_second })
}

/// `1000` and `1_000`.
pub fn count(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let digits = text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let framed = text.starts_with('_') || text.ends_with('_');
    if !digits || framed { None } else { text.replace('_', "").parse().ok() }
}

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.trim().replace('_', "").parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number, unit))
}

/// The shortest exact spelling of a duration, for messages.
pub fn show_duration(duration: Duration) -> String {
    let micros = duration.as_micros();
    let units = [(3_600_000_000, "h"), (60_000_000, "m"), (1_000_000, "s"), (1_000, "ms")];
    match units.iter().find(|(unit, _)| micros > 0 && micros.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", micros / unit),
        None if micros == 0 => "0s".to_owned(),
        None => format!("{micros}us"),
    }
}

/// The shortest exact spelling of a size, for messages.
pub fn show_size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}

impl fmt::Display for DurationRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", show_duration(self.from), show_duration(self.to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c08_durations_have_units() {
        let ms = Duration::from_millis;
        for (text, expected) in [
            ("200ms", Some(ms(200))),
            ("5s", Some(ms(5000))),
            ("1.5s", Some(ms(1500))),
            ("1m", Some(ms(60_000))),
            ("1h", Some(ms(3_600_000))),
            ("0ms", Some(Duration::ZERO)),
            ("5", None),
            ("-5s", None),
            ("5 parsecs", None),
            ("s", None),
            ("1e400s", None),
        ] {
            assert_eq!(duration(text), expected, "{text}");
        }
    }

    #[test]
    fn c08_sizes_rates_ranges_and_counts() {
        assert_eq!(size("64KiB"), Some(65_536));
        assert_eq!(size("1MiB"), Some(1 << 20));
        assert_eq!(size("1_000"), Some(1000));
        assert_eq!(size("10kB"), Some(10_000));
        assert_eq!(size("10 XiB"), None);
        assert_eq!(rate("20/s"), Some(Rate { per_second: 20.0 }));
        assert_eq!(rate("120/min"), Some(Rate { per_second: 2.0 }));
        assert_eq!(rate("0/s"), None);
        assert_eq!(rate("20"), None);
        assert_eq!(
            duration_range("200ms..30s").map(|r| r.to_string()).as_deref(),
            Some("200ms..30s")
        );
        assert_eq!(duration_range("30s..200ms"), None);
        assert_eq!(count("10_000"), Some(10_000));
        assert_eq!(count("_1"), None);
        assert_eq!(count(""), None);
    }
}
