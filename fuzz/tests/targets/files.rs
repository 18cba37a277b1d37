//! Files of events: lines, plain or compressed, whole or not.

use std::{fs, io::Read, path::Path};

use flate2::read::MultiGzDecoder;
use fuzz::fuzz;
use greenroom_bus::source::{
    Pull, Source, Taken,
    file::{FileSource, FileSourceOptions},
};
use tokio::runtime::{Builder, Runtime};

use crate::{
    events::{assert_it_survives, written},
    seeds::JSON,
};

const PLAIN: &[&[u8]] = &[
    b"{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"s\",\"type\":\"t\"}\n\n{\"specversion\":\"1.0\",\"id\":\"2\",\"source\":\"s\",\"type\":\"t\"}\r\n",
    b"\xef\xbb\xbf{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"s\",\"type\":\"t\"}\nno event\n\xff\n{",
];

/// Two gzip members and zeros; one zstd frame behind one to be skipped.
const COMPRESSED: &[&[u8]] = &[
    include_bytes!("two-members.gz"),
    include_bytes!("frames.zst"),
    b"\x1f\x8b\x08\x1f\0\0\0\0\0\x03",
];

/// Longer lines are shortened.
const LONGEST_EVENT: usize = 200;

/// The most that is read of what an archive holds, in bytes: a small one may hold a lot.
const MOST: usize = 4 << 20;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// What a file gives until its end or its failure.
fn taken(runtime: &Runtime, path: &Path) -> (Vec<Taken>, bool) {
    let options = FileSourceOptions { max_event: LONGEST_EVENT, ..FileSourceOptions::default() };
    let mut source = FileSource::open(path, options).expect("the file is there");
    let mut taken = Vec::new();
    runtime.block_on(async {
        loop {
            match source.pull(&mut taken).await {
                Ok(Pull::More) if taken.len() < MOST / 2 => {}
                Ok(_) => return (taken, true),
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    return (taken, false);
                }
            }
        }
    })
}

/// Each line that is not blank is an event or its bytes, in its place.
fn assert_lines(content: &[u8], taken: &[Taken]) {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    // NULs at the head of a line are passed over.
    let text = |line: &'_ [u8]| line.iter().position(|byte| *byte != 0).unwrap_or(line.len());
    let lines = content.split(|byte| *byte == b'\n').map(|line| &line[text(line)..]);
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    // Of a longer line nobody knows whether it is blank.
    let is_blank = |line: &[u8]| line.len() <= LONGEST_EVENT && line.trim_ascii().is_empty();
    let lines = (1..).zip(lines).filter(|(_, line)| !is_blank(line));
    let mut taken = taken.iter();
    for (number, line) in lines {
        let taken = taken.next().unwrap_or_else(|| panic!("line {number} is missing"));
        assert_eq!(taken.position, number);
        match &taken.event {
            Ok(event) => {
                assert_it_survives(event);
                assert!(!written(event).is_empty());
            }
            Err(malformed) if malformed.too_large => {
                assert!(
                    line.len() > LONGEST_EVENT && line.starts_with(&malformed.raw[..LONGEST_EVENT])
                );
            }
            Err(malformed) => assert_eq!(malformed.raw, line, "{}", malformed.reason),
        }
    }
    assert!(taken.next().is_none(), "more lines than there are");
}

#[test]
fn plain() {
    let (runtime, directory) = (runtime(), tempfile::tempdir().expect("a directory"));
    let path = directory.path().join("in");
    fuzz!(PLAIN, JSON, |input| {
        fs::write(&path, input).expect("a file");
        let is_plain =
            ![&b"\x1f\x8b"[..], b"\x28\xb5\x2f\xfd"].iter().any(|magic| input.starts_with(magic));
        let (taken, ended) = taken(&runtime, &path);
        if is_plain && input.get(1..4).is_none_or(|magic| magic != b"\x2a\x4d\x18") {
            assert!(ended, "a plain file is read to its end");
            assert_lines(input, &taken);
        }
    });
}

#[test]
fn compressed() {
    let (runtime, directory) = (runtime(), tempfile::tempdir().expect("a directory"));
    let path = directory.path().join("in");
    fuzz!(COMPRESSED, &["\u{0}", "\n", "\u{1f}", "(", "\u{7f}"], |input| {
        fs::write(&path, input).expect("a file");
        let (taken, ended) = taken(&runtime, &path);
        let mut content = Vec::new();
        let decoder = MultiGzDecoder::new(input);
        let is_whole = decoder.take(MOST as u64).read_to_end(&mut content).is_ok();
        if input.starts_with(b"\x1f\x8b") && is_whole && content.len() < MOST {
            assert!(ended, "an archive that another decoder reads to its end");
            assert_lines(&content, &taken);
        }
    });
}
