//! Bytes as they are.

use bytes::Bytes;

use super::{CodecError, Decode, Encode};

/// Takes and gives bytes as they are, whatever they mean.
#[derive(Debug, Clone, Copy, Default)]
pub struct Raw;

impl Decode<Bytes> for Raw {
    fn decode(&self, bytes: &[u8]) -> Result<Bytes, CodecError> {
        Ok(Bytes::copy_from_slice(bytes))
    }
}

impl Encode<Bytes> for Raw {
    fn encode(&self, value: &Bytes) -> Result<Vec<u8>, CodecError> {
        Ok(value.to_vec())
    }
}
