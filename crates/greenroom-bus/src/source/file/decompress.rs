//! Plain, gzip and zstd, told apart by their first bytes.

use std::{
    error::Error,
    io::{self, BufRead, BufReader, Cursor, Read},
};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

/// Read from the system at once, before decompression.
const READ_BYTES: usize = 128 * 1024;
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// A skippable zstd frame, which may stand first, begins with `0x184d2a5?`, little endian.
const ZSTD_SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];

/// The content of an input, whichever way it is compressed.
///
/// # Errors
/// The first bytes cannot be read.
pub(super) fn decompressed(
    mut input: impl Read + Send + 'static,
) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = Vec::with_capacity(ZSTD_MAGIC.len());
    (&mut input).take(ZSTD_MAGIC.len() as u64).read_to_end(&mut magic)?;
    let kind = CompressionKind::from_magic(&magic);
    let input = Cursor::new(magic).chain(input);
    Ok(match kind {
        CompressionKind::Plain => Box::new(input),
        CompressionKind::Gzip => {
            let input = BufReader::with_capacity(READ_BYTES, input);
            Box::new(Damaged { kind: "gzip", input: MultiGzDecoder::new(input) })
        }
        CompressionKind::Zstd => {
            let input = BufReader::with_capacity(READ_BYTES, input);
            Box::new(Damaged { kind: "zstd", input: ZstdFrames::new(input) })
        }
    })
}

/// True if a file that begins with these bytes (at least four, if it has as many) is not
/// compressed.
pub(super) fn is_plain(beginning: &[u8]) -> bool {
    let magic = &beginning[..beginning.len().min(ZSTD_MAGIC.len())];
    matches!(CompressionKind::from_magic(magic), CompressionKind::Plain)
}

enum CompressionKind {
    Plain,
    Gzip,
    Zstd,
}

impl CompressionKind {
    fn from_magic(magic: &[u8]) -> Self {
        let skippable = magic.first().is_some_and(|byte| byte & 0xf0 == 0x50);
        match magic {
            magic if magic.starts_with(GZIP_MAGIC) => Self::Gzip,
            ZSTD_MAGIC => Self::Zstd,
            [_, rest @ ..] if skippable && rest == ZSTD_SKIPPABLE => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

/// Says in its errors that the archive is damaged or truncated.
struct Damaged<R> {
    kind: &'static str,
    input: R,
}

impl<R: Read> Read for Damaged<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer).map_err(|error| {
            let kind = self.kind;
            match error.kind() {
                io::ErrorKind::Interrupted => error,
                io::ErrorKind::UnexpectedEof => io::Error::other(format!(
                    "the {kind} archive is truncated: it ends in the middle"
                )),
                io::ErrorKind::Unsupported => error,
                _ => io::Error::other(format!("the {kind} archive is damaged: {error}")),
            }
        })
    }
}

/// The decoder's own words are for its developers. The input's own error is kept.
fn explained(what: &str, error: impl Error + 'static) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return match error.kind() {
                io::ErrorKind::UnexpectedEof => io::ErrorKind::UnexpectedEof.into(),
                _ => io::Error::other(error.to_string()),
            };
        }
        cause = error.source();
    }
    io::Error::other(what.to_owned())
}

/// The archive is whole, and takes more memory than an input may.
fn too_large_a_window(requested: u64, max: u64) -> io::Error {
    let [requested, max] = [requested, max].map(|bytes| bytes.div_ceil(1 << 20));
    let why = format!(
        "the zstd archive needs a window of {requested} MiB, and at most {max} MiB is given: compress it again without `--long` \
         (`zstd -dc --long=31 OLD | zstd -o NEW`)"
    );
    io::Error::new(io::ErrorKind::Unsupported, why)
}

/// One zstd frame after the other; the decoder itself knows only one.
struct ZstdFrames<R> {
    input: R,
    decoder: FrameDecoder,
    within_frame: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    fn new(input: R) -> Self {
        Self { input, decoder: FrameDecoder::new(), within_frame: false }
    }

    /// False at the end of the input.
    fn begin_frame(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.within_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => self.skip(length)?,
                Err(FrameDecoderError::WindowSizeTooBig { requested, max }) => {
                    return Err(too_large_a_window(requested, max));
                }
                Err(error) => return Err(explained("the header of a frame cannot be read", error)),
            }
        }
        Ok(false)
    }

    fn skip(&mut self, length: u32) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.input).take(length.into()), &mut io::sink())?;
        if skipped < length.into() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// The decoder reads the frame's checksum, and leaves the comparison to us.
    fn end_frame(&mut self) -> io::Result<()> {
        self.within_frame = false;
        let stored = self.decoder.get_checksum_from_data();
        if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            return Err(io::Error::other("the checksum of a frame is wrong"));
        }
        Ok(())
    }

    fn decode_block(&mut self) -> io::Result<()> {
        if self.input.fill_buf()?.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.decoder
            .decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1))
            .map(drop)
            .map_err(|error| explained("a block cannot be decoded", error))
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.within_frame && !self.begin_frame()? {
                return Ok(0);
            }
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            if self.decoder.is_finished() {
                self.end_frame()?;
            } else {
                self.decode_block()?;
            }
        }
    }
}
