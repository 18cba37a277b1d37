//! The table from an event's type to the handlers that may take it.
//!
//! ```text
//! type ──▶ named exactly by some handler? ──▶ its list ──▶ no matcher, nobody else: that handler
//!     └──▶ seen before? ────────────────────▶ its list ─┴▶ otherwise each in the list is asked, the most specific first
//!     └──▶ every pattern is tried, once ────▶ its list
//! ```
//!
//! The price of an event whose type a handler names, or that was seen before, is one look into a
//! table, however many pools and handlers there are.

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use parking_lot::RwLock;

use super::{inspected::Inspected, matcher::Matcher};
use crate::{
    event::{Event, Pointers},
    pattern::Pattern,
};

/// Types whose handlers are cached. Further types are matched each time, so that a source of random
/// types cannot fill the memory.
const REMEMBERED: usize = 4_096;

/// Types with more bytes than this are not remembered, for the same reason.
const REMEMBERED_BYTES: usize = 256;

/// Where an event goes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Route {
    /// To the handler at this place.
    One(usize),
    /// To each of these, in this order, each with an outcome of its own.
    Several(Vec<usize>),
    /// No handler is named for its type.
    NoHandler,
    /// Handlers are named for its type, and none of their matchers takes it.
    Rejected,
    /// The matcher of the handler at this place panicked.
    Panicked {
        /// The place of the handler.
        handler: usize,
        /// The message of the panic.
        panic: String,
    },
}

/// A handler that is named for the type of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Considered {
    /// Its place.
    pub handler: usize,
    /// The most specific type or pattern by which it is.
    pub on: String,
    /// Whether it is marked so.
    pub fan_out: bool,
    /// Its result.
    pub choice: Choice,
}

/// Whether a handler gets an event, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Choice {
    /// It gets the event.
    Takes,
    /// It would, but another one is asked first and does.
    Shadowed,
    /// Its matcher refuses the event: the first condition that does not hold.
    Refuses(String),
    /// Its matcher panicked, so no handler gets the event. The message of the panic.
    Panicked(String),
    /// It is not asked.
    NotAsked,
}

/// The input of the table: one handler, at its index.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) on: Vec<Pattern>,
    pub(super) matcher: Matcher,
    pub(super) fan_out: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Routes {
    rules: Vec<Rule>,
    exact: HashMap<String, Candidates, foldhash::fast::RandomState>,
    /// The most specific first; among equally specific ones, the one added first.
    patterns: Vec<(Pattern, usize)>,
    /// The same for types that no handler names exactly.
    remembered: RwLock<HashMap<String, Arc<Candidates>, foldhash::fast::RandomState>>,
}

/// The handlers for one type, the most specific first, each once.
#[derive(Debug)]
struct Candidates {
    places: Box<[usize]>,
    /// The members of the data that their matchers may ask for.
    pointers: Pointers,
    /// The handler that gets every event of this type alone: no matcher has to be evaluated.
    always: Option<Route>,
}

