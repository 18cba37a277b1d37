//! The selection of letters. A user's text is bound to a statement, and never part of it.

use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::types::Value;

/// Selects letters: those that meet all of these conditions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// One of these.
    pub ids: Vec<u64>,
    /// Of this reason.
    pub reason: Option<String>,
    /// For this pool.
    pub pool: Option<String>,
    /// For this handler.
    pub handler: Option<String>,
    /// Of this input.
    pub input: Option<String>,
    /// Of this key.
    pub key: Option<String>,
    /// Of this share.
    pub share: Option<String>,
    /// Of the event with this id.
    pub event: Option<String>,
    /// Of this group of errors.
    pub group: Option<String>,
    /// Given up then or later.
    pub since: Option<SystemTime>,
    /// Stored no later than the letter of this number.
    pub upto: Option<u64>,
}

/// In which order letters are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// As they came.
    #[default]
    Oldest,
    /// The last one first.
    Newest,
}

impl Order {
    /// The position before every letter.
    pub fn start(self) -> u64 {
        match self {
            Self::Oldest => 0,
            Self::Newest => u64::MAX,
        }
    }

    pub(super) fn condition(self) -> &'static str {
        match self {
            Self::Oldest => "id > ? ORDER BY id",
            Self::Newest => "id < ? ORDER BY id DESC",
        }
    }
}

impl Filter {
    /// These letters.
    pub fn only(ids: impl IntoIterator<Item = u64>) -> Self {
        Self { ids: ids.into_iter().collect(), ..Self::default() }
    }

    /// The moment that an RFC 3339 date and time is, for [`since`](Self::since); `None` for any
    /// other text.
    pub fn moment(text: &str) -> Option<SystemTime> {
        let (seconds, nanos) = crate::event::rfc3339::moment(text)?;
        let seconds = u64::try_from(seconds).unwrap_or_default();
        UNIX_EPOCH.checked_add(std::time::Duration::new(seconds, nanos))
    }

    /// A moment in the format that [`moment`](Self::moment) reads, to the millisecond.
    pub fn moment_text(moment: SystemTime) -> String {
        crate::event::rfc3339::format_utc(moment)
    }

    /// True if it selects everything.
    pub fn takes_all(&self) -> bool {
        *self == Self { upto: self.upto, ..Self::default() }
    }

    fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let texts = [
            ("reason", &self.reason),
            ("pool", &self.pool),
            ("handler", &self.handler),
            ("input", &self.input),
            ("key", &self.key),
            ("share", &self.share),
            ("event", &self.event),
            ("group", &self.group),
        ];
        texts.into_iter().filter_map(|(name, wanted)| Some((name, wanted.as_deref()?)))
    }

    /// A condition for the rows of `letters`, and its bound values.
    pub(super) fn condition(&self) -> (String, Vec<Value>) {
        let (mut all, mut bound) = (vec!["1".to_owned()], Vec::new());
        if !self.ids.is_empty() {
            let places = vec!["?"; self.ids.len()].join(",");
            all.push(format!("id IN ({places})"));
            bound.extend(self.ids.iter().map(|id| number(*id)));
        }
        for (name, wanted) in self.texts() {
            let column = match name {
                "event" => "event_id",
                "group" => "grp",
                name => name,
            };
            all.push(format!("{column} = ?"));
            bound.push(Value::Text(wanted.to_owned()));
        }
        if let Some(since) = self.since {
            all.push("last_at >= ?".to_owned());
            bound.push(Value::Integer(micros(since)));
        }
        if let Some(upto) = self.upto {
            all.push("id <= ?".to_owned());
            bound.push(number(upto));
        }
        (all.join(" AND "), bound)
    }

    /// Its conditions, for people.
    pub(super) fn describe(&self) -> String {
        let mut all = Vec::new();
        match &*self.ids {
            [] => {}
            [one] => all.push(format!("id={one}")),
            several => all.push(format!("{} ids", several.len())),
        }
        all.extend(self.texts().map(|(name, wanted)| format!("{name}={wanted}")));
        if let Some(since) = self.since {
            all.push(format!("since={}", crate::event::rfc3339::format_utc(since)));
        }
        if all.is_empty() { "all".to_owned() } else { all.join(" ") }
    }
}

/// A number as SQLite stores it; a number outside of that range is the number of no letter.
pub(super) fn number(id: u64) -> Value {
    Value::Integer(i64::try_from(id).unwrap_or(i64::MAX))
}

/// Microseconds since 1970.
pub(super) fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

pub(super) fn time(micros: i64) -> SystemTime {
    let since = std::time::Duration::from_micros(u64::try_from(micros).unwrap_or_default());
    UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
}
