//! The part of a commit beyond its offset: the offsets that are settled although a lower one is
//! open (F01).
//!
//! Kafka keeps one number for each partition of a group. A consumer that only had that number
//! would, after a crash, handle everything again behind the one event that was stuck. But a commit
//! may carry a text, of 4,096 characters by default. That text is a set of offsets here:
//!
//! ```text
//! open      100        103 104            108       committed: offset 100, and the text
//! done          101 102        105 106 107          open 1, done 2, open 2, done 3
//!                                                   ▼
//!           run lengths, arithmetically coded; or a bitmap, if that is shorter
//!                                                   ▼
//!           15 bits in each character from U+0800 on; or base64, if the broker refuses that
//! ```
//!
//! The broker counts UTF-16 code units, not bytes, so that 4,096 characters of three bytes each
//! hold 7,678 bytes (F12). A bitmap of these reaches 61,000 offsets beyond the lowest open one,
//! whatever is open in between. Run lengths reach as far as there are few of them: an event that is
//! stuck for ever costs some ten bytes.
//!
//! A text names its author, and has a checksum over the set and its offset. A text that is damaged,
//! of another program, or for another offset is [refused](Unreadable), and the offset alone counts:
//! events are delivered again, and none is lost. The texts of Confluent's parallel-consumer have no
//! checksum, so they are read only by [`decode_parallel_consumer`] (F03).
//!
//! ```
//! use greenroom_bus::watermark::Positions;
//! use greenroom_kafka::commit_set::{Alphabet, Limit, decode, encode};
//!
//! let positions = Positions::new(108, [100..101, 103..105])?;
//! let limit = Limit { units: 4_096, alphabet: Alphabet::Wide };
//! let encoded = encode(&positions, limit);
//! assert!(encoded.is_whole && encoded.text.chars().count() < 10);
//! assert_eq!(decode(positions.lowest(), &encoded.text)?, positions);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alphabet;
mod bitmap;
mod models;
mod parallel_consumer;
mod range_coder;
mod runs;
mod text;
mod unreadable;
mod varint;

#[cfg(test)]
mod tests;

pub use self::{
    alphabet::Alphabet,
    parallel_consumer::decode_parallel_consumer,
    text::{Encoded, Limit, decode, encode, has_room, used},
    unreadable::Unreadable,
};
