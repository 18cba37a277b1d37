//! Both directions of the protocol as functions of bytes, for the targets in `fuzz/`. No interface
//! for anybody else: it changes as they need it.

use super::{
    reply::{self, Reply},
    request,
};
use crate::{event::Event, handler::HandlerResult};

/// What the answer to the event with this token says; `None` for a heartbeat.
///
/// # Errors
/// Why the line is not understood.
pub fn answer(line: &[u8], token: u64) -> Result<Option<HandlerResult>, String> {
    reply::read(line, token).map(|reply| match reply {
        Reply::Settled(result) => Some(result),
        Reply::Heartbeat => None,
    })
}

/// The line that a worker is given.
pub fn request(token: u64, attempt: u32, event: &Event) -> Vec<u8> {
    let mut line = Vec::new();
    request::write(token, attempt, event, &mut line);
    line
}
