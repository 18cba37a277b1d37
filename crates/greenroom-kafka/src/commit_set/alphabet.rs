//! Bytes as characters.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// The first of 32,768 characters that stand for 15 bits each. None of them is a surrogate or NUL;
/// each is one UTF-16 code unit, and three bytes of UTF-8.
const FIRST: u32 = 0x800;
const BITS: usize = 15;

/// Which characters a text is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alphabet {
    /// From U+0800 to U+87FF, 15 bits each: the densest that every broker which counts UTF-16 code
    /// units takes.
    Wide,
    /// Base64, 6 bits each: for brokers that count bytes, or take ASCII alone.
    Ascii,
}

impl Alphabet {
    /// How many bytes this many characters hold.
    pub(super) fn capacity(self, characters: usize) -> usize {
        match self {
            Self::Wide => characters * BITS / 8,
            Self::Ascii => characters * 6 / 8,
        }
    }

    pub(super) fn write(self, bytes: &[u8], into: &mut String) {
        match self {
            Self::Wide => write_wide(bytes, into),
            Self::Ascii => URL_SAFE_NO_PAD.encode_string(bytes, into),
        }
    }

    /// The bytes, and perhaps a zero after them. `None` if a character is not in the alphabet.
    pub(super) fn read(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Wide => read_wide(text),
            Self::Ascii => URL_SAFE_NO_PAD.decode(text).ok(),
        }
    }
}

fn write_wide(bytes: &[u8], into: &mut String) {
    let (mut held, mut bits) = (0_u32, 0);
    let mut push = |value: u32| into.extend(char::from_u32(FIRST + value));
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        if bits >= BITS {
            bits -= BITS;
            push(held >> bits);
            held &= (1 << bits) - 1;
        }
    }
    if bits > 0 {
        push(held << (BITS - bits));
    }
}

fn read_wide(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 3 * BITS / 8 + 1);
    let (mut held, mut bits) = (0_u32, 0);
    for character in text.chars() {
        let value = u32::from(character).checked_sub(FIRST).filter(|value| value >> BITS == 0)?;
        held = (held << BITS) | value;
        bits += BITS;
        while bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}
