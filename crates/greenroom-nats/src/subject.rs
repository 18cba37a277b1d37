//! Which subject an event is published to.

use std::{fmt, str::FromStr};

use greenroom_bus::event::{Event, OrderBy};
use greenroom_config::{At, Take, Typed};

/// A subject, fixed or with fields of the event in braces: attributes, extensions, or JSON pointers
/// into the data.
///
/// A value may have dots, and then is several tokens: of an event of the type `order.placed`,
/// `shop.{type}` makes `shop.order.placed`.
///
/// ```
/// use greenroom_nats::output::NatsSubject;
///
/// for written in ["orders.new", "orders.{subject}.{type}", "tenants.{tenant}.{/customer/id}"] {
///     assert_eq!(written.parse::<NatsSubject>()?.to_string(), written);
/// }
/// assert!("orders.*".parse::<NatsSubject>().is_err());
/// # Ok::<(), greenroom_nats::output::BadSubject>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsSubject {
    written: String,
    parts: Vec<SubjectPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SubjectPart {
    Text(String),
    Field(OrderBy),
}

/// A text that is no subject to publish to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{subject}` is no subject to publish to: {why}")]
pub struct BadSubject {
    subject: String,
    why: String,
}

impl FromStr for NatsSubject {
    type Err = BadSubject;

    fn from_str(text: &str) -> Result<Self, BadSubject> {
        let bad = |why: String| BadSubject { subject: text.to_owned(), why };
        let open = || bad("write fields of the event in braces, such as `orders.{subject}`".into());
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            let (field, behind) = after.split_once('}').ok_or_else(open)?;
            let field: OrderBy = field.parse().map_err(|error| bad(format!("{error}")))?;
            if !field.is_order() || before.contains('}') {
                return Err(open());
            }
            parts.extend((!before.is_empty()).then(|| SubjectPart::Text(before.to_owned())));
            parts.push(SubjectPart::Field(field));
            rest = behind;
        }
        if rest.contains('}') {
            return Err(open());
        }
        parts.extend((!rest.is_empty()).then(|| SubjectPart::Text(rest.to_owned())));
        let subject = Self { written: text.to_owned(), parts };
        // The rest has to be valid whatever the values are.
        check(&subject.filled(|_| Ok("x".into()))?).map_err(bad)?;
        Ok(subject)
    }
}

impl Take for NatsSubject {
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self> {
        let written = String::take(found, at)?;
        let subject = written.parse::<Self>();
        if let Err(BadSubject { why, .. }) = &subject {
            let shown = BadSubject { subject: at.written("").show(&written), why: why.clone() };
            at.error(
                "",
                shown.to_string(),
                "for example `orders.new` or `orders.{subject}.{type}`",
            );
        }
        subject.ok()
    }
}

/// As it is written in the configuration.
impl fmt::Display for NatsSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl NatsSubject {
    /// The subject of an event.
    ///
    /// # Errors
    /// The event has no such field, or its value cannot be in a subject.
    pub fn fill(&self, event: &Event) -> Result<String, BadSubject> {
        if let [SubjectPart::Text(text)] = self.parts.as_slice() {
            return Ok(text.clone());
        }
        let subject = self.filled(|field| {
            let bad = |why| BadSubject { subject: self.written.clone(), why };
            let value = field.key(event).map_err(|error| bad(error.to_string()))?;
            let value = value.ok_or_else(|| bad(format!("the event has no `{field}`")))?;
            Ok(value.as_ref().to_owned())
        })?;
        check(&subject).map_err(|why| BadSubject { subject: shown(&subject), why })?;
        Ok(subject)
    }

    /// With wildcards, matching every subject that it makes; `None` if it always makes the same.
    pub(crate) fn wildcard(&self) -> Option<String> {
        let field = self.parts.iter().position(|part| matches!(part, SubjectPart::Field(_)))?;
        let mut before = String::new();
        if let Some(SubjectPart::Text(text)) =
            field.checked_sub(1).map(|before| &self.parts[before])
        {
            // A token that has a field is not known.
            let whole = text.rfind('.').map_or(0, |dot| dot + 1);
            before.push_str(&text[..whole]);
        }
        Some(before + ">")
    }

    fn filled(
        &self,
        value: impl Fn(&OrderBy) -> Result<String, BadSubject>,
    ) -> Result<String, BadSubject> {
        let text = |part: &SubjectPart| match part {
            SubjectPart::Text(text) => Ok(text.clone()),
            SubjectPart::Field(field) => value(field),
        };
        self.parts.iter().map(text).collect()
    }
}

