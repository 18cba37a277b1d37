//! Letters with the same cause form one group: the same reason, handler and error, apart from parts
//! that differ from event to event.

use reqwest::StatusCode;
use ring::digest::{SHA256, digest};

/// Behind one of these words, a number is the status of an HTTP answer, or the code of an exit.
const ANNOUNCING: &[&str] =
    &["http", "http/1.0", "http/1.1", "http/2", "http/2.0", "status", "code"];

/// This many bytes of an error are compared: later differences are details.
const LOOKED_AT: usize = 400;

/// The group of an error, twelve hexadecimal digits: the same for errors that differ in numbers and
/// ids alone.
pub fn error_group(reason: &str, handler: Option<&str>, error: &str) -> String {
    let text = format!("{reason}\0{}\0{}", handler.unwrap_or_default(), normalised(error));
    let hash = digest(&SHA256, text.as_bytes());
    hash.as_ref()[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The error without the parts that differ from event to event: numbers, hexadecimal ids and quoted
/// text. The status of an HTTP answer stays.
fn normalised(error: &str) -> String {
    let error = &error[..error.floor_char_boundary(LOOKED_AT)];
    let mut out = String::new();
    let mut rest = error;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => quoted(rest),
            first if first.is_ascii_alphanumeric() => word(rest),
            first => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        let before = &error[..error.len() - rest.len()];
        let is_own = match first {
            '"' => token.len() > 1,
            first if first.is_ascii_alphanumeric() => {
                token.contains(|c: char| c.is_ascii_digit()) && !is_status(token, before, after)
            }
            _ => false,
        };
        match is_own {
            true if !out.ends_with('*') => out.push('*'),
            true => {}
            false => out.push_str(token),
        }
        rest = after;
    }
    out
}

fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' if !escaped => escaped = true,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Letters and digits, with dashes between: an id of any usual form is one word.
fn word(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    let found = &text[..end.unwrap_or(text.len())];
    found.trim_end_matches(['-', '_']).len()
}

/// Whether this is the status of an HTTP answer: three digits behind a word that announces one, or
/// in front of the phrase that is that status in words; or a status that is in use, as the
/// beginning of all. Any other number of this size may be an event's own.
fn is_status(token: &str, before: &str, after: &str) -> bool {
    let Ok(status) = StatusCode::from_bytes(token.as_bytes()) else { return false };
    let Some(phrase) = status.canonical_reason() else { return is_announced(before) };
    let is_unit = [" ms", " s", " bytes"].iter().any(|unit| after.starts_with(unit));
    let is_in_words = after.get(1..=phrase.len()).is_some_and(|it| it.eq_ignore_ascii_case(phrase));
    is_announced(before) || is_in_words || (before.trim().is_empty() && !is_unit)
}

fn is_announced(before: &str) -> bool {
    let before = before.trim_end_matches([' ', ':', '=']);
    let ends = |c: char| !c.is_ascii_alphanumeric() && c != '/' && c != '.';
    let word = before.rsplit(ends).next().unwrap_or_default();
    ANNOUNCING.iter().any(|known| word.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d06_errors_that_differ_in_details_of_the_event_are_one_group() {
        for (one, other) in [
            ("503 after 12 ms", "503 after 1207 ms"),
            ("no order 8127", "no order 9"),
            ("unknown customer \"a\"", "unknown customer \"b \\\" c\""),
            (
                "lock 0b7c1d2e-1f2a-4b5c-9d8e-0123456789ab is held",
                "lock ffffffff-1f2a-4b5c-9d8e-000000000001 is held",
            ),
            ("10.0.0.1:8080 refused", "10.0.0.17:9090 refused"),
        ] {
            assert_eq!(normalised(one), normalised(other));
        }
    }

    #[test]
    fn d06_errors_of_another_kind_are_not() {
        assert_ne!(normalised("503 after 12 ms"), normalised("404 after 12 ms"));
        assert_ne!(normalised("no such order"), normalised("no such customer"));
        assert_ne!(
            error_group("rejected", Some("a"), "x"),
            error_group("rejected", Some("b"), "x")
        );
        assert_ne!(error_group("rejected", None, "x"), error_group("poisoned", None, "x"));
        assert_eq!(error_group("rejected", None, "x 1"), error_group("rejected", None, "x 2"));
    }

    #[test]
    fn d06_a_number_is_a_status_only_where_it_stands_as_one() {
        for error in [
            "bad number {n}",
            "{n}x is no number",
            "order {n}: no such customer",
            "3 of {n} lines are wrong",
            "took {n} ms",
            "#{n} is gone",
            "the codes {n} are unknown",
        ] {
            let group = |n: u32| normalised(&error.replace("{n}", &n.to_string()));
            let one = group(7);
            (8..1_000).for_each(|n| assert_eq!(group(n), one));
        }
        for error in [
            "{n} after 12 ms",
            "{n}: try later",
            "http: {n} Service Unavailable after 12 ms from http://h/",
            "HTTP {n}",
            "HTTP/1.1 {n} whatever",
            "Request failed with status code {n}",
            "status={n}",
            "http: {n} <unknown status code> after 3 ms",
        ] {
            let status = |n| normalised(&error.replace("{n}", n));
            assert_ne!(status("503"), status("404"), "{error}");
        }
        let error = "HTTP status server error (503 Service Unavailable)";
        assert_ne!(normalised(error), normalised(&error.replace("503 Serv", "500 Serv")));
        assert_eq!(normalised("ü 503"), "ü *", "any text may stand before it");
    }

    #[test]
    fn d06_any_text_has_a_group() {
        for text in ["", "\"", "\"\\", "ü1ü", "\u{1b}[31m", "日本語 5 件", &"9".repeat(10_000)]
        {
            assert_eq!(error_group("rejected", None, text).len(), 12);
        }
        let long = format!("{}ü", "x".repeat(LOOKED_AT - 1));
        assert_eq!(error_group("rejected", None, &long).len(), 12, "cut between characters");
    }
}
