//! Patterns over types, and conditions over what is in an event.

use fuzz::fuzz;
use greenroom_bus::{
    event::Event,
    pattern::Pattern,
    router::{Condition, Literal, Matcher},
};

use crate::seeds::{EVENTS, JSON};

const PATTERNS: &[&[u8]] =
    &[b"order.placed order.placed", b"order.** order", b"**.a.*.** b.a.c", b"* a", b"** a..b"];

/// By trying everything.
fn covers(pattern: &[&str], words: &[&str]) -> bool {
    match (pattern, words) {
        ([], []) => true,
        (["**", rest @ ..], _) => (0..=words.len()).any(|taken| covers(rest, &words[taken..])),
        (["*", rest @ ..], [_, words @ ..]) => covers(rest, words),
        ([literal, rest @ ..], [word, words @ ..]) => literal == word && covers(rest, words),
        _ => false,
    }
}

#[test]
fn patterns() {
    fuzz!(PATTERNS, &["*", "**", ".", "a", "order", ".**", " ", "**.a", "\u{fc}"], |input| {
        let text = String::from_utf8_lossy(input);
        let (written, ty) = text.split_once(' ').unwrap_or((&text, ""));
        let Ok(pattern) = written.parse::<Pattern>() else { return };
        assert_eq!(pattern.to_string(), written);
        let found = pattern.matches(ty);
        let (segments, words) = (written.split('.'), ty.split('.'));
        if segments.clone().filter(|segment| *segment == "**").count() < 5 && ty.len() < 100 {
            let (segments, words): (Vec<_>, Vec<_>) = (segments.collect(), words.collect());
            assert_eq!(found, covers(&segments, &words), "{written:?} on {ty:?}");
        }
    });
}

#[test]
fn conditions() {
    let asked: Vec<Literal> = vec![
        12.5.into(),
        (-1).into(),
        "c-7".into(),
        "2026-01-31T12:00:00Z".into(),
        "".into(),
        true.into(),
        i64::MAX.into(),
    ];
    let fields = ["subject", "time", "tenant", "size", "/total", "/lines/0/n", "/lines", "/a~1b"];
    let fields = fields.map(|field| field.parse().expect("a field"));
    fuzz!(EVENTS, JSON, |input| {
        let Ok(event) = Event::parse(input) else { return };
        for field in fields {
            let holds = |condition| Matcher::any().field(field, condition).matches(&event);
            let is_there = holds(Condition::Present(true));
            assert!(!(is_there && holds(Condition::Present(false))), "{field}");
            for literal in &asked {
                let [less, equal, greater] = [
                    holds(Condition::Less(literal.clone())),
                    holds(Condition::Equal(literal.clone())),
                    holds(Condition::Greater(literal.clone())),
                ];
                let count = usize::from(less) + usize::from(equal) + usize::from(greater);
                assert!(count <= usize::from(is_there), "{field} {literal:?}");
                let is_ordered = !matches!(*literal, ref truth if *truth == Literal::from(true));
                if is_ordered {
                    assert_eq!(holds(Condition::AtMost(literal.clone())), less || equal);
                    assert_eq!(holds(Condition::AtLeast(literal.clone())), greater || equal);
                }
            }
        }
    });
}
