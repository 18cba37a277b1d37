//! One gzip member after the other, and any data after the last.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// The content of all members. Zeros behind the last one, with which tape archives are filled up,
/// are passed over with a warning, as gzip(1) does; anything else there is an error.
pub(super) struct GzipMembers<R: BufRead> {
    at: At<R>,
    /// The name of the input in log lines.
    name: String,
}

enum At<R: BufRead> {
    Member(Box<GzDecoder<R>>),
    /// Between members, or behind the last.
    Between(R),
    /// Only while one becomes the other.
    Nowhere,
}

impl<R: BufRead> GzipMembers<R> {
    pub(super) fn new(input: R, name: String) -> Self {
        Self { at: At::Between(input), name }
    }

    /// False at the end of the input.
    fn begin_member(&self, input: &mut R) -> io::Result<bool> {
        let ahead = input.fill_buf()?;
        // If the data ends after the first byte, the header itself reports it.
        match ahead {
            [] => Ok(false),
            [0, ..] => self.pass_zeros(input).map(|()| false),
            [0x1f] | [0x1f, 0x8b, ..] => Ok(true),
            _ => Err(garbage()),
        }
    }

    fn pass_zeros(&self, input: &mut R) -> io::Result<()> {
        let mut zeros = 0_u64;
        loop {
            let ahead = input.fill_buf()?;
            if ahead.iter().any(|byte| *byte != 0) {
                return Err(garbage());
            }
            let count = ahead.len();
            if count == 0 {
                break;
            }
            zeros += count as u64;
            input.consume(count);
        }
        tracing::warn!(
            input = self.name,
            zeros,
            "zeros behind the end of the gzip archive were passed over"
        );
        Ok(())
    }
}

fn garbage() -> io::Error {
    io::Error::other("what follows its last member is neither another member nor zeros")
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.at, At::Nowhere) {
                At::Member(mut member) => {
                    let read = member.read(buffer);
                    let is_over = matches!(read, Ok(0)) && !buffer.is_empty();
                    self.at = match is_over {
                        true => At::Between((*member).into_inner()),
                        false => At::Member(member),
                    };
                    if !is_over {
                        return read;
                    }
                }
                At::Between(mut input) => {
                    let begins = self.begin_member(&mut input);
                    self.at = match begins {
                        Ok(true) => At::Member(Box::new(GzDecoder::new(input))),
                        _ => At::Between(input),
                    };
                    if !begins? {
                        return Ok(0);
                    }
                }
                At::Nowhere => return Ok(0),
            }
        }
    }
}
