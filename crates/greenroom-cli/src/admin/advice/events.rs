//! Rules about events that wait for an operator or became dead letters.

use greenroom_bus::engine::ToldLetter;
use greenroom_config::plural;
use url::form_urlencoded;

use super::{
    finding::Finding,
    recent,
    seen::{LettersSeen, ParkedFirst, Seen},
    words::time,
};

/// Fewer dead letters per minute are not worth reporting.
const FEW: u64 = 5;

pub(super) fn parked(seen: &Seen, found: &mut Vec<Finding>) {
    let parked = &seen.parked;
    let Some(ParkedFirst { key, handler, since, error, event }) =
        parked.first.as_ref().filter(|_| parked.keys > 0)
    else {
        return;
    };
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("key", key).append_pair("handler", handler).append_pair("event", event);
    let what = match parked.keys {
        1 => "A key waits for a decision".to_owned(),
        keys => format!("{} wait for a decision", plural(keys as usize, "key")),
    };
    found.push(
        Finding::warning("parked_keys", "keys", what)
            .figures(format!(
                "{} wait; `{key}` has waited longest, for {}, with `{handler}`, behind the event \
                 `{event}`: {error}",
                plural(parked.events as usize, "event"),
                time(*since)
            ))
            .why(
                "No event of these keys is handled until an operator decides, and memory holds \
                 those that wait.",
            )
            .change(
                "Fix the cause, then retry the failed event; `skip` instead of `resume` makes it a \
                 dead letter, and `drop` also all events behind it.",
            )
            .ask(format!("POST /api/keys/resume?{}", query.finish()))
            .lasted(*since),
    );
}

pub(super) fn dead_letters(seen: &Seen, found: &mut Vec<Finding>) {
    let LettersSeen { came, told, share: most, .. } = &seen.letters;
    let share = came.dead_lettered as f64 / came.settled.max(1) as f64;
    if came.dead_lettered < FEW || share < *most {
        return;
    }
    found.push(
        Finding::warning("dead_letters", "dead_letters", "Dead letters are coming in")
            .figures(format!(
                "{} of {} finished within the last {} ({:.1} %){}",
                crate::report::grouped(came.dead_lettered),
                plural(came.settled as usize, "event"),
                time(recent::WITHIN),
                share * 100.0,
                told.as_ref().map(error_text).unwrap_or_default()
            ))
            .why("Each is an event that was given up: it is not handled unless it is replayed.")
            .change("Find out why they failed, fix that, and replay them.")
            .ask("GET /api/dead-letters"),
    );
}

/// The error of one of them.
fn error_text(letter: &ToldLetter) -> String {
    let reason = letter.reason.as_str().replace('_', " ");
    let of = letter.handler.as_ref().map(|handler| format!(" of `{handler}`"));
    format!("; one of them{}: {reason}: {}", of.unwrap_or_default(), letter.error)
}
