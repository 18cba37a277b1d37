//! Patterns of event types: segments between dots, `*` for one, `**` for any number of them.

/// Reports the mistake in a type or pattern.
pub(super) fn validate(pattern: &str) -> Result<(), &'static str> {
    if pattern.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("it contains white space");
    }
    for segment in pattern.split('.') {
        match segment {
            "" => return Err("a segment between dots is empty"),
            "*" | "**" => {}
            _ if segment.contains('*') => return Err("`*` must be a whole segment"),
            _ => {}
        }
    }
    Ok(())
}

/// True if `outer` matches every type that `inner` matches. A type is a pattern that matches
/// itself. May be false for such a pair, but is never true for another.
pub(super) fn covers(outer: &str, inner: &str) -> bool {
    let (outer, inner): (Vec<_>, Vec<_>) = (outer.split('.').collect(), inner.split('.').collect());
    segments_cover(&outer, &inner)
}

fn segments_cover(outer: &[&str], inner: &[&str]) -> bool {
    match (outer.split_first(), inner.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((&"**", after)), _) => {
            (0..=inner.len()).any(|skipped| segments_cover(after, &inner[skipped..]))
        }
        (Some(_), None) => false,
        (Some(_), Some((&"**", _))) => false,
        (Some((&"*", after)), Some((_, rest))) => segments_cover(after, rest),
        (Some((word, after)), Some((segment, rest))) => {
            word == segment && segments_cover(after, rest)
        }
    }
}

/// True if some type matches both.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    let (one, other): (Vec<_>, Vec<_>) = (one.split('.').collect(), other.split('.').collect());
    segments_overlap(&one, &other)
}

fn segments_overlap(one: &[&str], other: &[&str]) -> bool {
    match (one.split_first(), other.split_first()) {
        (None, None) => true,
        (Some((&"**", after)), _) => {
            segments_overlap(after, other)
                || other.split_first().is_some_and(|(_, rest)| segments_overlap(one, rest))
        }
        (_, Some((&"**", _))) => segments_overlap(other, one),
        (Some((a, one)), Some((b, other))) => {
            (a == b || *a == "*" || *b == "*") && segments_overlap(one, other)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r03_stars_stand_for_segments() {
        for (pattern, event_type, expected) in [
            ("a.b", "a.b", true),
            ("a.*", "a.b", true),
            ("a.*", "a.b.c", false),
            ("a.*", "a", false),
            ("a.**", "a", true),
            ("a.**", "a.b.c", true),
            ("**", "anything.at.all", true),
            ("**.c", "a.b.c", true),
            ("**.c", "a.b.d", false),
        ] {
            assert_eq!(covers(pattern, event_type), expected, "{pattern} {event_type}");
        }
    }

    #[test]
    fn patterns_are_compared_by_the_types_that_they_stand_for() {
        for (outer, inner, covered, overlapping) in [
            ("**", "a.*", true, true),
            ("a.*", "**", false, true),
            ("a.*", "a.b", true, true),
            ("a.*", "b.*", false, false),
            ("a.**", "a.*.c", true, true),
            ("a.**", "a", true, true),
            ("*.b", "a.*", false, true),
            ("*.*", "*", false, false),
            ("*", "**", false, true),
            ("a.**.z", "a.b.**.z", true, true),
            ("a.**.z", "a.**", false, true),
            ("**.z", "a.**.y", false, false),
        ] {
            assert_eq!(covers(outer, inner), covered, "{outer} covers {inner}");
            assert_eq!(overlap(outer, inner), overlapping, "{outer} and {inner}");
            assert_eq!(overlap(inner, outer), overlapping, "{inner} and {outer}");
        }
    }

    #[test]
    fn patterns_that_stand_for_nothing_are_refused() {
        for bad in ["", "a..b", ".a", "a.", "foo*", "a b"] {
            assert!(validate(bad).is_err(), "{bad:?}");
        }
    }
}
