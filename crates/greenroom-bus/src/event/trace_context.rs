//! A place in a distributed trace, as W3C Trace Context writes it: the attribute `traceparent`.

use std::{
    fmt,
    str::{self, FromStr},
};

use super::{
    causation::{TRACEPARENT, TRACESTATE},
    model::{Event, ExtensionValue},
};

/// The flag of a trace that is recorded.
const SAMPLED: u8 = 1;

/// The length of a `traceparent` of version 00.
const LENGTH: usize = 55;

/// A span of a trace, as the parent of later ones (W3C Trace Context, level 1).
///
/// ```
/// use greenroom_bus::event::TraceContext;
///
/// let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let context: TraceContext = text.parse().unwrap();
/// assert!(context.sampled);
/// assert_eq!(context.to_string(), text);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// Shared by all spans of the trace. Never 0.
    pub trace_id: u128,
    /// The span. Never 0.
    pub span_id: u64,
    /// Whether the trace is recorded: receivers do the same.
    pub sampled: bool,
}

/// A text that is no `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no traceparent: two, 32, 16 and two hexadecimal digits with `-` between them")]
pub struct NoTraceContext;

impl FromStr for TraceContext {
    type Err = NoTraceContext;

    /// Reads `traceparent`. From an unknown later version, the part that it shares with version 00.
    fn from_str(text: &str) -> Result<Self, NoTraceContext> {
        Self::parse(text.as_bytes()).ok_or(NoTraceContext)
    }
}

impl TraceContext {
    fn parse(text: &[u8]) -> Option<Self> {
        let (known, rest) = text.split_at_checked(LENGTH)?;
        let version = hex(&known[..2])?;
        let may_be_longer = version > 0 && rest.first() == Some(&b'-');
        if version == 0xff || !(rest.is_empty() || may_be_longer) {
            return None;
        }
        if [known[2], known[35], known[52]] != [b'-'; 3] {
            return None;
        }
        let (trace_id, span_id) = (hex(&known[3..35])?, hex(&known[36..52])? as u64);
        let flags = hex(&known[53..])? as u8;
        (trace_id != 0 && span_id != 0).then_some(Self {
            trace_id,
            span_id,
            sampled: flags & SAMPLED != 0,
        })
    }
}

/// Digits as W3C writes them: lower case.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number: u128, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace_id, span_id, sampled } = self;
        write!(f, "00-{trace_id:032x}-{span_id:016x}-{:02x}", u8::from(*sampled))
    }
}

/// The trace in the plain headers of a message, in the format of W3C Trace Context, which
/// instrumented clients of HTTP and of brokers add.
#[derive(Debug, Clone, Copy)]
pub struct TraceHeaders<'h> {
    parent: &'h str,
    state: Option<&'h str>,
}

