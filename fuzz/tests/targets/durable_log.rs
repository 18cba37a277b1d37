//! Recovery of the durable log: segments that are changed, and bytes that are none.
//!
//! What recovery is to say follows from comparing bytes: which blocks stand whole where they
//! were, and whether a whole one stands behind one that is not.

use std::{collections::BTreeMap, ops::Range, sync::LazyLock};

use fuzz::fuzz;
use greenroom_bus::{
    event::Event,
    store::log::{
        LogError,
        fuzzed::{recover, seal, segment},
    },
};

const SEGMENT_HEADER: usize = 64;
const BLOCK_HEADER: usize = 40;
const ALIGNMENT: usize = 8;

/// Behind the last block, in bytes.
const ROOM: usize = 512;

const TOKENS: &[&str] = &[
    "GRBK",
    "GRNRMLOG",
    "\u{0}",
    "\u{0}\u{0}\u{0}\u{0}",
    "\u{1}\0\0\0\0\0\0\0",
    "\u{4}\0\0\0\0\0\0\0",
    "\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}",
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    "GRBK\0\0\0\0\u{1}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
];

/// Where a block stands, and its events with their sequence numbers.
type Block = (Range<usize>, Vec<(u64, Vec<u8>)>);

/// A segment that is whole.
struct Whole {
    bytes: &'static [u8],
    /// Where its blocks stand, without their padding, and what each has.
    blocks: Vec<Block>,
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn short(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
}

impl Whole {
    /// Blocks of these numbers of events.
    fn new(base: u64, salt: u32, counts: &[usize]) -> Self {
        let mut number = base;
        let mut event = || {
            number += 1;
            let (id, data) = (number.to_string(), "x".repeat(number as usize * 7 % 90));
            let event = Event::builder(&*id, "/s", "t").subject("k").data_json(&data).build();
            event.expect("an event")
        };
        let blocks: Vec<Vec<Event>> =
            counts.iter().map(|count| (0..*count).map(|_| event()).collect()).collect();
        let bytes: &'static [u8] = Box::leak(segment(base, salt, &blocks, ROOM).into());
        let blocks = Self::blocks_in(bytes, base);
        assert_eq!(blocks.len(), counts.len());
        Self { bytes, blocks }
    }

    /// Read as the page on the format has it.
    fn blocks_in(bytes: &[u8], base: u64) -> Vec<Block> {
        let (mut blocks, mut at, mut sequence) = (Vec::new(), SEGMENT_HEADER, base);
        while bytes[at..].starts_with(b"GRBK") {
            let end = at + BLOCK_HEADER + short(bytes, at + 24);
            let (mut records, mut record) = (Vec::new(), at + BLOCK_HEADER);
            while record < end {
                let length = short(bytes, record);
                let event = bytes[record + 16..record + 16 + length].to_vec();
                records.push((sequence, event));
                sequence += 1;
                record += 16 + length;
            }
            blocks.push((at..end, records));
            at = end.next_multiple_of(ALIGNMENT);
        }
        blocks
    }

    fn block(&self, n: usize) -> &'static [u8] {
        &self.bytes[self.blocks[n].0.clone()]
    }

    /// With the padding, which no checksum covers.
    fn fits(&self, n: usize, at: usize, bytes: &[u8]) -> bool {
        let block = self.block(n);
        bytes.len() >= at + block.len().next_multiple_of(ALIGNMENT)
            && bytes[at..].starts_with(block)
    }

    /// Reads on from block to block, as far as whole ones of the next sequence number follow one
    /// another. One without events may be there more than once, or not at all: nothing is missing.
    fn read(&self, bytes: &[u8]) -> Read {
        let mut read = Read { end: SEGMENT_HEADER, next: 1, events: Vec::new() };
        let next = |read: &Read| {
            let is_next = |n: &usize| self.first(*n) == read.next && self.fits(*n, read.end, bytes);
            (0..self.blocks.len()).find(is_next)
        };
        while let Some(n) = next(&read) {
            let (place, events) = &self.blocks[n];
            read.end += place.len().next_multiple_of(ALIGNMENT);
            read.next += events.len() as u64;
            read.events.extend(events.iter().cloned());
        }
        read
    }

    /// Something that was durable is missing before a whole block that stands behind it.
    fn has_later(&self, read: &Read, bytes: &[u8]) -> bool {
        let places = (read.end..bytes.len()).step_by(ALIGNMENT);
        let is_later = |n: &usize| self.first(*n) >= read.next;
        let later: Vec<usize> = (0..self.blocks.len()).filter(is_later).collect();
        let is_one = |at: usize| later.iter().any(|n| self.fits(*n, at, bytes));
        places.filter(|at| bytes[*at..].starts_with(b"GRBK")).any(is_one)
    }

