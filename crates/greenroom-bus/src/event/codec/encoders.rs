//! Encoders of a type, by content type.

use std::{collections::BTreeMap, fmt, sync::Arc};

use bytes::Bytes;
use serde::Serialize;

use super::{Encode, Json, Raw};
use crate::event::{DataError, media_type};

/// Writes a `T` as data of a content type.
pub struct Encoders<T: ?Sized> {
    by_type: BTreeMap<Box<str>, Arc<dyn Encode<T>>>,
    /// For content types that are not in the table.
    otherwise: Option<Arc<dyn Encode<T>>>,
}

impl<T: ?Sized + 'static> Encoders<T> {
    /// Nothing is written before an encoder is added.
    pub fn none() -> Self {
        Self { by_type: BTreeMap::new(), otherwise: None }
    }

    /// Registers the encoder of this media type, in place of an earlier one. The encoder of
    /// `application/json` also writes any `+json` without one of its own.
    pub fn with(mut self, media_type: &str, encoder: impl Encode<T>) -> Self {
        self.by_type.insert(media_type::normal(media_type).into(), Arc::new(encoder));
        self
    }

    /// Data of any other media type is written by `encoder`.
    pub fn otherwise(mut self, encoder: impl Encode<T>) -> Self {
        self.otherwise = Some(Arc::new(encoder));
        self
    }

    /// Writes a value as this media type.
    /// [`EventBuilder::data_as`](crate::event::EventBuilder::data_as) does so for an event.
    ///
    /// # Errors
    /// The media type has no encoder, or the value cannot be encoded.
    pub fn encode(&self, content_type: &str, value: &T) -> Result<Vec<u8>, DataError> {
        let content_type = content_type.to_owned();
        match self.find(&media_type::normal(&content_type)) {
            Some(encoder) => {
                encoder.encode(value).map_err(|error| DataError::Unwritable { content_type, error })
            }
            None => {
                let known = self.by_type.keys().map(|known| known.to_string()).collect();
                Err(DataError::NoCodec { content_type, known })
            }
        }
    }

    fn find(&self, media: &str) -> Option<&Arc<dyn Encode<T>>> {
        let found = self.by_type.get(media);
        let json = || self.by_type.get(media_type::JSON).filter(|_| media_type::is_json(media));
        found.or_else(json).or(self.otherwise.as_ref())
    }
}

impl<T: Serialize + ?Sized + 'static> Encoders<T> {
    /// Writes JSON, and the media types that are added.
    pub fn json() -> Self {
        Self::none().with(media_type::JSON, Json)
    }
}

impl Encoders<Bytes> {
    /// Bytes as they are, as any content type.
    pub fn raw() -> Self {
        Self::none().otherwise(Raw)
    }
}

impl<T: ?Sized> Clone for Encoders<T> {
    fn clone(&self) -> Self {
        Self { by_type: self.by_type.clone(), otherwise: self.otherwise.clone() }
    }
}

impl<T: ?Sized> fmt::Debug for Encoders<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other = self.otherwise.as_ref().map(|_| "*");
        f.debug_set().entries(self.by_type.keys().map(|known| &**known).chain(other)).finish()
    }
}
