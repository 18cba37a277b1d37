//! Whether a file is the one that was read before.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};

use super::blank;

/// This much of a file is compared in one place.
pub(super) const BYTES: u64 = 4_096;

/// A fingerprint of some bytes of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    from: u64,
    bytes: u64,
    crc32: u32,
}

impl Fingerprint {
    /// Of up to 4 KiB that end here. Moves the file's cursor.
    pub(super) fn before(file: &mut File, end: u64) -> io::Result<Self> {
        Self::read(file, end.saturating_sub(BYTES)..end)
    }

    /// Of the bytes of this range that the file has. Moves its cursor.
    pub(super) fn read(file: &mut File, range: std::ops::Range<u64>) -> io::Result<Self> {
        let mut content = Vec::new();
        file.seek(SeekFrom::Start(range.start))?;
        file.take(range.end - range.start).read_to_end(&mut content)?;
        let crc32 = crc32fast::hash(&content);
        Ok(Self { from: range.start, bytes: content.len() as u64, crc32 })
    }

    /// From the written part at the beginning of a file: NULs at its end may be overwritten.
    fn written(file: &mut File) -> io::Result<Self> {
        let mut content = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.take(BYTES).read_to_end(&mut content)?;
        content.truncate(content.len() - blank::at_the_end(&content));
        Ok(Self { from: 0, bytes: content.len() as u64, crc32: crc32fast::hash(&content) })
    }

    /// These bytes follow: up to 4 KiB are known. The fingerprint of nothing begins a file.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        let room = BYTES.saturating_sub(self.bytes) as usize;
        let more = &bytes[..room.min(bytes.len())];
        let mut crc = crc32fast::Hasher::new_with_initial(self.crc32);
        crc.update(more);
        self.crc32 = crc.finalize();
        self.bytes += more.len() as u64;
    }

    /// Whether these are the bytes, at the beginning of a file.
    pub(super) fn is_of(&self, beginning: &[u8]) -> bool {
        let Some(bytes) = usize::try_from(self.bytes).ok().and_then(|n| beginning.get(..n)) else {
            return false;
        };
        self.from == 0 && crc32fast::hash(bytes) == self.crc32
    }

    /// Whether the same bytes are still there.
    pub(super) fn holds(&self, file: &mut File) -> io::Result<bool> {
        Ok(Self::read(file, self.from..self.from.saturating_add(self.bytes))? == *self)
    }
}

/// Which file was read, and how far its content is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileIdentity {
    /// 0 where the system has none.
    inode: u64,
    /// When the file was made, in nanoseconds since 1970: an inode is used again. `None` where the
    /// system does not tell, and in older checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created: Option<u64>,
    /// In bytes, as it is stored.
    length: u64,
    head: Fingerprint,
}

impl FileIdentity {
    /// Leaves the cursor of the file somewhere.
    pub(super) fn read(file: &mut File) -> io::Result<Self> {
        let found = file.metadata()?;
        let head = Fingerprint::written(file)?;
        let created = found.created().ok().and_then(nanos);
        Ok(Self { inode: inode(file)?, created, length: found.len(), head })
    }

    pub(super) fn inode(&self) -> u64 {
        self.inode
    }

    /// Whether a file with this inode, made at this time, is this one, whatever it holds by now.
    pub(super) fn is_inode_of(&self, (inode, created): (u64, SystemTime)) -> bool {
        let is_made_then = self.created.is_none_or(|at| nanos(created) == Some(at));
        self.inode == inode && is_made_then
    }

    /// Whether a file that begins with these bytes may have the same content.
    pub(super) fn begins_with(&self, beginning: &[u8]) -> bool {
        self.head.is_of(beginning)
    }

    /// Its beginning, as far as it was read. The beginning of a file that was opened while it was
    /// short would also match others.
    pub(super) fn begins(&mut self, head: &Fingerprint) {
        if head.bytes >= self.head.bytes {
            self.head = head.clone();
        }
    }

    /// The identity of this copy, which has another inode; `None` if nothing of the content is
    /// known, or only NULs, with which others begin as well.
    pub(super) fn copied(&self, copy: &File) -> io::Result<Option<Self>> {
        let nuls = vec![0_u8; self.head.bytes.min(BYTES) as usize];
        let is_known = !nuls.is_empty() && crc32fast::hash(&nuls) != self.head.crc32;
        let (inode, created) = (inode(copy)?, copy.metadata()?.created().ok().and_then(nanos));
        Ok(is_known.then(|| Self { inode, created, ..self.clone() }))
    }

    /// As large as the file is now, if it has grown. A file that was cut has changed.
    pub(super) fn grown(&self, file: &File) -> io::Result<Self> {
        Ok(Self { length: file.metadata()?.len().max(self.length), ..self.clone() })
    }

    /// Why this is another file, or one whose content has changed; `None` if it is the same, or has
    /// grown at its end. `tail` covers the bytes that were read last.
    pub(super) fn difference(
        &self,
        file: &mut File,
        tail: &Fingerprint,
    ) -> io::Result<Option<String>> {
        let (inode, length) = (inode(file)?, file.metadata()?.len());
        Ok(if inode != self.inode {
            Some(format!("another file is in its place (inode {inode}, was {})", self.inode))
        } else if length < self.length {
            Some(format!("it was cut to {length} bytes, from {}", self.length))
        } else if !self.head.holds(file)? {
            Some(format!("its first {} bytes are not what they were", self.head.bytes))
        } else if !tail.holds(file)? {
            let end = tail.from + tail.bytes;
            Some(format!("its content before byte {end} is not what it was"))
        } else {
            None
        })
    }
}

fn nanos(at: SystemTime) -> Option<u64> {
    u64::try_from(at.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// Whether both are the same file, as far as the system tells.
pub(super) fn are_same(file: &File, other: &File) -> io::Result<bool> {
    Ok(inode(file)? == inode(other)?)
}

/// The number of a file, where the system has one.
pub(super) fn number(file: &File) -> Option<u64> {
    inode(file).ok().filter(|inode| *inode != 0)
}

/// 0 where the system has none.
pub(super) fn inode(file: &File) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_that_grows_is_that_of_the_whole_beginning() {
        let content: Vec<u8> = (0..10_000_u32).map(|n| (n % 251) as u8).collect();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("in"), &content).unwrap();
        let mut file = File::open(directory.path().join("in")).unwrap();
        let mut grown = Fingerprint::default();
        let mut at = 0;
        for piece in content.chunks(1_500) {
            grown.extend(piece);
            at += piece.len() as u64;
            assert_eq!(grown, Fingerprint::read(&mut file, 0..at.min(BYTES)).unwrap());
        }
    }
}
