//! Where the key of a message comes from (N03).

use greenroom_config::{At, Take, Typed, bare, count, options, schema::Group, text};

const NOTHING: &Group = &Group::without_settings("this part of a message");

options! {
    /// Where a key is taken from: exactly one.
    #[derive(Eq)]
    pub enum NatsKey = "key" {
        /// The whole subject.
        Subject as "subject" = bare(NOTHING);
        /// One token of the subject, counted from 1: token 2 of `orders.7.placed` is `7`.
        Token(usize) as "token" = count(1..=1_000);
        /// A text with tokens of the subject: `{2}.{3}`.
        Template(NatsKeyTemplate) as "template" = text().to::<NatsKeyTemplate>();
        /// A header. If there are several of that name, the last one.
        Header(String) as "header" = text();
    }
}

/// A text with tokens of the subject, from 1, in braces: `{2}.{3}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsKeyTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Token(usize),
}

/// A text that is no template of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no template of a key: tokens of the subject are numbers from 1 in braces, such as `{{2}}.{{3}}`"
)]
pub struct BadKeyTemplate(String);

impl std::str::FromStr for NatsKeyTemplate {
    type Err = BadKeyTemplate;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadKeyTemplate(text.to_owned());
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            let (number, behind) = after.split_once('}').ok_or_else(bad)?;
            let number = number.parse().ok().filter(|number| *number > 0).ok_or_else(bad)?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Token(number));
            rest = behind;
        }
        if rest.contains('}') || parts.is_empty() {
            return Err(bad());
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { parts })
    }
}

impl Take for NatsKeyTemplate {
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self> {
        let written = String::take(found, at)?;
        let template = written.parse::<Self>();
        if let Err(BadKeyTemplate(_)) = template {
            let shown = BadKeyTemplate(at.written("").show(&written));
            at.error("", shown.to_string(), "for example `{2}.{3}`");
        }
        template.ok()
    }
}

#[cfg(feature = "client")]
impl NatsKey {
    /// The key of a message; `None` if it has none: the subject has fewer tokens, or there is no
    /// such header.
    pub(crate) fn find(&self, subject: &str, headers: &[(&str, &[u8])]) -> Option<String> {
        let token = |number: usize| subject.split('.').nth(number - 1).map(str::to_owned);
        match self {
            Self::Subject => Some(subject.to_owned()),
            Self::Token(number) => token((*number).max(1)),
            Self::Template(NatsKeyTemplate { parts }) => parts
                .iter()
                .map(|part| match part {
                    Part::Text(text) => Some(text.clone()),
                    Part::Token(number) => token(*number),
                })
                .collect(),
            Self::Header(name) => {
                let mut named = headers.iter().rev();
                let (_, value) = named.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
                std::str::from_utf8(value).ok().map(str::to_owned)
            }
        }
    }
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use super::*;

    #[test]
    fn n03_a_key_comes_from_the_subject_or_a_header() {
        let headers: [(&str, &[u8]); 2] = [("X-Key", b"a"), ("x-key", b"b")];
        let key = |key: NatsKey| key.find("orders.7.placed", &headers);
        assert_eq!(key(NatsKey::Subject).as_deref(), Some("orders.7.placed"));
        assert_eq!(key(NatsKey::Token(2)).as_deref(), Some("7"));
        assert_eq!(key(NatsKey::Token(4)), None);
        assert_eq!(key(NatsKey::Header("X-KEY".into())).as_deref(), Some("b"));
        assert_eq!(key(NatsKey::Header("other".into())), None);
        let template = |text: &str| text.parse::<NatsKeyTemplate>();
        assert_eq!(
            key(NatsKey::Template(template("k-{2}.{3}!").unwrap())).as_deref(),
            Some("k-7.placed!")
        );
        assert_eq!(key(NatsKey::Template(template("{9}").unwrap())), None);
        for bad in ["", "plain", "{0}", "{x}", "{2", "2}", "{1}}"] {
            assert!(template(bad).is_err(), "{bad}");
        }
    }
}
