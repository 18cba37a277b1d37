//! Patterns over event types: segments between dots, `*` for one segment,
//! `**` for any number of them.

use std::{cmp::Reverse, fmt, str::FromStr};

/// A pattern over event types, for example `order.created`, `order.*` or `**`.
///
/// ```
/// use greenroom_bus::pattern::Pattern;
///
/// let pattern: Pattern = "order.**".parse()?;
/// assert!(pattern.matches("order.line.added") && pattern.matches("order"));
/// assert!(!pattern.matches("orders"));
/// # Ok::<(), greenroom_bus::pattern::PatternError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    text: String,
    segments: Vec<PatternSegment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum PatternSegment {
    Exactly(String),
    One,
    Any,
}

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// There is nothing in it, or nothing between two dots.
    #[error(
        "the pattern {0:?} has an empty segment; write for example `order.created`, `order.*` or `**`"
    )]
    EmptySegment(String),
    /// A star that does not stand for whole segments.
    #[error(
        "in the pattern {0:?} a star stands beside other characters; `*` is one whole segment, `**` any number"
    )]
    PartialStar(String),
}

/// How specific a pattern is; the greatest wins. Literal segments count first,
/// then `*`, then fewer `**`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity {
    exact: bool,
    literal: usize,
    single: usize,
    any: Reverse<usize>,
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.split('.').any(str::is_empty) {
            return Err(PatternError::EmptySegment(text.to_owned()));
        }
        Self::split(text, '.')
    }
}

impl Pattern {
    /// Of segments between something else than dots, which may be empty: the path of a URL.
    pub(crate) fn split(text: &str, separator: char) -> Result<Self, PatternError> {
        let segment = |segment: &str| match segment {
            "*" => Ok(PatternSegment::One),
            "**" => Ok(PatternSegment::Any),
            starred if starred.contains('*') => Err(PatternError::PartialStar(text.to_owned())),
            literal => Ok(PatternSegment::Exactly(literal.to_owned())),
        };
        let segments = text.split(separator).map(segment).collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), segments })
    }

    /// True when the pattern covers these segments.
    pub(crate) fn covers<'a>(&self, segments: impl Iterator<Item = &'a str> + Clone) -> bool {
        covers(&self.segments, segments)
    }

    /// The type, when the pattern names exactly one.
    pub fn exact(&self) -> Option<&str> {
        let exact =
            self.segments.iter().all(|segment| matches!(segment, PatternSegment::Exactly(_)));
        exact.then_some(self.text.as_str())
    }

    /// True for `**`, which covers every type.
    pub fn is_any(&self) -> bool {
        matches!(self.segments[..], [PatternSegment::Any])
    }

    /// True when the pattern covers this type. Takes time in the product of their
    /// lengths at most, and no memory.
    pub fn matches(&self, ty: &str) -> bool {
        self.is_any() || self.covers(ty.split('.'))
    }

    /// How specific the pattern is.
    pub fn specificity(&self) -> Specificity {
        let count =
            |kind: fn(&PatternSegment) -> bool| self.segments.iter().filter(|s| kind(s)).count();
        Specificity {
            exact: self.exact().is_some(),
            literal: count(|segment| matches!(segment, PatternSegment::Exactly(_))),
            single: count(|segment| matches!(segment, PatternSegment::One)),
            any: Reverse(count(|segment| matches!(segment, PatternSegment::Any))),
        }
    }
}

impl PatternSegment {
    fn fits(&self, word: &str) -> bool {
        match self {
            Self::Exactly(literal) => literal == word,
            Self::One | Self::Any => true,
        }
    }
}

/// Compares both from the left; at a mismatch, the last `**` takes one more word. An earlier `**`
/// need not be tried again: the last one can take all that it could.
fn covers<'a>(
    pattern: &[PatternSegment],
    mut words: impl Iterator<Item = &'a str> + Clone,
) -> bool {
    let mut at = 0;
    let mut last_any = None;
    loop {
        let mut rest = words.clone();
        match (pattern.get(at), rest.next()) {
            (Some(PatternSegment::Any), _) => {
                at += 1;
                last_any = Some((at, words.clone()));
            }
            (None, None) => return true,
            (Some(segment), Some(word)) if segment.fits(word) => {
                at += 1;
                words = rest;
            }
            (_, None) => return false,
            (_, Some(_)) => {
                let Some((behind, from)) = &mut last_any else { return false };
                from.next();
                (at, words) = (*behind, from.clone());
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn r03_stars_stand_for_whole_segments() {
        let cases = [
            ("a.b", "a.b", true),
            ("a.b", "a.b.c", false),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.*", "a.b.c", false),
            ("a.**", "a", true),
            ("a.**", "a.b.c", true),
            ("**", "anything.at.all", true),
            ("**.created", "order.line.created", true),
            ("**.created", "order.created.late", false),
            ("*.**.z", "a.z", true),
            ("*.**.z", "z", false),
            ("**.a.**.b", "a.x.a.b.b", true),
            ("**.a.**.b", "x.b.a", false),
            ("**.**", "a", true),
            ("a.**.b.*", "a.b.b.c", true),
            ("a.**.b.*", "a.b.b", true),
            ("a.**.b.*", "a.b", false),
        ];
        for (text, ty, expected) in cases {
            assert_eq!(pattern(text).matches(ty), expected, "{text} on {ty}");
        }
    }

    #[test]
    fn a_long_type_is_matched_in_time_against_many_stars() {
        let stars = pattern(&("**.a.".repeat(20) + "c"));
        let ty = "a.".repeat(2_000) + "b";
        assert!(!stars.matches(&ty));
    }

    #[test]
    fn r03_the_more_specific_pattern_is_greater() {
        let order = ["**", "*", "*.*", "a.**", "a.*", "a.b.**", "a.b"];
        for (less, more) in order.iter().zip(&order[1..]) {
            assert!(pattern(less).specificity() < pattern(more).specificity(), "{less} < {more}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_meant_is_an_error() {
        for text in ["", "a..b", ".a", "a."] {
            assert_eq!(text.parse::<Pattern>(), Err(PatternError::EmptySegment(text.to_owned())));
        }
        assert!(matches!("a.b*".parse::<Pattern>(), Err(PatternError::PartialStar(_))));
    }
}