impl Routes {
    pub(super) fn new(rules: Vec<Rule>) -> Self {
        let mut routes = Self { rules, ..Self::default() };
        let of = |(place, rule): (usize, &Rule)| {
            rule.on.iter().map(|on| (on.clone(), place)).collect::<Vec<_>>()
        };
        let all: Vec<(Pattern, usize)> = routes.rules.iter().enumerate().flat_map(of).collect();
        let (exact, mut patterns): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(on, _)| on.exact().is_some());
        patterns.sort_by_key(|(pattern, _)| Reverse(pattern.specificity()));
        routes.patterns = patterns;
        let mut named: HashMap<String, Vec<usize>, foldhash::fast::RandomState> =
            HashMap::default();
        for (on, place) in exact {
            named.entry(on.to_string()).or_default().push(place);
        }
        routes.exact = named
            .into_iter()
            .map(|(ty, places)| {
                let candidates = routes.candidates(places, &ty);
                (ty, candidates)
            })
            .collect();
        routes
    }

    /// The handlers that name the type exactly, and those whose patterns cover it.
    fn candidates(&self, mut places: Vec<usize>, ty: &str) -> Candidates {
        for (pattern, place) in &self.patterns {
            if !places.contains(place) && pattern.matches(ty) {
                places.push(*place);
            }
        }
        let always = match places[..] {
            [] => Some(Route::NoHandler),
            [first, ..] => {
                let alone = places.len() == 1 || !self.rules[first].fan_out;
                let others = places[1..].iter().any(|place| self.rules[*place].fan_out);
                (self.rules[first].matcher.is_any() && alone && !others)
                    .then_some(Route::One(first))
            }
        };
        let mut pointers = Pointers::default();
        places.iter().for_each(|place| pointers.add_all(self.rules[*place].matcher.pointers()));
        Candidates { places: places.into(), pointers, always }
    }

    pub(crate) fn route(&self, event: &Event) -> Route {
        let ty = event.ty();
        if let Some(candidates) = self.exact.get(ty) {
            return candidates.always.clone().unwrap_or_else(|| self.choose(candidates, event));
        }
        if self.patterns.is_empty() {
            return Route::NoHandler;
        }
        let remembered = match self.remembered.read().get(ty) {
            Some(candidates) => match &candidates.always {
                Some(route) => return route.clone(),
                None => Some(candidates.clone()),
            },
            None => None,
        };
        // Matchers are asked without the lock.
        let candidates = remembered.unwrap_or_else(|| self.learn(ty));
        candidates.always.clone().unwrap_or_else(|| self.choose(&candidates, event))
    }

    fn learn(&self, ty: &str) -> Arc<Candidates> {
        let found = Arc::new(self.candidates(Vec::new(), ty));
        let mut remembered = self.remembered.write();
        if remembered.len() < REMEMBERED && ty.len() <= REMEMBERED_BYTES {
            remembered.insert(ty.to_owned(), found.clone());
        }
        found
    }

    /// The handlers registered for the event's type, in the order in which they are tried, and the
    /// result of each.
    pub(super) fn explain(&self, event: &Event) -> Vec<Considered> {
        let places = match self.exact.get(event.ty()) {
            Some(candidates) => candidates.places.clone(),
            None => self.candidates(Vec::new(), event.ty()).places,
        };
        let route = self.route(event);
        places.iter().map(|place| self.considered(event, *place, &route)).collect()
    }

    fn considered(&self, event: &Event, handler: usize, route: &Route) -> Considered {
        let rule = &self.rules[handler];
        let on = rule.on.iter().filter(|on| on.matches(event.ty()));
        let on = on.max_by_key(|on| on.specificity()).map(ToString::to_string);
        let is_taken = match route {
            Route::One(place) => *place == handler,
            Route::Several(places) => places.contains(&handler),
            _ => false,
        };
        let choice = match route {
            _ if is_taken => Choice::Takes,
            Route::Panicked { handler: place, panic } if *place == handler => {
                Choice::Panicked(panic.clone())
            }
            Route::Panicked { .. } => Choice::NotAsked,
            _ => match rule.matcher.try_mismatch(event) {
                Ok(Some(mismatch)) => Choice::Refuses(mismatch),
                Ok(None) => Choice::Shadowed,
                // It was not tried, so its panic would not occur in a run either.
                Err(_) => Choice::NotAsked,
            },
        };
        Considered { handler, on: on.unwrap_or_default(), fan_out: rule.fan_out, choice }
    }

    /// The most specific one that takes the event, and all marked `fan_out` that take it.
    fn choose(&self, candidates: &Candidates, event: &Event) -> Route {
        let (mut taken, mut has_main) = (Vec::new(), false);
        let inspected = Inspected::new(event, &candidates.pointers);
        for place in &candidates.places {
            let rule = &self.rules[*place];
            if has_main && !rule.fan_out {
                continue;
            }
            match rule.matcher.try_matches_in(&inspected) {
                Ok(false) => {}
                Ok(true) => {
                    has_main |= !rule.fan_out;
                    taken.push(*place);
                }
                Err(panic) => return Route::Panicked { handler: *place, panic },
            }
        }
        match taken[..] {
            [] => Route::Rejected,
            [one] => Route::One(one),
            _ => Route::Several(taken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::Condition;

    fn rule(on: &[&str]) -> Rule {
        let on = on.iter().map(|on| on.parse().unwrap()).collect();
        Rule { on, matcher: Matcher::any(), fan_out: false }
    }

    fn routes(on: &[&str]) -> Routes {
        Routes::new(on.iter().map(|on| rule(&[on])).collect())
    }

    fn event(ty: &str) -> Event {
        Event::builder("1", "/s", ty).build().unwrap()
    }

    #[test]
    fn r03_an_event_goes_to_the_most_specific_match() {
        let routes = routes(&["**", "order.*", "order.created", "order.**"]);
        for _ in 0..2 {
            assert_eq!(routes.route(&event("order.created")), Route::One(2));
            assert_eq!(routes.route(&event("order.paid")), Route::One(1));
            assert_eq!(routes.route(&event("order.line.added")), Route::One(3));
            assert_eq!(routes.route(&event("price")), Route::One(0));
        }
    }

    #[test]
    fn r08_a_type_that_nobody_names_has_no_route() {
        assert_eq!(routes(&["order.*"]).route(&event("price")), Route::NoHandler);
        assert_eq!(routes(&["order"]).route(&event("price")), Route::NoHandler);
        assert_eq!(routes(&[]).route(&event("price")), Route::NoHandler);
    }

    #[test]
    fn random_types_do_not_fill_the_memory() {
        let routes = routes(&["order.*"]);
        for n in 0..2 * REMEMBERED {
            assert_eq!(routes.route(&event(&format!("order.{n}"))), Route::One(0));
        }
        assert_eq!(routes.remembered.read().len(), REMEMBERED);
        let long = format!("order.{}", "x".repeat(REMEMBERED_BYTES));
        let routes = self::routes(&["order.*"]);
        assert_eq!(routes.route(&event(&long)), Route::One(0));
        assert!(routes.remembered.read().is_empty());
    }

    #[test]
    fn of_two_equally_specific_patterns_the_first_wins() {
        let created = event("order.created");
        assert_eq!(routes(&["order.*", "*.created"]).route(&created), Route::One(0));
        assert_eq!(routes(&["*.created", "order.*"]).route(&created), Route::One(0));
    }

    #[test]
    fn r03_an_event_that_a_matcher_refuses_goes_to_the_next_less_specific_one() {
        let eu = Matcher::any().subject("eu-*".parse().unwrap());
        let exact = Rule { matcher: eu.clone(), ..rule(&["order.created"]) };
        let pattern = Rule { matcher: eu, ..rule(&["order.*"]) };
        let subject = |subject: &str| {
            Event::builder("1", "/s", "order.created").subject(subject).build().unwrap()
        };
        let routes = Routes::new(vec![rule(&["**"]), pattern, exact]);
        assert_eq!(routes.route(&subject("eu-1")), Route::One(2));
        assert_eq!(routes.route(&subject("us-1")), Route::One(0));
    }

    #[test]
    fn r08_an_event_that_every_matcher_refuses_is_rejected() {
        let never = Rule { matcher: Matcher::any().when(|_| false), ..rule(&["a", "b.*"]) };
        let routes = Routes::new(vec![never]);
        assert_eq!(routes.route(&event("a")), Route::Rejected);
        assert_eq!(routes.route(&event("b.c")), Route::Rejected);
        assert_eq!(routes.route(&event("c")), Route::NoHandler);
    }

    #[test]
    fn r03_handlers_marked_fan_out_get_the_event_as_well() {
        let fan = |on: &[&str]| Rule { fan_out: true, ..rule(on) };
        let routes = Routes::new(vec![fan(&["**"]), rule(&["order.*"]), fan(&["order.*", "a"])]);
        assert_eq!(routes.route(&event("order.paid")), Route::Several(vec![1, 2, 0]));
        assert_eq!(routes.route(&event("price")), Route::One(0));
        assert_eq!(routes.route(&event("a")), Route::Several(vec![2, 0]));
    }

    #[test]
    fn r03_fan_out_asks_the_matcher_of_each() {
        let never = Matcher::any().when(|_| false);
        let fan = Rule { fan_out: true, matcher: never.clone(), ..rule(&["**"]) };
        let main = Rule { matcher: never, ..rule(&["a"]) };
        let audit = Rule { fan_out: true, ..rule(&["**"]) };
        let routes = Routes::new(vec![fan, main, audit]);
        assert_eq!(routes.route(&event("a")), Route::One(2), "only the audit takes it");
    }

    #[test]
    fn c21_an_event_goes_by_what_is_in_it_and_each_handler_says_what_came_of_it() {
        let above = |total: i32| {
            Matcher::any().field("/total".parse().unwrap(), Condition::Greater(total.into()))
        };
        let rules = vec![
            Rule { matcher: above(100), ..rule(&["order"]) },
            Rule { matcher: above(10), ..rule(&["order"]) },
            rule(&["order.**"]),
            Rule { fan_out: true, matcher: above(50), ..rule(&["**"]) },
        ];
        let routes = Routes::new(rules);
        let order = |total: i32| {
            let data = serde_json::json!({ "total": total });
            Event::builder("1", "/s", "order").data_json(&data).build().unwrap()
        };
        for _ in 0..2 {
            assert_eq!(routes.route(&order(200)), Route::Several(vec![0, 3]));
            assert_eq!(routes.route(&order(100)), Route::Several(vec![1, 3]));
            assert_eq!(routes.route(&order(20)), Route::One(1));
            assert_eq!(routes.route(&order(5)), Route::One(2));
            assert_eq!(routes.route(&event("order")), Route::One(2), "without data");
        }
        let choices: Vec<_> = routes.explain(&order(100)).into_iter().map(|c| c.choice).collect();
        let refuses = Choice::Refuses("where /total (greater)".to_owned());
        assert_eq!(choices, [refuses, Choice::Takes, Choice::Shadowed, Choice::Takes]);
        let of = |place: usize| routes.explain(&order(1))[place].on.clone();
        assert_eq!([of(0), of(2), of(3)], ["order", "order.**", "**"]);
    }

    #[test]
    fn c21_no_handler_is_asked_where_the_first_takes_all() {
        let picky = Matcher::any().field("/a".parse().unwrap(), Condition::Present(true));
        let routes = Routes::new(vec![
            rule(&["a"]),
            Rule { matcher: picky.clone(), ..rule(&["a", "b"]) },
            Rule { matcher: picky, ..rule(&["**"]) },
        ]);
        assert_eq!(routes.exact["a"].always, Some(Route::One(0)));
        assert_eq!(routes.exact["b"].always, None);
    }

    #[test]
    fn a_matcher_that_panics_is_named() {
        let panics = Matcher::any().when(|event| panic!("no {}", event.id()));
        let routes = Routes::new(vec![Rule { matcher: panics, ..rule(&["a"]) }]);
        let expected = Route::Panicked { handler: 0, panic: "no 1".to_owned() };
        assert_eq!(routes.route(&event("a")), expected);
    }

    #[test]
    fn r04_an_exact_type_is_one_look_into_a_table_however_many_handlers_there_are() {
        let names: Vec<String> = (0..5_000).map(|n| format!("type.n{n}")).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).chain(["type.*"]).collect();
        let routes = routes(&all);
        assert!(routes.exact.values().all(|candidates| candidates.always.is_some()));
        assert_eq!(routes.route(&event("type.n4711")), Route::One(4_711));
        assert!(routes.remembered.read().is_empty(), "no pattern was tried");
    }
}
