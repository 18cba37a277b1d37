//! The request of a client: the letters, their order, or the property to count them by. The same
//! for a store and for a file.

use axum::http::StatusCode;
use greenroom_bus::store::letters::{By, Filter, Order};
use greenroom_config::Word;
use url::form_urlencoded;

use crate::admin::{
    answer::Refusal,
    query::{Query, not_a_number},
};

/// Letters of one answer, by default, and the maximum.
const LIMIT: usize = 50;
pub(in crate::admin) const MOST: usize = 1_000;

/// The path of all requests about letters.
pub(in crate::admin) const AT: &str = "/api/dead-letters";

/// The filters of letters.
pub(in crate::admin) const FILTERS: [&str; 11] =
    ["id", "reason", "pool", "handler", "input", "key", "share", "event", "group", "since", "upto"];

/// A page of letters, or the property that they are counted by.
pub(in crate::admin) struct Wanted {
    pub(in crate::admin) filter: Filter,
    pub(in crate::admin) order: Order,
    /// Those after the letter of this number, in that order.
    pub(in crate::admin) after: u64,
    pub(in crate::admin) limit: usize,
    pub(in crate::admin) by: Option<By>,
    query: Query,
}

impl Wanted {
    /// # Errors
    /// The query contains an unknown name or value.
    pub(in crate::admin) fn parse(query: Option<String>) -> Result<Self, Refusal> {
        let known: Vec<_> = FILTERS.into_iter().chain(["after", "limit", "order", "by"]).collect();
        let query = Query::parse(query, AT, &known)?;
        let wrong =
            |what: String, next: &str| Refusal::new(StatusCode::BAD_REQUEST, what, AT, next);
        let by = query.one("by").map(|word| {
            let next = "count them by group, reason or handler";
            By::of(word)
                .ok_or_else(|| wrong(format!("letters cannot be counted by {word:?}"), next))
        });
        let order = match query.one("order") {
            None | Some("oldest") => Order::Oldest,
            Some("newest") => Order::Newest,
            Some(other) => {
                let what = format!("letters cannot be listed {other:?}");
                return Err(wrong(what, "say `newest` or `oldest`"));
            }
        };
        Ok(Self {
            filter: filter(&query)?,
            order,
            after: query.number("after", AT)?.unwrap_or(order.start()),
            limit: query.number("limit", AT)?.unwrap_or(LIMIT).clamp(1, MOST),
            by: by.transpose()?,
            query,
        })
    }

    /// The request for the letters after this one.
    pub(in crate::admin) fn next_page(&self, after: u64) -> String {
        let mut next = form_urlencoded::Serializer::new(String::new());
        next.append_pair("after", &after.to_string());
        next.append_pair("limit", &self.limit.to_string());
        for name in FILTERS.into_iter().chain(["order"]) {
            self.query.all(name).for_each(|value| {
                next.append_pair(name, value);
            });
        }
        format!("{AT}?{}", next.finish())
    }
}

pub(in crate::admin) fn filter(query: &Query) -> Result<Filter, Refusal> {
    let text = |name| query.one(name).map(str::to_owned);
    let mut ids = Vec::new();
    for id in query.all("id").flat_map(|ids| ids.split(',')) {
        ids.push(id.parse().map_err(|_| not_a_number("a dead letter", id, AT))?);
    }
    let since = query.one("since").map(|text| {
        Filter::moment(text).ok_or_else(|| {
            let what = format!("`since` is a time such as 2026-01-31T12:00:00Z, not {text:?}");
            Refusal::new(StatusCode::BAD_REQUEST, what, AT, "write it in RFC 3339")
        })
    });
    Ok(Filter {
        ids,
        reason: text("reason"),
        pool: text("pool"),
        handler: text("handler"),
        input: text("input"),
        key: text("key"),
        share: text("share"),
        event: text("event"),
        group: text("group"),
        since: since.transpose()?,
        upto: query.number("upto", AT)?,
    })
}
