//! The codecs of a type, by content type.

use std::{collections::BTreeMap, fmt, sync::Arc};

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};

use super::{Decode, Encode, Json, Raw};
use crate::event::{DataError, Event, media_type};

/// Reads data as a `T`, by its content type.
pub type Decoders<T> = Codecs<dyn Decode<T>>;

/// Writes a `T` as data of a content type.
pub type Encoders<T> = Codecs<dyn Encode<T>>;

/// Codecs by content type: [`Decoders`] or [`Encoders`].
pub struct Codecs<C: ?Sized> {
    by_type: BTreeMap<Box<str>, Arc<C>>,
    /// For content types that are not in the table.
    otherwise: Option<Arc<C>>,
}

impl<C: ?Sized> Codecs<C> {
    /// Nothing is read or written before a codec is added.
    pub fn none() -> Self {
        Self { by_type: BTreeMap::new(), otherwise: None }
    }

    fn add(mut self, media_type: &str, codec: Arc<C>) -> Self {
        self.by_type.insert(media_type::normal(media_type).into(), codec);
        self
    }

    /// # Errors
    /// The content type has no codec.
    fn find(&self, content_type: &str) -> Result<&C, DataError> {
        let media = media_type::normal(content_type);
        let found = self.by_type.get(&*media);
        let json = || self.by_type.get(media_type::JSON).filter(|_| media_type::is_json(&media));
        let found = found.or_else(json).or(self.otherwise.as_ref());
        found.map(|codec| &**codec).ok_or_else(|| {
            let known = self.by_type.keys().map(|known| known.to_string()).collect();
            DataError::NoCodec { content_type: content_type.to_owned(), known }
        })
    }
}

impl<T: 'static> Decoders<T> {
    /// Registers the decoder of this media type, in place of an earlier one. Case and parameters
    /// (`; charset=utf-8`) are ignored. The decoder of `application/json` also reads any `+json`
    /// without one of its own, and data without a content type.
    pub fn with(self, media_type: &str, decoder: impl Decode<T>) -> Self {
        self.add(media_type, Arc::new(decoder))
    }

    /// Data of any other media type is read by `decoder`.
    pub fn otherwise(self, decoder: impl Decode<T>) -> Self {
        Self { otherwise: Some(Arc::new(decoder)), ..self }
    }

    /// Decodes the data of an event, which keeps its bytes in any case.
    ///
    /// # Errors
    /// There is no data, its content type has no decoder, or it does not conform to its content
    /// type.
    pub fn decode(&self, event: &Event) -> Result<T, DataError> {
        let bytes = event.data_bytes().ok_or(DataError::Missing)?;
        let declared = event.datacontenttype().unwrap_or(media_type::JSON);
        let unreadable = |error| DataError::Unreadable { content_type: declared.to_owned(), error };
        self.find(declared)?.decode(&bytes).map_err(unreadable)
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

impl<T: ?Sized + 'static> Encoders<T> {
    /// Registers the encoder of this media type, in place of an earlier one. The encoder of
    /// `application/json` also writes any `+json` without one of its own.
    pub fn with(self, media_type: &str, encoder: impl Encode<T>) -> Self {
        self.add(media_type, Arc::new(encoder))
    }

    /// Data of any other media type is written by `encoder`.
    pub fn otherwise(self, encoder: impl Encode<T>) -> Self {
        Self { otherwise: Some(Arc::new(encoder)), ..self }
    }

    /// Writes a value as this media type.
    /// [`EventBuilder::data_as`](crate::event::EventBuilder::data_as) does so for an event.
    ///
    /// # Errors
    /// The media type has no encoder, or the value cannot be encoded.
    pub fn encode(&self, content_type: &str, value: &T) -> Result<Vec<u8>, DataError> {
        let content_type = content_type.to_owned();
        let encoded = self.find(&content_type)?.encode(value);
        encoded.map_err(|error| DataError::Unwritable { content_type, error })
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

impl<C: ?Sized> Clone for Codecs<C> {
    fn clone(&self) -> Self {
        Self { by_type: self.by_type.clone(), otherwise: self.otherwise.clone() }
    }
}

impl<C: ?Sized> fmt::Debug for Codecs<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other = self.otherwise.as_ref().map(|_| "*");
        f.debug_set().entries(self.by_type.keys().map(|known| &**known).chain(other)).finish()
    }
}
