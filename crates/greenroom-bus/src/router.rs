//! Which handler an event goes to: exact type first, then the most specific pattern.

use std::collections::HashMap;

use parking_lot::RwLock;

use crate::pattern::Pattern;

/// Types whose route is remembered. More than this many different types are matched anew each time, so that a source
/// of random types cannot fill the memory.
const REMEMBERED: usize = 4_096;

/// Types with more bytes than this are not remembered, for the same reason.
const REMEMBERED_BYTES: usize = 256;

/// Routes event types to the places in a list of handlers.
///
/// A type that a handler names exactly costs one look into a table. Any other is matched against the patterns once, the
/// most specific first, and then remembered; of two patterns that are equally specific, the one added first wins.
///
/// ```
/// use greenroom_bus::router::Router;
///
/// let mut router = Router::default();
/// router.add(&"order.**".parse()?, 0)?;
/// router.add(&"order.created".parse()?, 1)?;
/// assert_eq!(router.route("order.created"), Some(1));
/// assert_eq!(router.route("order.line.added"), Some(0));
/// assert_eq!(router.route("price.changed"), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Router {
    exact: HashMap<String, usize, foldhash::fast::RandomState>,
    /// The most specific first.
    patterns: Vec<(Pattern, usize)>,
    /// What the patterns said about types that no handler names exactly.
    remembered: RwLock<HashMap<String, Option<usize>, foldhash::fast::RandomState>>,
}

/// Two handlers name the same thing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two handlers are named for {on}: each event goes to one of them only")]
pub struct HandlerExists {
    /// The type or pattern.
    pub on: String,
    /// The place of the handler that had it first.
    pub first: usize,
}

impl Router {
    /// Routes what `on` covers to the handler at `place`.
    ///
    /// # Errors
    /// When another handler has the same type or pattern.
    pub fn add(&mut self, on: &Pattern, place: usize) -> Result<(), HandlerExists> {
        let taken = |first| HandlerExists { on: on.to_string(), first };
        if let Some(exact) = on.exact() {
            if let Some(first) = self.exact.get(exact) {
                return Err(taken(*first));
            }
            self.exact.insert(exact.to_owned(), place);
            return Ok(());
        }
        if let Some((_, first)) = self.patterns.iter().find(|(pattern, _)| pattern == on) {
            return Err(taken(*first));
        }
        self.patterns.push((on.clone(), place));
        self.patterns.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.specificity()));
        Ok(())
    }

    /// The place of the handler for this type.
    pub fn route(&self, ty: &str) -> Option<usize> {
        if let Some(place) = self.exact.get(ty) {
            return Some(*place);
        }
        if self.patterns.is_empty() {
            return None;
        }
        if let Some(remembered) = self.remembered.read().get(ty) {
            return *remembered;
        }
        let found =
            self.patterns.iter().find(|(pattern, _)| pattern.matches(ty)).map(|(_, place)| *place);
        self.remember(ty, found);
        found
    }

    fn remember(&self, ty: &str, found: Option<usize>) {
        let mut remembered = self.remembered.write();
        if remembered.len() < REMEMBERED && ty.len() <= REMEMBERED_BYTES {
            remembered.insert(ty.to_owned(), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router(on: &[&str]) -> Router {
        let mut router = Router::default();
        for (place, pattern) in on.iter().enumerate() {
            router.add(&pattern.parse().unwrap(), place).unwrap();
        }
        router
    }

    #[test]
    fn r03_an_event_goes_to_the_most_specific_match() {
        let router = router(&["**", "order.*", "order.created", "order.**"]);
        for _ in 0..2 {
            assert_eq!(router.route("order.created"), Some(2));
            assert_eq!(router.route("order.paid"), Some(1));
            assert_eq!(router.route("order.line.added"), Some(3));
            assert_eq!(router.route("price"), Some(0));
        }
    }

    #[test]
    fn r08_a_type_that_nobody_names_has_no_route() {
        assert_eq!(router(&["order.*"]).route("price"), None);
        assert_eq!(router(&["order"]).route("price"), None);
    }

    #[test]
    fn random_types_do_not_fill_the_memory() {
        let router = router(&["order.*"]);
        for n in 0..2 * REMEMBERED {
            assert_eq!(router.route(&format!("order.{n}")), Some(0));
        }
        assert_eq!(router.remembered.read().len(), REMEMBERED);
        let long = format!("order.{}", "x".repeat(REMEMBERED_BYTES));
        assert_eq!(self::router(&["order.*"]).route(&long), Some(0));
    }

    #[test]
    fn of_two_equally_specific_patterns_the_first_wins() {
        assert_eq!(router(&["order.*", "*.created"]).route("order.created"), Some(0));
        assert_eq!(router(&["*.created", "order.*"]).route("order.created"), Some(0));
    }

    #[test]
    fn r01_the_same_type_or_pattern_twice_is_an_error() {
        let mut router = router(&["order.*", "price"]);
        let again = |text: &str| text.parse::<Pattern>().unwrap();
        assert_eq!(router.add(&again("price"), 7).unwrap_err().first, 1);
        assert_eq!(router.add(&again("order.*"), 7).unwrap_err().on, "order.*");
    }
}
