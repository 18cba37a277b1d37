//! The conditions that a handler or an output sets on events.

use greenroom_bus::{
    event::{Field, FieldError},
    router::{Condition, Literal as Compared},
};
use greenroom_config::{At, Literal, flag, literal, literals, options};

options! {
    /// The conditions on a value: all that are given must hold. A single value in place of the
    /// mapping means `equal`. In the data, numbers are compared only with numbers and texts with
    /// texts; attributes and extensions are read as the type that they are compared with. A text
    /// that is an RFC 3339 time is compared with times. `null` counts as missing. Arrays and
    /// objects are only present. Data that is not JSON meets no condition on it.
    pub struct FieldCondition named field = "a condition", short "equal", then FieldCondition::checked {
        /// It equals this: a text, a number, `true` or `false`. `"5"` is a text, `5` a number.
        equal: Option<Literal> = literal().optional();
        /// It is one of these.
        one_of as "in": Option<Vec<Literal>> = literals().optional();
        /// `true`: it is present. `false`: it is missing or `null`.
        present: Option<bool> = flag().optional();
        /// It is less: a smaller number, an earlier time, or a text that sorts before.
        less: Option<Literal> = literal().optional();
        /// It is greater: a larger number, a later time, or a text that sorts after.
        greater: Option<Literal> = literal().optional();
        /// It is this or less.
        at_most: Option<Literal> = literal().optional();
        /// It is this or more.
        at_least: Option<Literal> = literal().optional();
    }
}

impl FieldCondition {
    /// The field that the conditions are on.
    ///
    /// # Errors
    /// It names no field; in a checked configuration, every name is valid.
    pub(crate) fn asked(&self) -> Result<Field, FieldError> {
        self.field.parse()
    }

    /// The conditions that must hold.
    pub(crate) fn conditions(&self) -> Vec<Condition> {
        self.named().into_iter().map(|(_, condition)| condition).collect()
    }

    /// The same, each with its key.
    fn named(&self) -> Vec<(&'static str, Condition)> {
        let values = |values: &Vec<Literal>| Condition::In(values.iter().map(compared).collect());
        let one = |literal: &Option<Literal>, condition: fn(Compared) -> Condition| {
            literal.as_ref().map(|literal| condition(compared(literal)))
        };
        [
            ("equal", one(&self.equal, Condition::Equal)),
            ("in", self.one_of.as_ref().map(values)),
            ("present", self.present.map(Condition::Present)),
            ("less", one(&self.less, Condition::Less)),
            ("greater", one(&self.greater, Condition::Greater)),
            ("at_most", one(&self.at_most, Condition::AtMost)),
            ("at_least", one(&self.at_least, Condition::AtLeast)),
        ]
        .into_iter()
        .filter_map(|(key, condition)| Some((key, condition?)))
        .collect()
    }

    /// The values that it can have, if they are all known.
    fn values(&self) -> Option<Vec<Compared>> {
        let equal = self.equal.as_ref().map(std::slice::from_ref);
        let values = equal.or(self.one_of.as_deref())?;
        let all = self.conditions();
        let values = values.iter().map(compared);
        Some(values.filter(|value| all.iter().all(|condition| condition.admits(value))).collect())
    }

    /// The texts that it can be, if they are all known.
    pub(crate) fn texts(&self) -> Option<Vec<&str>> {
        let equal = self.equal.as_ref().map(std::slice::from_ref);
        let values = equal.or(self.one_of.as_deref())?.iter();
        Some(
            values
                .filter_map(|value| match value {
                    Literal::Text(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect(),
        )
    }

    /// Refuses an invalid field, no condition, an undefined order, and conditions that no value
    /// meets.
    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        if let Err(error) = self.asked() {
            let shown = &self.field;
            let help = match error {
                FieldError::Escape(_) => {
                    "`~` is written `~0` in a JSON pointer, and `/` inside a name `~1`"
                }
                _ => {
                    "for a member of the data, write a JSON pointer, such as `/order/total`; \
                      otherwise the name of an attribute or extension: lower-case letters and \
                      digits"
                }
            };
            at.error("", format!("`{shown}` is not a field of an event"), help);
            return None;
        }
        let asked = self.named();
        if asked.is_empty() {
            if !at.has_any() {
                let help = "write a value that it equals, or for example `{ present: true }`";
                at.error("", "there is no condition", help);
            }
            return None;
        }
        for (key, literal) in self.ordered() {
            if matches!(literal, Literal::Bool(_)) {
                let help = "write `true` or `false` alone, which is `equal`";
                at.error(key, "`true` and `false` have no order", help);
                return None;
            }
        }
        if self.is_impossible(&asked) {
            let help = "all conditions on a field must hold at once; remove the contradiction";
            at.error("", "no value meets all of this", help);
            return None;
        }
        Some(self)
    }

    fn ordered(&self) -> impl Iterator<Item = (&'static str, &Literal)> {
        let all = [
            ("less", &self.less),
            ("greater", &self.greater),
            ("at_most", &self.at_most),
            ("at_least", &self.at_least),
        ];
        all.into_iter().filter_map(|(key, literal)| Some((key, literal.as_ref()?)))
    }

    fn is_impossible(&self, asked: &[(&str, Condition)]) -> bool {
        let absent = self.present == Some(false);
        (absent && asked.len() > 1)
            || self.values().is_some_and(|values| values.is_empty())
            || self.leaves_no_room()
    }

    /// Whether each value below an upper bound breaks a lower one, or the bounds do not compare.
    fn leaves_no_room(&self) -> bool {
        let upper = [(&self.less, false), (&self.at_most, true)];
        let lower = [(&self.greater, false), (&self.at_least, true)];
        let mut pairs =
            upper.iter().flat_map(|upper| lower.iter().map(move |lower| (upper, lower)));
        pairs.any(|((upper, reaches), (lower, begins))| match (upper, lower) {
            (Some(upper), Some(lower)) => match compared(lower).compare(&compared(upper)) {
                Some(order) => order.is_gt() || (order.is_eq() && !(*reaches && *begins)),
                None => true,
            },
            _ => false,
        })
    }
}

fn compared(literal: &Literal) -> Compared {
    match literal {
        Literal::Text(text) => text.as_str().into(),
        Literal::Whole(number) => (*number).into(),
        Literal::Number(number) => (*number).into(),
        Literal::Bool(truth) => (*truth).into(),
    }
}