impl<'h> TraceHeaders<'h> {
    /// The trace in these headers, if they have a valid `traceparent`.
    pub fn find(headers: &[(&str, &'h [u8])]) -> Option<Self> {
        let text = |wanted: &str| {
            let mut named = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
            named.next().and_then(|(_, value)| str::from_utf8(value).ok())
        };
        let parent = text(TRACEPARENT)?;
        TraceContext::parse(parent.as_bytes())?;
        Some(Self { parent, state: text(TRACESTATE).filter(|state| !state.is_empty()) })
    }
}

impl Event {
    /// This event in the trace of its message; an event that has a trace of its own keeps it.
    pub fn with_trace(mut self, trace: TraceHeaders<'_>) -> Self {
        if self.extension(TRACEPARENT).is_none() {
            self.change(|inner| {
                inner.extensions.retain(|(name, _)| **name != *TRACESTATE);
                inner.extensions.push((TRACEPARENT.into(), trace.parent.into()));
                let state = trace.state.map(|state| (TRACESTATE.into(), state.into()));
                inner.extensions.extend(state);
            });
        }
        self
    }

    /// Its position in a trace, from its attribute `traceparent`. An invalid one counts as missing,
    /// as W3C requires.
    pub fn trace_context(&self) -> Option<TraceContext> {
        match self.extension(TRACEPARENT)? {
            ExtensionValue::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The id of its trace as log lines and dead letters show it: 32 hexadecimal digits. `None`
    /// where [`trace_context`](Self::trace_context) is.
    pub fn trace_id(&self) -> Option<&str> {
        let ExtensionValue::Text(text) = self.extension(TRACEPARENT)? else { return None };
        TraceContext::parse(text.as_bytes())?;
        text.get(3..35)
    }

    /// This event as a child of `span`: with that `traceparent` in place of its own. Its
    /// `tracestate` is kept within the same trace, and dropped in another.
    pub fn after(mut self, span: TraceContext) -> Self {
        let stays = self.trace_context().is_some_and(|own| own.trace_id == span.trace_id);
        self.change(|inner| {
            let goes = |name: &str| name == TRACEPARENT || (name == TRACESTATE && !stays);
            inner.extensions.retain(|(name, _)| !goes(name));
            inner.extensions.push((TRACEPARENT.into(), span.to_string().into()));
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn event(traceparent: &str) -> Event {
        let event = Event::builder("1", "/shop", "order.placed");
        event.extension(TRACEPARENT, traceparent).extension(TRACESTATE, "a=1").build().unwrap()
    }

    #[test]
    fn o06_a_traceparent_is_read_as_w3c_says_and_anything_else_is_none() {
        let context: TraceContext = GOOD.parse().unwrap();
        assert_eq!(context.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((context.span_id, context.sampled), (0x00f0_67aa_0ba9_02b7, true));
        // Other flags are not known; of a later version, what is behind is not known.
        for (from, to, sampled) in
            [("-01", "-02", false), ("-01", "-03", true), ("00-4b", "01-4b", true)]
        {
            let context: TraceContext = GOOD.replacen(from, to, 1).parse().unwrap();
            assert_eq!(context.sampled, sampled);
        }
        assert!(
            format!("{}-more", GOOD.replacen("00-4b", "cc-4b", 1)).parse::<TraceContext>().is_ok()
        );
        for bad in [
            "",
            "00-ab-cd-01",
            &GOOD[..54],
            &format!("{GOOD}-more"),
            &format!("{}more", GOOD.replacen("00-4b", "cc-4b", 1)),
            &GOOD.replacen("00-4b", "ff-4b", 1),
            &GOOD.replacen("4bf9", "4BF9", 1),
            &GOOD.replacen("4bf9", "4gf9", 1),
            &GOOD.replace('-', "_"),
            &GOOD.replacen("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32), 1),
            &GOOD.replacen("00f067aa0ba902b7", &"0".repeat(16), 1),
            "00-4bf92f3577b34da6a3ce929d0e0e473é-0f067aa0ba902b7-01",
        ] {
            assert_eq!(bad.parse::<TraceContext>(), Err(NoTraceContext), "{bad}");
            assert_eq!(event("x").trace_context(), None);
        }
    }

    #[test]
    fn o06_the_trace_id_is_that_of_a_valid_traceparent() {
        assert_eq!(event(GOOD).trace_id(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert_eq!(event("00-ab-cd-01").trace_id(), None);
        let number = Event::builder("1", "/shop", "order.placed").extension(TRACEPARENT, 7_i64);
        assert_eq!(number.build().unwrap().trace_id(), None);
    }

    #[test]
    fn o06_a_plain_traceparent_is_that_of_an_event_without_one() {
        let state = ("TraceState", &b"a=1"[..]);
        let trace = |parent: &'static str| [("TraceParent", parent.as_bytes()), state];
        let headers = trace(GOOD);
        let found = TraceHeaders::find(&headers).unwrap();
        let plain = Event::builder("1", "/shop", "order.placed").build().unwrap();
        let traced = plain.with_trace(found);
        assert_eq!(traced.extension(TRACEPARENT), Some(&GOOD.into()));
        assert_eq!(traced.extension(TRACESTATE), Some(&"a=1".into()));
        let own = GOOD.replacen("4bf9", "5bf9", 1);
        assert_eq!(event(&own).with_trace(found), event(&own), "its own stays");
        assert!(TraceHeaders::find(&trace("00-ab-cd-01")).is_none());
        assert!(TraceHeaders::find(&[state]).is_none());
    }

    #[test]
    fn o06_an_event_after_a_span_keeps_its_tracestate_within_its_trace_only() {
        let own = event(GOOD).trace_context().unwrap();
        let within = event(GOOD).after(TraceContext { span_id: 7, ..own });
        assert_eq!(within.trace_context(), Some(TraceContext { span_id: 7, ..own }));
        assert!(within.extension(TRACESTATE).is_some());
        for outside in [event(GOOD), event("malformed")] {
            let outside = outside.after(TraceContext { trace_id: 1, ..own });
            assert_eq!(outside.trace_context().map(|context| context.trace_id), Some(1));
            assert_eq!(outside.extension(TRACESTATE), None);
            assert_eq!(outside.extensions().filter(|(name, _)| *name == TRACEPARENT).count(), 1);
        }
    }
}
