//! A checker of its own: what went in comes out, once, in order within each subject.

use std::collections::HashMap;

use serde_json::Value;

/// How often an event may come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    None,
    Allowed,
}

/// Fails unless every event came out, in order within its subject, and nothing else did.
pub(crate) fn assert_all_in_order(went_in: &[Value], came_out: &[Value], repeats: Repeats) {
    let wanted = by_subject(went_in);
    let mut found = by_subject(came_out);
    if repeats == Repeats::Allowed {
        found.values_mut().for_each(|ids| keep_first(ids));
    }
    for (subject, ids) in &wanted {
        let found = found.get(subject).map(Vec::as_slice).unwrap_or_default();
        assert_eq!(found, ids, "the events of {subject}");
    }
    assert_eq!(found.len(), wanted.len(), "subjects that nobody put in");
}

fn by_subject(events: &[Value]) -> HashMap<&str, Vec<&str>> {
    let mut subjects: HashMap<_, Vec<_>> = HashMap::new();
    for event in events {
        let ids = subjects.entry(event["subject"].as_str().unwrap()).or_default();
        ids.push(event["id"].as_str().unwrap());
    }
    subjects
}

/// The first of each id. A repeat after later events is no disorder: at least
/// once is what is promised.
fn keep_first(ids: &mut Vec<&str>) {
    let mut seen = std::collections::HashSet::new();
    ids.retain(|id| seen.insert(*id));
}

#[test]
fn a_swap_a_loss_a_repeat_and_a_stranger_are_found() {
    let went_in = crate::run::stage::events(100);
    let fails = |came_out: &[Value], repeats| {
        let checked = || assert_all_in_order(&went_in, came_out, repeats);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(checked)).is_err()
    };
    assert!(!fails(&went_in, Repeats::None));
    let mut swapped = went_in.clone();
    swapped.swap(0, 3);
    assert!(fails(&swapped, Repeats::Allowed));
    assert!(fails(&went_in[1..], Repeats::Allowed));
    let mut repeated = went_in.clone();
    repeated.insert(7, went_in[6].clone());
    assert!(fails(&repeated, Repeats::None) && !fails(&repeated, Repeats::Allowed));
    let mut strange = went_in.clone();
    strange.push(crate::run::stage::event("x", "t", "nobody", Value::Null));
    assert!(fails(&strange, Repeats::Allowed));
}
