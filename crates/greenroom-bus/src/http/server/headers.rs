//! How large the headers of a request may be.

use hyper::http::request::Parts;

/// The largest headers, in bytes: room for the attributes of an event in binary mode, and for a
/// long key in a path.
pub const LARGEST_HEADERS: usize = 64 << 10;

/// Whether the headers of a request exceed the limit, with its first line, in their plainest form.
/// The connection itself accepts more if it arrives in one read together with their end.
pub fn has_too_large_headers(head: &Parts) -> bool {
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    // `: ` and the end of the line.
    let lines = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    target + lines.sum::<usize>() > LARGEST_HEADERS
}
