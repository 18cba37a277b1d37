//! The byte order mark, which some editors and libraries put before a text.

/// In UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The bytes after a byte order mark, if there is one. A reader of JSON may ignore it (RFC 8259,
/// 8.1), and all readers of JSON here do.
pub(crate) fn skip_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}
