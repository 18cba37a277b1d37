//! Durations, sizes, rates, counts; rows of the status map.

use fuzz::fuzz;
use greenroom_bus::http::On;
use greenroom_config::units::{
    count, duration, duration_range, rate, show_duration, show_size, size,
};

const VALUES: &[&[u8]] = &[
    b"200ms",
    b"1.5s",
    b"200ms..30s",
    b"64KiB",
    b"1_000_000",
    b"20/s",
    b"100/min",
    b"1us",
    b"4xx",
    b"520..529",
    b"timeout",
];

const TOKENS: &[&str] = &[
    "ms",
    "s",
    "us",
    "d",
    "h",
    "/",
    "/h",
    "..",
    "_",
    ".",
    "-",
    "+",
    "e",
    "e308",
    "E-9",
    "inf",
    "nan",
    "KiB",
    "GB",
    "0",
    "9",
    "18446744073709551616",
    "99999999999999999999",
    " ",
    "\u{fc}",
    "\u{b5}s",
];

#[test]
fn units() {
    fuzz!(VALUES, TOKENS, |input| {
        let text = String::from_utf8_lossy(input);
        if let Some(found) = duration(&text) {
            let shown = show_duration(found);
            let again = duration(&shown).unwrap_or_else(|| panic!("{text}: {shown}"));
            // To the microsecond, and to the precision of a double in what is longer than years.
            let off = again.abs_diff(found).as_secs_f64();
            assert!(off <= 1e-6 + found.as_secs_f64() * 1e-12, "{text}: {shown}");
        }
        if let Some(range) = duration_range(&text) {
            assert!(range.from <= range.to);
        }
        if let Some(bytes) = size(&text) {
            let shown = show_size(bytes);
            let again = size(shown.trim_end_matches(" bytes"));
            assert!(again.is_some(), "{text}: {shown}");
        }
        if let Some(rate) = rate(&text) {
            assert!(rate.per_second.is_finite() && rate.per_second > 0.0, "{text}");
        }
        if let Some(found) = count(&text) {
            assert_eq!(count(&found.to_string()), Some(found));
        }
        if let Ok(on) = text.parse::<On>() {
            assert_eq!(on.to_string().parse::<On>().ok(), Some(on), "{text}");
        }
    });
}