    /// The first sequence number of a block, or behind the last one.
    fn first(&self, n: usize) -> u64 {
        let events = |(_, events): &(_, Vec<_>)| events.len() as u64;
        1 + self.blocks[..n].iter().map(events).sum::<u64>()
    }

    fn next(&self) -> u64 {
        self.first(self.blocks.len())
    }
}

/// What is to be read of a segment.
struct Read {
    end: usize,
    next: u64,
    events: Vec<(u64, Vec<u8>)>,
}

/// By salt: the seeds, of which none is taken for a part of another.
static WHOLE: LazyLock<BTreeMap<usize, Whole>> = LazyLock::new(|| {
    let counts: [&[usize]; 4] = [&[4, 1, 3], &[1], &[], &[2, 0, 9, 1, 1]];
    (1..).zip(counts).map(|(salt, counts)| (salt, Whole::new(1, salt as u32, counts))).collect()
});

static SEEDS: LazyLock<Vec<&'static [u8]>> =
    LazyLock::new(|| WHOLE.values().map(|whole| whole.bytes).collect());

/// The seed that these bytes are of, if its header is as it was.
fn seed_of(bytes: &[u8]) -> Option<&'static Whole> {
    let header = bytes.get(..SEGMENT_HEADER)?;
    WHOLE.values().find(|whole| whole.bytes[..SEGMENT_HEADER] == *header)
}

fn assert_it_says_what(error: &LogError) {
    match error {
        LogError::Damaged(damage) => assert!(!damage.what.is_empty()),
        LogError::Later { .. } => {}
        other => panic!("neither damage nor a later version: {other}"),
    }
}

#[test]
fn the_last_segment() {
    fuzz!(SEEDS.as_slice(), TOKENS, |input| {
        let found = recover(&[(1, input)]);
        let Some(whole) = seed_of(input) else {
            assert!(found.is_err(), "another header");
            return assert_it_says_what(&found.err().expect("an error"));
        };
        let read = whole.read(input);
        if whole.has_later(&read, input) || input.len() < whole.bytes.len() {
            let error = found.err().expect("damage before the tail, or a file that is cut");
            return assert_it_says_what(&error);
        }
        let mut found = found.expect("at most a torn tail").expect("a log");
        let events = read.events;
        assert_eq!(found.next, read.next);
        assert_eq!(found.events, events, "all of the blocks that are whole, and nothing else");
        let event = Event::builder("more", "/s", "t").build().expect("an event");
        if let Some(bytes) = found.append(&event).expect("memory") {
            let again = recover(&[(1, &bytes)]).expect("it goes on").expect("a log");
            assert_eq!(again.next, found.next + 1);
            assert_eq!(again.events[..events.len()], events);
            assert_eq!(again.events.len(), events.len() + 1);
        }
    });
}

#[test]
fn a_segment_before_the_last() {
    let follows: BTreeMap<u64, Vec<u8>> = WHOLE
        .values()
        .map(Whole::next)
        .map(|base| (base, Whole::new(base, 99, &[2, 1]).bytes.to_vec()))
        .collect();
    fuzz!(SEEDS.as_slice(), TOKENS, |input| {
        let Some(whole) = seed_of(input) else {
            let found = recover(&[(1, input), (1_000, follows.values().next().expect("one"))]);
            return assert!(found.is_err(), "another header");
        };
        let (read, base) = (whole.read(input), whole.next());
        if base == 1 {
            // Two segments of one name are not there.
            return;
        }
        match recover(&[(1, input), (base, &follows[&base])]) {
            Ok(found) => {
                let found = found.expect("a log");
                assert_eq!(read.next, base, "something is missing before the last segment");
                assert_eq!(found.next, base + 3);
                assert_eq!(found.events[..read.events.len()], read.events);
            }
            Err(error) => {
                assert_it_says_what(&error);
                let end = read.end;
                // Behind the last block stands one more that is not whole: that may have been lost.
                let is_begun = input
                    .get(end..end + BLOCK_HEADER)
                    .is_some_and(|header| header.starts_with(b"GRBK") && number(header, 8) == base);
                let is_cut = input.len() < whole.bytes.len();
                let is_whole = read.next == base && !is_begun && !is_cut;
                assert!(!is_whole, "nothing is missing: {error}");
            }
        }
    });
}

#[test]
fn checksums_that_are_right() {
    fuzz!(SEEDS.as_slice(), TOKENS, |input| {
        let mut sealed = input.to_vec();
        seal(&mut sealed);
        match recover(&[(1, &sealed)]) {
            Ok(found) => {
                let found = found.expect("a log");
                let numbers = found.events.iter().map(|(sequence, _)| *sequence);
                assert!(numbers.eq(1..found.next), "dense from the first to the last");
            }
            Err(error) => assert_it_says_what(&error),
        }
    });
}
