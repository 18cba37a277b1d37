//! Entries of a stream, as a server answers with them.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use redis::{ErrorKind, RedisError, Value};

/// The id of an entry: a time in milliseconds, and a number within that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(pub(crate) u64, pub(crate) u64);

impl Id {
    /// Below all others.
    pub(crate) const ZERO: Self = Self(0, 0);

    /// From here on, positions are of entries whose ids are none.
    pub(crate) const NUMBERED: u64 = 1 << 63;

    /// The id as one number. `None`: it is not one that a server makes, with a time before the year
    /// 2109 and fewer than two millions of entries within a millisecond.
    pub(crate) fn position(self) -> Option<u64> {
        (self.0 < 1 << 42 && self.1 < 1 << 21).then_some(self.0 << 21 | self.1)
    }

    /// The one just below.
    pub(crate) fn before(self) -> Self {
        match self {
            Self(0, 0) => self,
            Self(ms, 0) => Self(ms - 1, u64::MAX),
            Self(ms, number) => Self(ms, number - 1),
        }
    }

    /// # Errors
    /// The value is none.
    pub(crate) fn read(value: &Value) -> Result<Self, RedisError> {
        let text = match value {
            Value::BulkString(text) => std::str::from_utf8(text).ok(),
            _ => None,
        };
        let read = text
            .and_then(|text| text.split_once('-'))
            .and_then(|(ms, number)| Some(Self(ms.parse().ok()?, number.parse().ok()?)));
        read.ok_or_else(unexpected)
    }

    /// When an entry was added, where its id was made by the server.
    pub(crate) fn time(self) -> Option<SystemTime> {
        UNIX_EPOCH.checked_add(Duration::from_millis(self.0))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

/// Name and value.
pub(crate) type Field = (Vec<u8>, Vec<u8>);

/// An entry.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: Id,
    /// `None`: it was given to a consumer, and then removed from the stream.
    pub(crate) fields: Option<Vec<Field>>,
}

/// An answer that this version of the protocol does not have.
pub(crate) fn unexpected() -> RedisError {
    RedisError::from((ErrorKind::UnexpectedReturnType, "an answer of another form than expected"))
}

/// The elements of an array. Nothing is an empty one.
pub(crate) fn array(value: Value) -> Result<Vec<Value>, RedisError> {
    match value {
        Value::Array(elements) => Ok(elements),
        Value::Nil => Ok(Vec::new()),
        _ => Err(unexpected()),
    }
}

/// An array of that many elements; a newer server may have more.
pub(crate) fn parts<const N: usize>(value: Value) -> Result<[Value; N], RedisError> {
    let mut elements = array(value)?;
    elements.truncate(N);
    elements.try_into().map_err(|_| unexpected())
}

pub(crate) fn bytes(value: Value) -> Result<Vec<u8>, RedisError> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        _ => Err(unexpected()),
    }
}

/// Names of what a server says of a thing, each with its value.
pub(crate) fn facts(value: Value) -> Result<Vec<(Vec<u8>, Value)>, RedisError> {
    let mut facts = Vec::new();
    let mut elements = array(value)?.into_iter();
    while let (Some(name), Some(value)) = (elements.next(), elements.next()) {
        facts.push((bytes(name)?, value));
    }
    Ok(facts)
}

/// The name of a stream, and entries of it.
type StreamEntries = (Vec<u8>, Vec<Entry>);

/// Streams with their entries.
pub(crate) fn streams(value: Value) -> Result<Vec<StreamEntries>, RedisError> {
    let stream = |value| {
        let [name, of] = parts(value)?;
        Ok((bytes(name)?, entries(of)?))
    };
    array(value)?.into_iter().map(stream).collect()
}

pub(crate) fn entries(value: Value) -> Result<Vec<Entry>, RedisError> {
    array(value)?.into_iter().filter(|entry| *entry != Value::Nil).map(entry).collect()
}

fn entry(value: Value) -> Result<Entry, RedisError> {
    let [id, of] = parts(value)?;
    let id = Id::read(&id)?;
    if of == Value::Nil {
        return Ok(Entry { id, fields: None });
    }
    let mut fields = Vec::new();
    let mut elements = array(of)?.into_iter();
    while let (Some(name), Some(value)) = (elements.next(), elements.next()) {
        fields.push((bytes(name)?, bytes(value)?));
    }
    Ok(Entry { id, fields: Some(fields) })
}