/// The longest subject, in bytes. A server accepts a line of 4,096 bytes, which also contains the
/// reply subject and two numbers, and closes the connection at a longer one.
const LONGEST: usize = 3_500;

/// A subject in an error, not longer than one can read.
fn shown(subject: &str) -> String {
    subject.chars().take(100).collect()
}

fn check(subject: &str) -> Result<(), String> {
    let is_bad = |c: char| c.is_whitespace() || c.is_control() || "*>".contains(c);
    if let Some(bad) = subject.chars().find(|c| is_bad(*c)) {
        return Err(format!(
            "it has {bad:?}, and no wildcards, spaces or control characters may be"
        ));
    }
    if subject.len() > LONGEST {
        return Err(format!("it has {} bytes, and {LONGEST} are the most", subject.len()));
    }
    if subject.split('.').any(str::is_empty) {
        return Err("a token between its dots is empty".to_owned());
    }
    if subject.starts_with(['$', '_']) {
        return Err("subjects that begin with `$` or `_` are the server's own".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Event {
        let event = Event::builder("1", "/shop", "order.placed").subject("7");
        event.extension("tenant", "a b").data_json(&[10, 20]).build().unwrap()
    }

    fn made(template: &str) -> Result<String, String> {
        let subject: NatsSubject = template.parse().map_err(|error| format!("{error}"))?;
        subject.fill(&event()).map_err(|error| error.to_string())
    }

    #[test]
    fn n04_a_subject_is_fixed_or_made_of_the_event() {
        assert_eq!(made("orders.new").unwrap(), "orders.new");
        assert_eq!(made("o.{subject}.{type}.{/1}").unwrap(), "o.7.order.placed.20");
        assert_eq!(made("o.k{subject}x").unwrap(), "o.k7x");
        assert_eq!(made("{subject}").unwrap(), "7");
    }

    #[test]
    fn n04_what_is_no_subject_says_why() {
        for (template, why) in [
            ("", "empty"),
            ("orders..new", "empty"),
            ("orders.*", "'*'"),
            ("o {subject}", "' '"),
            ("$JS.API.{subject}", "the server's own"),
            ("orders.{subject", "in braces"),
            ("orders.subject}", "in braces"),
            ("orders.}{subject}", "in braces"),
            ("orders.{none}", "in braces"),
            ("orders.{Bad-Name}", "no attribute name"),
        ] {
            let error = template.parse::<NatsSubject>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(template), "{template}: {error}");
        }
        for (template, why) in [
            ("o.{tenant}", "' '"),
            ("o.{missing}", "the event has no `missing`"),
            ("o.{source}.{/0/x}", "the event has no `/0/x`"),
        ] {
            let error = made(template).unwrap_err();
            assert!(error.contains(why), "{template}: {error}");
        }
    }

    #[test]
    fn n04_an_event_names_no_subject_of_the_server() {
        let event = Event::builder("1", "/s", "$JS.API.STREAM.DELETE.x").build().unwrap();
        let subject: NatsSubject = "{type}".parse().unwrap();
        assert!(subject.fill(&event).unwrap_err().to_string().contains("the server's own"));
    }

    #[test]
    fn n04_d13_a_subject_that_a_server_would_not_read_is_refused() {
        let event = |bytes| Event::builder("1", "/s", "t").subject("x".repeat(bytes)).build();
        let subject: NatsSubject = "o.{subject}".parse().unwrap();
        assert!(subject.fill(&event(LONGEST - 2).unwrap()).is_ok());
        let error = subject.fill(&event(LONGEST - 1).unwrap()).unwrap_err().to_string();
        assert!(error.contains("3501 bytes") && error.len() < 500, "{error}");
    }

    #[test]
    fn n04_all_that_a_template_makes_is_known() {
        let wildcard = |text: &str| text.parse::<NatsSubject>().unwrap().wildcard();
        assert_eq!(wildcard("orders.new"), None);
        assert_eq!(wildcard("orders.{subject}.new").as_deref(), Some("orders.>"));
        assert_eq!(wildcard("a.b.k{subject}").as_deref(), Some("a.b.>"));
        assert_eq!(wildcard("k{subject}").as_deref(), Some(">"));
        assert_eq!(wildcard("{subject}.a").as_deref(), Some(">"));
    }
}
