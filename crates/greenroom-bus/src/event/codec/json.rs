//! JSON, for every type that serde knows.

use serde::{Serialize, de::DeserializeOwned};

use super::{CodecError, Decode, Encode};
use crate::byte_order_mark::skip_byte_order_mark;

/// Reads and writes JSON.
#[derive(Debug, Clone, Copy, Default)]
pub struct Json;

impl<T: DeserializeOwned> Decode<T> for Json {
    fn decode(&self, bytes: &[u8]) -> Result<T, CodecError> {
        Ok(serde_json::from_slice(skip_byte_order_mark(bytes))?)
    }
}

impl<T: Serialize + ?Sized> Encode<T> for Json {
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
        Ok(serde_json::to_vec(value)?)
    }
}
