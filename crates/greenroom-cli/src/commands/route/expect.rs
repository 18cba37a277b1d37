//! Expectations for every sample event: `--expect KEY=VALUE`.

use std::str::FromStr;

use greenroom_config::near;

use super::way::{Outcome, Way};

/// The keys of expectations.
const KEYS: [&str; 7] = ["outcome", "handler", "pool", "key", "layer", "output", "loopback"];

/// One expectation: a value of a key, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    key: &'static str,
    /// Empty: there is none.
    value: String,
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) =
            text.split_once('=').ok_or("write KEY=VALUE, such as `handler=prices`")?;
        let Some(key) = KEYS.into_iter().find(|known| *known == key) else {
            let help = near::suggestion(key, KEYS);
            let help = help.unwrap_or_else(|| format!("it is one of {}", KEYS.join(", ")));
            return Err(format!("`{key}` is nothing that can be expected; {help}"));
        };
        let words = Outcome::ALL.map(Outcome::word);
        if key == "outcome" && !words.contains(&value) {
            return Err(format!("`{value}` is no outcome; it is one of {}", words.join(", ")));
        }
        Ok(Self { key, value: value.to_owned() })
    }
}

impl Expectation {
    /// The actual values, if it is not met.
    fn unmet(&self, way: &Way) -> Option<String> {
        let facts = way.facts();
        let found: Vec<_> =
            facts.iter().filter(|(key, _)| *key == self.key).map(|(_, value)| *value).collect();
        let is_met = match self.value.as_str() {
            "" => found.is_empty(),
            value => found.contains(&value),
        };
        let none = || format!("it has no {}", self.key);
        (!is_met).then(|| match found.as_slice() {
            [] => none(),
            found => {
                let found: Vec<_> =
                    found.iter().map(|value| format!("`{}={value}`", self.key)).collect();
                format!("it is {}", found.join(" and "))
            }
        })
    }
}

/// Every expectation that an event does not meet, one sentence each.
pub(super) fn unmet(expected: &[Expectation], ways: &[Way]) -> Option<String> {
    let sentence = |place: usize, way: &Way, asked: &Expectation| {
        let found = asked.unmet(way)?;
        let (ty, id) = (&way.event.ty, &way.event.id);
        let wanted = match asked.value.as_str() {
            "" => format!("no {}", asked.key),
            value => format!("`{}={value}`", asked.key),
        };
        Some(format!("event {} (`{ty}`, id {id:?}): expected {wanted}, but {found}", place + 1))
    };
    let sentences = ways.iter().enumerate().flat_map(|(place, way)| {
        expected.iter().filter_map(move |asked| sentence(place, way, asked))
    });
    let sentences: Vec<_> = sentences.collect();
    (!sentences.is_empty()).then(|| sentences.join("\nerror: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c20_what_can_be_expected_is_known() {
        let good: Expectation = "key=a=b".parse().unwrap();
        assert_eq!(good, Expectation { key: "key", value: "a=b".to_owned() });
        for (text, expected) in [
            ("handler", "write KEY=VALUE"),
            ("handlr=x", "did you mean `handler`?"),
            ("colour=red", "it is one of outcome, handler"),
            ("outcome=lost", "no_handler"),
        ] {
            let why = text.parse::<Expectation>().unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }
}
