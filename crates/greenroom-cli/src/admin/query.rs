//! The query part of a request's URL.

use std::str::FromStr;

use axum::http::StatusCode;
use url::form_urlencoded;

use super::answer::Refusal;

/// The query part of a URL.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// # Errors
    /// An unknown name, which would be ignored otherwise.
    pub(crate) fn parse(query: Option<String>, at: &str, known: &[&str]) -> Result<Self, Refusal> {
        let query = query.unwrap_or_default();
        let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        match pairs.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(Self(pairs)),
            Some((name, _)) => {
                let what = format!("`{name}` is not a parameter of this request");
                let next = format!("it knows {}", known.join(", "));
                Err(Refusal::new(StatusCode::BAD_REQUEST, what, at, next))
            }
        }
    }

    /// Every value that was given under this name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn number<T: FromStr>(&self, name: &str, at: &str) -> Result<Option<T>, Refusal> {
        let number = self
            .one(name)
            .map(|text| text.parse().map_err(|_| not_a_number(&format!("`{name}`"), text, at)));
        number.transpose()
    }
}

pub(super) fn not_a_number(what: &str, found: &str, at: &str) -> Refusal {
    let what = format!("{what} is given as a number, not as {found:?}");
    Refusal::new(StatusCode::BAD_REQUEST, what, at, "write a whole number")
}
