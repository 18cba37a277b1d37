//! The events that an output covers, and the outputs of an event.

use super::{inspected::Inspected, matcher::Matcher};
use crate::{
    event::{Event, Pointers},
    pattern::Pattern,
};

/// The events that an output takes: those of some types, and of these the ones that a matcher
/// takes.
#[derive(Debug, Clone)]
pub struct Interest {
    /// Their types.
    pub on: Vec<Pattern>,
    /// Of these, the ones that it takes.
    pub matcher: Matcher,
}

impl Interest {
    /// All events of these types.
    pub fn new(on: Vec<Pattern>) -> Self {
        Self { on, matcher: Matcher::any() }
    }

    /// True if it covers this event's type. Does not look at the event if it covers every type:
    /// that would be a cache miss, or two, for each.
    pub fn covers(&self, event: &Event) -> bool {
        self.on.iter().any(|pattern| pattern.is_any() || pattern.matches(event.ty()))
    }
}

/// Several interests, in the order in which they are asked.
///
/// ```
/// use greenroom_bus::{event::Event, router::{Condition, Interest, Interests, Matcher}};
///
/// let large = Matcher::any().field("/total".parse()?, Condition::AtLeast(100.into()));
/// let large = Interest { matcher: large, ..Interest::new(vec!["order.*".parse()?]) };
/// let interests = Interests::new(vec![large, Interest::new(vec!["**".parse()?])]);
/// let order = Event::builder("1", "/shop", "order.placed");
/// let order = order.data_json(&serde_json::json!({ "total": 7 })).build()?;
/// let takers: Vec<_> = interests.takers(&order).map(Result::unwrap).collect();
/// assert_eq!(takers, [1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Interests {
    interests: Vec<Interest>,
    /// The members of the data that their matchers may ask for.
    pointers: Pointers,
}

/// The matcher at this place panicked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatcherPanicked {
    /// The place of the interest.
    pub place: usize,
    /// The message of the panic.
    pub panic: String,
}

impl Interests {
    /// In this order.
    pub fn new(interests: Vec<Interest>) -> Self {
        let mut pointers = Pointers::default();
        interests.iter().for_each(|interest| pointers.add_all(interest.matcher.pointers()));
        Self { interests, pointers }
    }

    /// The first that covers a type, if no matcher has to be evaluated.
    pub(crate) fn plain(&self, event: &Event) -> Option<usize> {
        let first = self.interests.iter().position(|interest| interest.covers(event))?;
        self.interests[first].matcher.is_any().then_some(first)
    }

    /// The indices of those that take an event: an event goes to the first, or to all of them. The
    /// iterator is lazy.
    pub fn takers<'e>(
        &'e self,
        event: &'e Event,
    ) -> impl Iterator<Item = Result<usize, MatcherPanicked>> + use<'e> {
        let inspected = Inspected::new(event, &self.pointers);
        let covering = self.interests.iter().enumerate();
        covering.filter(|(_, interest)| interest.covers(event)).filter_map(
            move |(place, interest)| match interest.matcher.try_matches_in(&inspected) {
                Ok(takes) => takes.then_some(Ok(place)),
                Err(panic) => Some(Err(MatcherPanicked { place, panic })),
            },
        )
    }

    /// The indices of those that cover the event's type and refuse this event, each with the first
    /// condition that does not hold.
    pub fn refusing(&self, event: &Event) -> Vec<(usize, String)> {
        let covering = self.interests.iter().enumerate();
        let covering = covering.filter(|(_, interest)| interest.covers(event));
        let refuses = |(place, interest): (usize, &Interest)| {
            interest.matcher.try_mismatch(event).ok().flatten().map(|why| (place, why))
        };
        covering.filter_map(refuses).collect()
    }
}
