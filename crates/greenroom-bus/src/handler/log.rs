//! `log`: one line in the log for each event, and nothing on the outputs.
//!
//! The line carries type, subject and id at `info`; the data follows at `debug` only, since it
//! may be large or private.

use std::borrow::Cow;

use greenroom_config::{Listing, options};

use crate::{
    event::{Data, Event},
    excerpt::excerpt,
};

use super::{
    Attempt, Handler, HandlerFactory, HandlerKind, Handling, Makes, OpenHandler, Outputs, handler,
};

/// How many bytes of an event's data one line shows.
const SHOWN: usize = 4096;

/// Its line in the registry.
pub const HANDLER: Listing<dyn HandlerKind> =
    handler::<LogHandlerOptions>("log", "The event is written to the log.");

options! {
    /// Has no settings.
    pub struct LogHandlerOptions = "this handler" {}
}

impl HandlerKind for LogHandlerOptions {
    fn makes(&self) -> Makes {
        Makes::Nothing
    }

    fn open(&self) -> Result<OpenHandler, String> {
        Ok(OpenHandler::fixed(LogFactory))
    }
}

/// Builds [`Log`] handlers; they have no state and no settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogFactory;

/// Writes a line for each event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Log;

impl HandlerFactory for LogFactory {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(Log))
    }
}

impl Handler for Log {
    fn handle<'a>(&'a mut self, event: &'a Event, attempt: &'a Attempt) -> Handling<'a> {
        let subject = event.subject().map_or("-".into(), |subject| excerpt(subject));
        let (ty, id) = (excerpt(event.ty()), excerpt(event.id()));
        let trace_id = event.trace_id();
        tracing::info!(handler = %attempt.handler, r#type = &*ty, subject = &*subject, id = &*id, trace_id, "event");
        if tracing::enabled!(tracing::Level::DEBUG) {
            let data = shown(event.data());
            tracing::debug!(handler = %attempt.handler, id = &*id, trace_id, %data, "data");
        }
        Handling::Done(Ok(Outputs::None))
    }
}

/// The data as text for people, cut where it is long.
fn shown(data: &Data) -> Cow<'_, str> {
    let text = match data {
        Data::None => return Cow::Borrowed("none"),
        Data::Binary(bytes) => return Cow::Owned(format!("{} bytes", bytes.len())),
        Data::Payload(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => return Cow::Owned(format!("{} bytes", bytes.len())),
        },
        Data::Json(raw) => raw.get(),
    };
    match text.len() {
        0..=SHOWN => Cow::Borrowed(text),
        _ => Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(SHOWN)])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::samples;

    #[test]
    fn u03_log_writes_a_line_and_hands_nothing_on() {
        let (event, attempt) = (samples::event("a", "{\"n\":1}"), samples::attempt());
        let recorder = samples::Recorder::default();
        let result = tracing::subscriber::with_default(recorder.clone(), || {
            matches!(Log.handle(&event, &attempt), Handling::Done(Ok(Outputs::None)))
        });
        assert!(result);
        let expected = [
            "INFO message=event handler=sample type=\"sample.made\" subject=\"s\" id=\"a\"",
            "DEBUG message=data handler=sample id=\"a\" data={\"n\":1}",
        ];
        assert_eq!(recorder.lines(), expected);
    }

    #[test]
    fn o06_both_lines_have_the_trace_id_of_their_event() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let event = samples::event("a", "1").after(parent.parse().unwrap());
        let recorder = samples::Recorder::default();
        tracing::subscriber::with_default(recorder.clone(), || {
            let _ = Log.handle(&event, &samples::attempt());
        });
        let traced = r#"id="a" trace_id="4bf92f3577b34da6a3ce929d0e0e4736""#;
        let lines = recorder.lines();
        assert!(lines.len() == 2 && lines.iter().all(|line| line.contains(traced)), "{lines:?}");
    }

    #[test]
    fn data_in_the_log_is_cut_where_it_is_long() {
        let short = samples::event("a", "{\"n\":1}");
        assert_eq!(shown(short.data()), "{\"n\":1}");
        let long = samples::event("a", &format!("\"{}\"", "ü".repeat(SHOWN)));
        let text = shown(long.data());
        assert!(text.len() <= SHOWN + '…'.len_utf8() && text.ends_with('…'), "{}", text.len());
    }
}
