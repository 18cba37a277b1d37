//! Both directions of the protocol as functions of bytes, for the targets in `fuzz/`. No interface
//! for anybody else: it changes as they need it.

use super::{
    reply::{self, Reply},
    request,
};
use crate::{event::Event, handler::HandlerResult};

/// The outcome in the answer to the event with this token; `None` for a heartbeat.
///
/// # Errors
/// Why the line is not understood.
pub fn answer(line: &[u8], token: u64) -> Result<Option<HandlerResult>, String> {
    reply::read(line, std::iter::once(token)).map(|reply| match reply {
        Reply::Settled { result, .. } => Some(result),
        Reply::Nothing => None,
    })
}

/// The line that a worker is given.
pub fn request(token: u64, attempt: u32, event: &Event) -> Vec<u8> {
    let (mut line, mut rest) = (Vec::new(), Vec::new());
    request::begin(token, &mut line);
    request::write_rest(attempt, None, event, &mut rest);
    line.append(&mut rest);
    line
}
