//! Checkpoint files, with a checksum that is right as often as not.

use flate2::Crc;
use fuzz::fuzz;
use greenroom_bus::{source::file::positions_in, watermark::Watermark};

const CHECKPOINTS: &[&[u8]] = &[
    br#"{"input":"in","identity":{"length":10,"crc32":"00000000","device":1,"inode":2},"tail":{"from":0,"crc32":"00000000"},"mark":{"line":1,"byte":0},"next":1000,"open":[3,2,12,1,972,10],"taken_below":1200}"#,
    br#"{"input":"*","files":[{"input":"in","next":1,"open":[],"taken_below":1,"read":10}]}"#,
];

const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "0",
    "1",
    "-1",
    "null",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "1e3",
    "\"next\":",
    "\"open\":",
    "\"mark\":",
    "\"taken_below\":",
    ",1",
    ",0,18446744073709551614",
    "\u{fc}",
];

/// The same with the checksum that it should have.
fn sealed(form: u8, of: &str) -> String {
    let mut crc = Crc::new();
    crc.update(of.as_bytes());
    format!("{{\"greenroom_checkpoint\":{form},\"crc32\":\"{:08x}\",\"of\":{of}}}\n", crc.sum())
}

/// What is resumed from takes no more memory than it is long, whatever numbers it names.
fn read(text: &[u8]) {
    match positions_in(text) {
        Ok(files) => {
            for positions in files {
                assert!(positions.lowest() <= positions.next());
                let mut watermark = Watermark::default();
                watermark.assign(&positions);
                let _ = watermark.receive(positions.lowest());
            }
        }
        Err(why) => assert!(!why.is_empty()),
    }
}

#[test]
fn checkpoints() {
    fuzz!(CHECKPOINTS, TOKENS, |input| {
        read(input);
        let text = String::from_utf8_lossy(input);
        for form in 0..4 {
            read(sealed(form, text.trim()).as_bytes());
        }
    });
}
