//! Rules about events that wait for somebody, or were given up.

use url::form_urlencoded;

use super::{
    finding::Finding,
    recent,
    seen::Seen,
    words::{count, time},
};

pub(super) fn parked(seen: &Seen, found: &mut Vec<Finding>) {
    let parked = &seen.parked;
    let Some((key, handler, since, error)) = parked.first.as_ref().filter(|_| parked.keys > 0)
    else {
        return;
    };
    let of: String = form_urlencoded::byte_serialize(key.as_bytes()).collect();
    let handler_of: String = form_urlencoded::byte_serialize(handler.as_bytes()).collect();
    let what = match parked.keys {
        1 => "A key waits for a decision".to_owned(),
        keys => format!("{} wait for a decision", count(keys, "key")),
    };
    found.push(
        Finding::warning("keys", what)
            .figures(format!(
                "{} wait; `{key}` has waited longest, for {}, with `{handler}`: {error}",
                count(parked.events, "event"),
                time(*since)
            ))
            .why(
                "Nothing of these keys is handled before somebody decides, and what waits is held \
                 in memory.",
            )
            .change(
                "Mend the cause, then have the failed event attempted anew; `skip` in place of \
                 `resume` makes a dead letter of it, `drop` of all that wait behind it as well.",
            )
            .ask(format!("POST /api/keys/resume?key={of}&handler={handler_of}"))
            .lasted(*since),
    );
}

pub(super) fn dead_letters(seen: &Seen, found: &mut Vec<Finding>) {
    let came = seen.came;
    let share = came.dead_lettered as f64 / came.settled.max(1) as f64;
    if came.dead_lettered < seen.letters_from.0 || share < seen.letters_from.1 {
        return;
    }
    found.push(
        Finding::warning("dead_letters", "Dead letters are coming in")
            .figures(format!(
                "{} of {} that were finished within the last {} ({:.1} %)",
                crate::report::grouped(came.dead_lettered),
                count(came.settled, "event"),
                time(recent::WITHIN),
                share * 100.0
            ))
            .why("Each is an event that was given up: nobody handles it unless it is replayed.")
            .change("See what they have failed of, mend that, and replay them.")
            .ask("GET /api/dead-letters"),
    );
}
