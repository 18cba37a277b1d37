//! Samples from server-sent events, which arrive in pieces of any size.

use std::io::{self, Write};

use serde_json::Value;

/// No sample is as long as this.
const LONGEST: usize = 64 << 20;

/// Calls `each` with each sample that is written to it, until that returns false.
pub(super) struct Samples<F> {
    each: F,
    /// The beginning of an incomplete event.
    rest: Vec<u8>,
}

impl<F: FnMut(Value) -> bool> Samples<F> {
    pub(super) fn new(each: F) -> Self {
        Self { each, rest: Vec::new() }
    }

    fn event(&mut self, event: &[u8]) -> io::Result<()> {
        let Ok(event) = str::from_utf8(event) else { return Err(strange()) };
        // An event with a name is no sample.
        if event.lines().any(|line| line.starts_with("event:")) {
            return Ok(());
        }
        let data = event.lines().find_map(|line| line.strip_prefix("data:"));
        let Some(data) = data else { return Ok(()) };
        let sample = serde_json::from_str(data).map_err(|_| strange())?;
        match (self.each)(sample) {
            true => Ok(()),
            false => Err(io::Error::other("no listener is left")),
        }
    }
}

fn strange() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is not a stream of samples")
}

impl<F: FnMut(Value) -> bool> Write for Samples<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = self.rest.drain(..end + 2).collect();
            self.event(&event)?;
        }
        if self.rest.len() > LONGEST { Err(strange()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn o08_samples_come_in_pieces_of_any_size_and_others_are_passed_over() {
        let text = b"retry: 1\nevent: hello\ndata: {}\n\ndata: {\"n\":1}\n\n: still here\n\ndata: {\"n\":2}\n\n";
        for size in [1, 7, text.len()] {
            let mut seen = Vec::new();
            let mut samples = Samples::new(|sample| {
                seen.push(sample);
                true
            });
            text.chunks(size).for_each(|piece| samples.write_all(piece).unwrap());
            assert_eq!(seen, [json!({ "n": 1 }), json!({ "n": 2 })]);
        }
    }

    #[test]
    fn o08_who_has_had_enough_hears_no_more() {
        let mut count = 0;
        let mut samples = Samples::new(|_| {
            count += 1;
            false
        });
        samples.write_all(b"data: 1\n\ndata: 2\n\n").unwrap_err();
        samples.write_all(b"data: no\n\n").unwrap_err();
        assert_eq!(count, 2, "it stops at the first, and goes on where it stopped");
    }
}
