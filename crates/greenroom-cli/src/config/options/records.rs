//! The rule that turns records that are no CloudEvents into events (M05).

use greenroom_bus::{
    event::Event,
    record::{Mapping, Pick, RecordPart},
};
use greenroom_config::{At, Kinds, bare, each, flag, group, options, schema::Group, text};

const NOTHING: &Group = &Group::without_settings("this part of a record");

options! {
    /// Turns data other than CloudEvents into events: each line of a file, each record of a topic,
    /// and the body of each request. A single value is the attribute itself, the same for every
    /// line; `{ pointer: /kind }` takes it from the line. The bytes of a line are the data,
    /// unchanged, and are parsed only for a `pointer`. Blank lines are skipped. A line that lacks a
    /// required value, or is not JSON despite a `pointer`, is malformed: it becomes a dead letter
    /// with its bytes that names the attribute. Such a request is answered 400.
    pub struct RecordsConfig = "records", then RecordsConfig::checked {
        /// The type of the events.
        ty as "type": AttributeRule = group();
        /// The source of the events.
        source: AttributeRule = group();
        /// The subject of the events.
        subject: Option<AttributeRule> = group().optional();
        /// A text that identifies an event within its source, and stays the same if the event is
        /// repeated. By default, it is made from the file's inode, the line number and a checksum
        /// of the bytes: the same whenever the line is read again, and different in a rewritten
        /// file. For a request, it is made from the path and the body, so that a repeated post is
        /// one event; two requests that mean different things need ids of their own. For a record,
        /// it is made from topic, partition and offset, or from stream and sequence.
        id: Option<AttributeRule> = group().optional();
        /// The time of the event, in RFC 3339. By default, events have no `time`.
        time: Option<AttributeRule> = group().optional();
        /// The type of the data, for example `application/json` or `text/plain`. Without it, events
        /// carry no type, which means JSON: lines that are not JSON are written as `data_base64`. A
        /// request or a record sets it by its own header `content-type`.
        content_type: Option<String> = text().optional();
        /// Extension attributes, by name.
        extensions: Vec<AttributeRule> = each().or_empty();
    }
}

options! {
    /// Where an attribute comes from. A single value in place of the mapping is a `literal`.
    pub struct AttributeRule named attribute = "a rule", short "literal", then AttributeRule::checked {
        /// The attribute's value if it is missing, empty or `null`.
        default: Option<String> = text().optional();
        /// With `true`, a missing attribute is left out of the event; otherwise the line is
        /// malformed. A missing `id` is generated then.
        optional: bool = flag().default("false");
        .. /// Where it comes from.
        from: AttributeFrom;
    }
}

options! {
    /// Where it comes from.
    pub enum AttributeFrom = "a rule" {
        /// This text, for every line.
        Literal(String) as "literal" = text();
        /// A text, number or truth value in the line, which must be JSON: a JSON pointer, such as
        /// `/user/id`.
        Pointer(String) as "pointer" = text();
        /// The header of this name, in any case: of a request, or of a record from a broker.
        Header(String) as "header" = text();
        /// The path of the file, or of the request.
        Path as "path" = bare(NOTHING);
        /// The key of a Kafka record, or the part of a NATS message that `key` names, as text.
        Key as "key" = bare(NOTHING);
        /// The topic or the subject that a broker's record was published to.
        Topic as "topic" = bare(NOTHING);
        /// The time when a broker's record was published.
        Time as "time" = bare(NOTHING);
    }
}

impl RecordsConfig {
    /// The rule itself.
    ///
    /// # Errors
    /// A value that no event can have; a checked configuration has none.
    pub(crate) fn mapping(&self) -> Result<Mapping, String> {
        let pick =
            |rule: &Option<AttributeRule>| rule.as_ref().map(AttributeRule::pick).transpose();
        let mut mapping = Mapping::new(self.ty.pick()?, self.source.pick()?);
        if let Some(subject) = pick(&self.subject)? {
            mapping = mapping.subject(subject);
        }
        if let Some(id) = pick(&self.id)? {
            mapping = mapping.id(id);
        }
        if let Some(time) = pick(&self.time)? {
            mapping = mapping.time(time);
        }
        if let Some(content_type) = &self.content_type {
            mapping = mapping.content_type(Pick::literal(content_type.as_str()));
        }
        self.extensions.iter().try_fold(mapping, |mapping, rule| {
            mapping.extension(&rule.attribute, rule.pick()?).map_err(|error| error.to_string())
        })
    }

