//! Marshalling: the bytes of an event's data to a type, and back, by content type.
//!
//! Data stays bytes until a handler asks for a type. The event's `datacontenttype` says how they
//! are encoded, and a registry has the codec: [`Decoders`] for one type that is read, [`Encoders`]
//! for one that is written. JSON is built in, for every type that serde knows; [`Raw`] takes the
//! bytes as they are; others are added, a trait with one method each ([`Decode`], [`Encode`]).
//!
//! ```text
//! event ──datacontenttype──▶ Decoders<Order> ─┬─ application/json, +json, none ──▶ Json
//!                                             ├─ application/x-protobuf ─────────▶ yours
//!                                             └─ any other ──▶ `DataError::NoCodec`, a dead letter with its bytes
//! ```
//!
//! ```
//! use greenroom_bus::{codec::{CodecError, Decode, Decoders, Encode, Encoders}, event::Event};
//!
//! /// A format of our own: two numbers of one byte.
//! struct Pairs;
//!
//! impl Decode<(u8, u8)> for Pairs {
//!     fn decode(&self, bytes: &[u8]) -> Result<(u8, u8), CodecError> {
//!         let [a, b] = *bytes else {
//!             return Err(format!("{} bytes instead of 2", bytes.len()).into());
//!         };
//!         Ok((a, b))
//!     }
//! }
//! impl Encode<(u8, u8)> for Pairs {
//!     fn encode(&self, value: &(u8, u8)) -> Result<Vec<u8>, CodecError> {
//!         Ok(vec![value.0, value.1])
//!     }
//! }
//!
//! let decoders = Decoders::json().with("application/x-pairs", Pairs);
//! let encoders = Encoders::json().with("application/x-pairs", Pairs);
//! for content_type in ["application/json", "application/x-pairs"] {
//!     let event = Event::builder("1", "/shop", "pair")
//!         .data_as(content_type, &(3, 4), &encoders)
//!         .build()?;
//!     assert_eq!(decoders.decode(&event)?, (3, 4));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A registry is a table that is filled before it is used, and shared by reference or
//! [`Clone`]. A lookup costs one hash of the media type. A codec that panics ends the attempt
//! as a handler that panics does.

mod codecs;
mod json;
mod raw;

pub use super::error::CodecError;
pub use codecs::{Codecs, Decoders, Encoders};
pub use json::Json;
pub use raw::Raw;

/// Reads a type from bytes.
pub trait Decode<T>: Send + Sync + 'static {
    /// The value that the bytes stand for.
    ///
    /// # Errors
    /// The bytes are malformed. The event keeps them.
    fn decode(&self, bytes: &[u8]) -> Result<T, CodecError>;
}

/// Writes a type as bytes.
pub trait Encode<T: ?Sized>: Send + Sync + 'static {
    /// The bytes that stand for the value.
    ///
    /// # Errors
    /// Why the value cannot be written.
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError>;
}

#[cfg(test)]
mod tests;
