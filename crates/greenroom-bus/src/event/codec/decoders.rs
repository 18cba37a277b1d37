//! Decoders of a type, by content type.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::{Decode, Json, Raw};
use crate::event::{DataError, Event, media_type};

/// Reads data as a `T`, by its content type.
pub struct Decoders<T> {
    by_type: BTreeMap<Box<str>, Arc<dyn Decode<T>>>,
    /// For content types that are not in the table.
    otherwise: Option<Arc<dyn Decode<T>>>,
}

impl<T: 'static> Decoders<T> {
    /// Nothing is read before a decoder is added.
    pub fn none() -> Self {
        Self { by_type: BTreeMap::new(), otherwise: None }
    }

    /// Registers the decoder of this media type, in place of an earlier one. Case and parameters
    /// (`; charset=utf-8`) are ignored. The decoder of `application/json` also reads any `+json`
    /// without one of its own, and data without a content type.
    pub fn with(mut self, media_type: &str, decoder: impl Decode<T>) -> Self {
        self.by_type.insert(media_type::normal(media_type).into(), Arc::new(decoder));
        self
    }

    /// Data of any other media type is read by `decoder`.
    pub fn otherwise(mut self, decoder: impl Decode<T>) -> Self {
        self.otherwise = Some(Arc::new(decoder));
        self
    }

    /// Decodes the data of an event, which keeps its bytes in any case.
    ///
    /// # Errors
    /// There is no data, its content type has no decoder, or it does not conform to its content
    /// type.
    pub fn decode(&self, event: &Event) -> Result<T, DataError> {
        let bytes = event.data_bytes().ok_or(DataError::Missing)?;
        let declared = event.datacontenttype().unwrap_or(media_type::JSON);
        let media = media_type::normal(declared);
        let Some(decoder) = self.find(&media) else {
            let known = self.by_type.keys().map(|known| known.to_string()).collect();
            return Err(DataError::NoCodec { content_type: declared.to_owned(), known });
        };
        let unreadable = |error| DataError::Unreadable { content_type: declared.to_owned(), error };
        decoder.decode(&bytes).map_err(unreadable)
    }

    fn find(&self, media: &str) -> Option<&Arc<dyn Decode<T>>> {
        let found = self.by_type.get(media);
        let json = || self.by_type.get(media_type::JSON).filter(|_| media_type::is_json(media));
        found.or_else(json).or(self.otherwise.as_ref())
    }
}

impl<T: DeserializeOwned + 'static> Decoders<T> {
    /// Reads JSON, and the media types that are added.
    pub fn json() -> Self {
        Self::none().with(media_type::JSON, Json)
    }
}

impl Decoders<Bytes> {
    /// The bytes of any content type, as they are.
    pub fn raw() -> Self {
        Self::none().otherwise(Raw)
    }
}

impl<T> Clone for Decoders<T> {
    fn clone(&self) -> Self {
        Self { by_type: self.by_type.clone(), otherwise: self.otherwise.clone() }
    }
}

impl<T> fmt::Debug for Decoders<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other = self.otherwise.as_ref().map(|_| Cow::Borrowed("*"));
        let known = self.by_type.keys().map(|known| Cow::Borrowed(&**known));
        f.debug_set().entries(known.chain(other)).finish()
    }
}
