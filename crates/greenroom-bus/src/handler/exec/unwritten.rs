//! Lines for a process that its pipe has not taken yet.

/// The unwritten bytes, and how much was written.
#[derive(Debug, Default)]
pub(super) struct UnwrittenLines {
    /// Of these the pipe has taken the first `taken` bytes.
    bytes: Vec<u8>,
    taken: usize,
    /// How many bytes the pipe has taken in all.
    written: u64,
}

impl UnwrittenLines {
    /// The buffer for the next line, and the offset of that line in everything written.
    ///
    /// With several events in flight the buffer may never be empty, so the consumed part is removed
    /// as soon as it is as long as the rest: no byte is then moved more than once on average.
    pub(super) fn line(&mut self) -> (&mut Vec<u8>, u64) {
        let left = self.rest().len();
        if self.taken >= left {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        (&mut self.bytes, self.written + left as u64)
    }

    /// The bytes that the pipe has not taken.
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    /// The pipe has taken this much of the rest.
    pub(super) fn take(&mut self, count: usize) {
        self.taken += count;
        self.written += count as u64;
    }

    /// How many bytes the pipe has taken in all.
    pub(super) fn written(&self) -> u64 {
        self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u02_what_a_process_has_read_is_forgotten_although_something_is_always_left() {
        let mut lines = UnwrittenLines::default();
        let line = |n: u64| n.to_le_bytes();
        lines.line().0.extend(line(0));
        let mut read = Vec::<u8>::new();
        for n in 1..10_000 {
            let (bytes, begins) = lines.line();
            bytes.extend(line(n));
            assert_eq!(begins, n * 8);
            // A part of one line and of the next: never all of them.
            read.extend(&lines.rest()[..8]);
            lines.take(8);
            assert!(!lines.rest().is_empty());
            assert!(lines.bytes.len() <= 32, "{} bytes are kept", lines.bytes.len());
        }
        assert_eq!(lines.written(), read.len() as u64);
        let expected: Vec<u8> = (0..9_999).flat_map(line).collect();
        assert!(read == expected, "lines are left out or repeated");
    }
}
