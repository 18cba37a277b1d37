//! CloudEvents 1.0, cheap to clone, data kept as bytes until a handler asks for a type.
//!
//! An [`Event`] is one reference to its attributes and its data; a clone costs one atomic
//! increment. Reading one from JSON takes four allocations (the attributes share one text), and
//! JSON data is neither decoded nor re-encoded on its way from a source to a sink: it is written
//! back as it was read.
//!
//! ```
//! use greenroom_bus::event::Event;
//!
//! let event = Event::parse(
//!     br#"{"specversion":"1.0","id":"1","source":"/shop","type":"order","data":{"n":1.0}}"#,
//! )?;
//! assert_eq!(event.ty(), "order");
//! let mut line = Vec::new();
//! event.write_json(&mut line);
//! assert!(line.ends_with(br#""data":{"n":1.0}}"#));
//! # Ok::<(), greenroom_bus::event::EventError>(())
//! ```

mod builder;
mod causation;
pub mod codec;
mod depth;
mod draft;
mod error;
mod field;
pub mod http;
mod locals;
pub(crate) mod media_type;
mod model;
mod order_key;
mod parse;
mod partition_key;
mod payload;
mod pointer;
pub(crate) mod rfc3339;
mod stored;
mod trace_context;
mod write;

pub use builder::EventBuilder;
pub use causation::{CAUSATION_ID, CORRELATION_ID, TRACEPARENT, TRACESTATE};
pub use error::{DataError, EventError};
pub use field::{Field, FieldError};
pub use model::{Data, Event, ExtensionValue};
pub use order_key::{KeyError, OrderBy, OrderByError};
pub use partition_key::{PARTITION_KEY, key_text};
pub(crate) use payload::NotJson;
pub use pointer::Pointer;
pub(crate) use pointer::Pointers;
pub use trace_context::{NoTraceContext, TraceContext, TraceHeaders};
pub use write::ExtraValue;
pub(crate) use write::{write_bare_base64, write_integer, write_text};

#[cfg(test)]
mod tests;

#[cfg(test)]
mod sdk_tests;
