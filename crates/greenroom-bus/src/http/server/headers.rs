//! How large the headers of a request may be.

use hyper::http::request::Parts;

/// The largest headers, in bytes: room for the attributes of an event in binary mode, and for a
/// long key in a path.
pub const LARGEST_HEADERS: usize = 64 << 10;

/// Whether a request has more, with its first line, written as plainly as can be. Of what comes in
/// one read with their end, the connection itself takes more.
pub fn has_too_large_headers(head: &Parts) -> bool {
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    // `: ` and the end of the line.
    let lines = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    target + lines.sum::<usize>() > LARGEST_HEADERS
}
