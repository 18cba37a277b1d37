//! A whole letter, sent in pieces.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header},
    response::Response,
};
use futures_util::stream;

use crate::admin::answer::as_json;

/// The bytes of one piece.
const PIECE: u64 = 64 << 10;

/// The range of a letter in its file.
pub(super) struct Whole {
    pub(super) path: PathBuf,
    pub(super) number: u64,
    pub(super) start: u64,
    pub(super) length: u64,
}

impl Whole {
    /// An answer that reads on as the client takes it. No file stays open between two pieces, so a
    /// client that takes nothing holds none open.
    pub(super) fn answer(self) -> Response {
        let (before, after) = (format!("{{\"number\":{},\"letter\":", self.number), "}\n");
        let length = before.len() as u64 + self.length + after.len() as u64;
        let end = self.start + self.length;
        let (path, start) = (self.path, self.start);
        let pieces = stream::try_unfold(start, move |at| {
            let (path, length) = (path.clone(), PIECE.min(end - at));
            async move {
                if length == 0 {
                    return Ok(None);
                }
                let piece = tokio::task::spawn_blocking(move || read(&path, at, length));
                let piece = piece.await.map_err(io::Error::other)??;
                Ok::<_, io::Error>(Some((piece, at + length)))
            }
        });
        let around = |text: String| stream::iter([Ok::<_, io::Error>(Bytes::from(text))]);
        let all = around(before);
        let all = stream::StreamExt::chain(all, pieces);
        let all = stream::StreamExt::chain(all, around(after.to_owned()));
        let mut response = as_json(Body::from_stream(all));
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        response
    }
}

fn read(path: &PathBuf, at: u64, length: u64) -> io::Result<Bytes> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    let mut piece = Vec::new();
    let read = file.take(length).read_to_end(&mut piece)?;
    if read as u64 == length { Ok(piece.into()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
