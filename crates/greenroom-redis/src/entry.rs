//! Stream entries, parsed from the answers of the server.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use redis::{ErrorKind, RedisError, Value};

/// The id of an entry: a time in milliseconds, and a number within that millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(pub(crate) u64, pub(crate) u64);

impl Id {
    /// The lowest id.
    pub(crate) const ZERO: Self = Self(0, 0);

    /// Positions from here on belong to entries whose ids do not fit into one number.
    pub(crate) const NUMBERED: u64 = 1 << 63;

    /// The id as one number, rising with the id. `None` if it does not fit: servers make ids that
    /// do, until the year 2109 and below two million entries a millisecond; clients may not.
    pub(crate) fn position(self) -> Option<u64> {
        (self.0 < 1 << 42 && self.1 < 1 << 21).then_some(self.0 << 21 | self.1)
    }

    /// The id just below this one.
    pub(crate) fn before(self) -> Self {
        match self {
            Self(0, 0) => self,
            Self(ms, 0) => Self(ms - 1, u64::MAX),
            Self(ms, number) => Self(ms, number - 1),
        }
    }

    /// # Errors
    /// The value is not an id.
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

    /// When the entry was added, if the server made the id.
    pub(crate) fn time(self) -> Option<SystemTime> {
        UNIX_EPOCH.checked_add(Duration::from_millis(self.0))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

/// A field: name and value.
pub(crate) type Field = (Vec<u8>, Vec<u8>);

/// An entry.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: Id,
    /// `None` for a pending entry that was removed from the stream.
    pub(crate) fields: Option<Vec<Field>>,
}

/// The error for an answer that the protocol does not have.
pub(crate) fn unexpected() -> RedisError {
    RedisError::from((ErrorKind::UnexpectedReturnType, "an answer of another form than expected"))
}

/// The elements of an array; nil counts as an empty array.
pub(crate) fn array(value: Value) -> Result<Vec<Value>, RedisError> {
    match value {
        Value::Array(elements) => Ok(elements),
        Value::Nil => Ok(Vec::new()),
        _ => Err(unexpected()),
    }
}

/// The first `N` elements of an array; newer servers may add more.
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

/// Pairs of a name and a value, as `XINFO` returns them.
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

/// Claimed entries, and the id from which the search goes on. Servers since 7.0 list those that
/// were removed from the stream apart.
pub(crate) fn claimed(value: Value) -> Result<(Id, Vec<Entry>), RedisError> {
    let mut elements = array(value)?.into_iter();
    let (Some(next), Some(found)) = (elements.next(), elements.next()) else {
        return Err(unexpected());
    };
    let mut entries = entries(found)?;
    for removed in elements.next().map(array).transpose()?.unwrap_or_default() {
        entries.push(Entry { id: Id::read(&removed)?, fields: None });
    }
    Ok((Id::read(&next)?, entries))
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
