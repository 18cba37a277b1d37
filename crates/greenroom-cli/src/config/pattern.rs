//! Patterns of event types: segments between dots, `*` for one, `**` for any number of them.

/// Says what is wrong with a type or pattern.
pub(super) fn validate(pattern: &str) -> Result<(), &'static str> {
    if pattern.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("it contains white space");
    }
    for segment in pattern.split('.') {
        match segment {
            "" => return Err("a segment between dots is empty"),
            "*" | "**" => {}
            _ if segment.contains('*') => return Err("`*` stands for a whole segment"),
            _ => {}
        }
    }
    Ok(())
}

/// True when the pattern stands for this type.
pub(super) fn matches(pattern: &str, event_type: &str) -> bool {
    let pattern: Vec<_> = pattern.split('.').collect();
    let event_type: Vec<_> = event_type.split('.').collect();
    segments_match(&pattern, &event_type)
}

fn segments_match(pattern: &[&str], segments: &[&str]) -> bool {
    match (pattern.split_first(), segments.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((&"**", after)), _) => {
            (0..=segments.len()).any(|skipped| segments_match(after, &segments[skipped..]))
        }
        (Some((&"*", after)), Some((_, rest))) => segments_match(after, rest),
        (Some((word, after)), Some((segment, rest))) => {
            word == segment && segments_match(after, rest)
        }
        (Some(_), None) => false,
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
            assert_eq!(matches(pattern, event_type), expected, "{pattern} {event_type}");
        }
    }

    #[test]
    fn patterns_that_stand_for_nothing_are_refused() {
        for bad in ["", "a..b", ".a", "a.", "foo*", "a b"] {
            assert!(validate(bad).is_err(), "{bad:?}");
        }
    }
}
