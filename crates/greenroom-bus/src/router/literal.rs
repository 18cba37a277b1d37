//! Values that conditions compare with, and their order.

use std::cmp::Ordering;

use crate::event::rfc3339::{self, Moment};

/// A text, a number or a truth value that a field of an event is [compared](super::Condition) with.
///
/// Numbers are compared by value (`1` and `1.0` are equal; whole numbers exactly, up to 127 bits),
/// strings character by character. A string that is an RFC 3339 time represents that instant,
/// however it is written, and is compared with other times as such. Values of different types are
/// neither equal, less nor greater.
///
/// ```
/// use std::cmp::Ordering;
/// use greenroom_bus::router::Literal;
///
/// let less = |one: Literal, other: Literal| one.compare(&other) == Some(Ordering::Less);
/// assert!(less(9.into(), 10.5.into()));
/// assert!(less("10".into(), "9".into()), "texts");
/// assert!(less("2026-01-01T00:00:00+02:00".into(), "2026-01-01T00:00:00Z".into()), "times");
/// assert_eq!(Literal::from("10").compare(&10.into()), None);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Literal {
    value: LiteralValue,
}

#[derive(Debug, Clone, PartialEq)]
enum LiteralValue {
    Text { text: Box<str>, moment: Option<Moment> },
    Number(Number),
    Bool(bool),
}

/// A number as JSON has them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Whole(i128),
    Other(f64),
}

impl Number {
    /// A number as JSON writes them.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Ok(whole) = text.parse() {
            return Some(Self::Whole(whole));
        }
        // "inf" and "nan" are no numbers.
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        text.parse().ok().filter(|_| is_number).map(Self::Other)
    }

    pub(super) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => Some(one.cmp(&other)),
            (Self::Other(one), Self::Other(other)) => one.partial_cmp(&other),
            (Self::Whole(one), Self::Other(other)) => whole_with(one, other),
            (Self::Other(one), Self::Whole(other)) => whole_with(other, one).map(Ordering::reverse),
        }
    }
}

/// Exact in cases in which converting the whole number would round it.
fn whole_with(whole: i128, other: f64) -> Option<Ordering> {
    /// The first number above the range of `i128`; its negative is the first below.
    const BEYOND: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if other.is_nan() {
        return None;
    }
    if other >= BEYOND {
        return Some(Ordering::Less);
    }
    if other < -BEYOND {
        return Some(Ordering::Greater);
    }
    let by_whole = whole.cmp(&(other.trunc() as i128));
    Some(by_whole.then_with(|| 0.0_f64.total_cmp(&(other.fract() + 0.0))))
}

impl Literal {
    fn new(value: LiteralValue) -> Self {
        Self { value }
    }

    /// How it compares with another one; `None` where the two are of different kinds.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match &other.value {
            LiteralValue::Text { text, .. } => self.compare_text(text),
            LiteralValue::Number(number) => self.compare_number(*number),
            LiteralValue::Bool(truth) => self.compare_bool(*truth),
        }
    }

    /// True for `true` and `false`, which are equal or not, but have no order.
    pub fn is_bool(&self) -> bool {
        matches!(self.value, LiteralValue::Bool(_))
    }

    /// How this compares with a text of an event.
    pub(super) fn compare_text(&self, found: &str) -> Option<Ordering> {
        match &self.value {
            LiteralValue::Text { moment: Some(moment), .. } => {
                rfc3339::moment(found).map(|found| moment.cmp(&found))
            }
            LiteralValue::Text { text, .. } => Some((**text).cmp(found)),
            _ => None,
        }
    }

    /// How this compares with a number of an event.
    pub(super) fn compare_number(&self, found: Number) -> Option<Ordering> {
        match &self.value {
            LiteralValue::Number(number) => number.compare(found),
            _ => None,
        }
    }

    /// Whether this equals a truth value of an event. There is no order between the two.
    pub(super) fn compare_bool(&self, found: bool) -> Option<Ordering> {
        match &self.value {
            LiteralValue::Bool(truth) if *truth == found => Some(Ordering::Equal),
            _ => None,
        }
    }

    /// How this compares with an attribute of an event. Transports write attributes as text, so the
    /// text is parsed as the type of this literal.
    pub(super) fn compare_attribute(&self, found: &str) -> Option<Ordering> {
        match &self.value {
            LiteralValue::Text { .. } => self.compare_text(found),
            LiteralValue::Number(_) => {
                Number::parse(found).and_then(|number| self.compare_number(number))
            }
            LiteralValue::Bool(_) => found.parse().ok().and_then(|truth| self.compare_bool(truth)),
        }
    }
}

impl From<&str> for Literal {
    fn from(text: &str) -> Self {
        let moment = rfc3339::moment(text);
        Self::new(LiteralValue::Text { text: text.into(), moment })
    }
}

impl From<String> for Literal {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

impl From<bool> for Literal {
    fn from(truth: bool) -> Self {
        Self::new(LiteralValue::Bool(truth))
    }
}

impl From<f64> for Literal {
    fn from(number: f64) -> Self {
        Self::new(LiteralValue::Number(Number::Other(number)))
    }
}

macro_rules! whole {
    ($($type:ty)+) => {$(
        impl From<$type> for Literal {
            fn from(number: $type) -> Self {
                Self::new(LiteralValue::Number(Number::Whole(number.into())))
            }
        }
    )+};
}

whole!(i32 u32 i64 u64 i128);
