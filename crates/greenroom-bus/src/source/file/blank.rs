//! NULs in files: a log that is allocated before it is written ends with them, and one that is cut
//! while its writer does not append begins with as many as it had bytes.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

/// Looked at in one go.
const BYTES: usize = 64 * 1024;

/// How many NULs these bytes begin with.
pub(super) fn at_the_start(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len())
}

/// How many NULs these bytes end with.
pub(super) fn at_the_end(bytes: &[u8]) -> usize {
    bytes.len() - bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Where the first byte is that is no NUL, from this one on. Moves the cursor.
pub(super) fn content_from(file: &mut File, from: u64) -> io::Result<Option<u64>> {
    let (mut at, mut buffer) = (from, vec![0; BYTES]);
    loop {
        let Some(data) = data_from(file, at) else { return Ok(None) };
        at = data;
        file.seek(SeekFrom::Start(at))?;
        let count = file.read(&mut buffer)?;
        let nuls = at_the_start(&buffer[..count]);
        if nuls < count {
            return Ok(Some(at + nuls as u64));
        }
        if count == 0 {
            return Ok(None);
        }
        at += count as u64;
    }
}

/// The first place from this one on that is not part of a hole; `None` if there is none.
#[cfg(target_os = "linux")]
fn data_from(file: &File, from: u64) -> Option<u64> {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(from)) {
        Ok(at) => Some(at),
        Err(rustix::io::Errno::NXIO) => None,
        // The file system does not know.
        Err(_) => Some(from),
    }
}

#[cfg(not(target_os = "linux"))]
fn data_from(_: &File, from: u64) -> Option<u64> {
    Some(from)
}
