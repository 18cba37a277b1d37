//! Values of the command line, with their ranges.

use std::time::{Duration, SystemTime};

use greenroom_bus::store::letters::Filter;

use crate::config;

/// A shorter run would mostly measure startup.
const SHORTEST: Duration = Duration::from_millis(100);
/// More than anyone watches.
const LONGEST: Duration = Duration::from_secs(3_600);
/// A message with more work than this is no longer a message.
const MOST_WORK: Duration = Duration::from_secs(1);
/// More than any pool can handle.
const FASTEST: f64 = 100e6;

/// A duration in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seconds(pub Duration);

/// `10`, `0.5`, `10s`, `500ms`.
pub(super) fn seconds(text: &str) -> Result<Seconds, String> {
    let bare = text.parse().ok().and_then(|number| Duration::try_from_secs_f64(number).ok());
    match bare.or_else(|| config::duration(text)) {
        Some(length) if (SHORTEST..=LONGEST).contains(&length) => Ok(Seconds(length)),
        _ => Err("a time from 0.1 to 3600 seconds is needed, such as `10` or `500ms`".to_owned()),
    }
}

/// `2us`, `1.5ms`, `300ns`, `0`.
pub(super) fn work(text: &str) -> Result<Duration, String> {
    let nanos = text.strip_suffix("ns").and_then(|number| number.trim().parse().ok());
    let found = match text {
        "0" => Some(Duration::ZERO),
        _ => nanos.map(Duration::from_nanos).or_else(|| config::duration(text)),
    };
    found.filter(|work| *work <= MOST_WORK).ok_or_else(|| {
        "a time with its unit is needed, of at most 1 s, such as `300ns`, `2us` or `1ms`".to_owned()
    })
}

/// `12h`, `7d`, `0s`.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    config::duration(text)
        .ok_or_else(|| "a time with its unit is needed, such as `12h` or `0s`".to_owned())
}

/// `1m`, `500ms`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    config::duration(text).ok_or_else(|| "a time is needed, such as `30s` or `5m`".to_owned())
}

/// `64KiB`, `1MiB`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let found = config::size(text).filter(|size| *size > 0);
    found.ok_or_else(|| "a size above 0 is needed, such as `64KiB` or `1MiB`".to_owned())
}

/// `20000`, `20_000`, `20000/s`, `600/min`.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let bare = text.replace('_', "").parse::<f64>().ok();
    let found = bare.or_else(|| config::rate(text).map(|rate| rate.per_second));
    found.filter(|rate| *rate > 0.0 && *rate <= FASTEST).ok_or_else(|| {
        "messages per second are needed, above 0 and at most 100 million, such as `20000` or `20000/s`"
            .to_owned()
    })
}

/// `2026-01-31T12:00:00Z`, or `2h` for that long ago. In RFC 3339.
pub(super) fn since(text: &str) -> Result<String, String> {
    if Filter::moment(text).is_some() {
        return Ok(text.to_owned());
    }
    let ago = config::duration(text).and_then(|ago| SystemTime::now().checked_sub(ago));
    ago.map(Filter::moment_text).ok_or_else(|| {
        "a time is needed, such as `2026-01-31T12:00:00Z`, or `2h` for two hours ago".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_people_write() {
        let ms = Duration::from_millis;
        assert_eq!(seconds("10").map(|s| s.0), Ok(ms(10_000)));
        assert_eq!(seconds("0.5").map(|s| s.0), Ok(ms(500)));
        assert_eq!(seconds("500ms").map(|s| s.0), Ok(ms(500)));
        assert_eq!(work("300ns"), Ok(Duration::from_nanos(300)));
        assert_eq!(work("1.5us"), Ok(Duration::from_nanos(1_500)));
        assert_eq!(work("0"), Ok(Duration::ZERO));
        assert_eq!(age("0s"), Ok(Duration::ZERO));
        assert_eq!(age("12h"), Ok(Duration::from_secs(12 * 3_600)));
        assert!(age("12").is_err());
        assert_eq!(rate("20_000"), Ok(20_000.0));
        assert_eq!(rate("600/min"), Ok(10.0));
    }

    #[test]
    fn what_they_may_not_be_is_told() {
        for wrong in ["", "0", "-1", "nan", "inf", "1e9", "ten", "5 parsecs"] {
            assert!(seconds(wrong).unwrap_err().contains("0.1 to 3600"), "{wrong}");
            assert!(wrong == "0" || work(wrong).unwrap_err().contains("unit"), "{wrong}");
            assert!(rate(wrong).is_err() || wrong == "1e9", "{wrong}");
        }
        assert!(rate("1e9").is_err() && rate("inf").is_err() && rate("0/s").is_err());
    }
}