    /// The type of all its events, if it is known.
    pub(crate) fn known_type(&self) -> Option<&str> {
        match &self.ty.from {
            AttributeFrom::Literal(ty) => Some(ty),
            _ => None,
        }
    }

    /// The attributes, each with its path below `records` and the part of a record that it comes
    /// from.
    pub(crate) fn parts(&self) -> Vec<(String, &'static str)> {
        let named = [("subject", &self.subject), ("id", &self.id), ("time", &self.time)];
        let named = named.into_iter().filter_map(|(name, rule)| Some((name, rule.as_ref()?)));
        let required = [("type", &self.ty), ("source", &self.source)];
        let plain = required.into_iter().chain(named).map(|(name, rule)| (name.to_owned(), rule));
        let extensions = self.extensions.iter();
        let extensions = extensions.map(|rule| (format!("extensions.{}", rule.attribute), rule));
        plain.chain(extensions).map(|(name, rule)| (name, rule.from.key())).collect()
    }

    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        for (name, rule) in [("type", &self.ty), ("source", &self.source)] {
            if rule.optional {
                let help = "leave `optional` out, or write a `default`";
                at.error(&format!("{name}.optional"), format!("every event has a {name}"), help);
                return None;
            }
        }
        for rule in self.time.iter() {
            for time in rule.texts() {
                if Event::builder("1", "/", "t").time(time).build().is_err() {
                    let help = "for example `2026-01-31T12:00:00Z`, or `{ pointer: /time }`";
                    at.error("time", "this is not an RFC 3339 time", help);
                    return None;
                }
            }
        }
        for rule in &self.extensions {
            let name = &rule.attribute;
            if Event::builder("1", "/", "t").extension(name, "1").build().is_err() {
                let help = "lower-case letters and digits, but no name that events already have, such as `id` or `data`";
                let text = format!("an extension cannot be called `{name}`");
                at.error(&format!("extensions.{name}"), text, help);
                return None;
            }
        }
        Some(self)
    }
}

impl AttributeRule {
    fn pick(&self) -> Result<Pick, String> {
        let part = match &self.from {
            AttributeFrom::Literal(text) => RecordPart::Literal(text.as_str().into()),
            AttributeFrom::Pointer(pointer) => {
                RecordPart::Pointer(pointer.parse().map_err(|error| format!("pointer: {error}"))?)
            }
            AttributeFrom::Header(name) => RecordPart::Header(name.as_str().into()),
            AttributeFrom::Path => RecordPart::Path,
            AttributeFrom::Key => RecordPart::Key,
            AttributeFrom::Topic => RecordPart::Topic,
            AttributeFrom::Time => RecordPart::Time,
        };
        let pick = Pick::part(part);
        let pick = if self.optional { pick.optional() } else { pick };
        Ok(match &self.default {
            Some(default) => pick.or(default.as_str()),
            None => pick,
        })
    }

    /// The texts that it contains itself.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let literal = match &self.from {
            AttributeFrom::Literal(text) => Some(text.as_str()),
            _ => None,
        };
        literal.into_iter().chain(self.default.as_deref())
    }

    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        let always = matches!(self.from, AttributeFrom::Literal(_));
        let useless = [("default", self.default.is_some()), ("optional", self.optional)];
        if let AttributeFrom::Pointer(pointer) = &self.from
            && pointer.parse::<greenroom_bus::event::Pointer>().is_err()
        {
            let help = "it begins with `/`, such as `/user/id`; `~` is written `~0` in it, and `/` inside a name `~1`";
            at.error("pointer", "this is not a JSON pointer", help);
            return None;
        }
        if let Some((key, _)) = useless.iter().find(|(_, given)| *given && always) {
            let help = format!("leave `{key}` out, or give its source: `{{ pointer: /kind }}`");
            at.error(key, "a literal is always present", help);
            return None;
        }
        if self.optional && self.default.is_some() {
            let help = "leave one of them out";
            at.error("optional", "with a `default` it is never left out", help);
            return None;
        }
        Some(self)
    }
}
