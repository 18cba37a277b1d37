//! Answers as JSON, including errors.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use greenroom_bus::engine::ChangeError;
use serde_json::{Value, json};

/// A refused request: the error, its place, and the next step.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) what: String,
    pub(crate) place: String,
    pub(crate) next: String,
    /// More details than fit into a line.
    pub(crate) details: Option<Value>,
}

/// A JSON body, or why there is none.
pub(crate) type Answer = Result<Json, Refusal>;

/// A JSON body and its status.
#[derive(Debug)]
pub(crate) struct Json(pub(super) StatusCode, pub(crate) Value);

impl Json {
    pub(crate) fn ok(value: Value) -> Self {
        Self(StatusCode::OK, value)
    }
}

impl Refusal {
    pub(crate) fn new(
        status: StatusCode,
        what: impl Into<String>,
        place: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        let (what, place, next) = (what.into(), place.into(), next.into());
        Self { status, what, place, next, details: None }
    }
}

impl Refusal {
    /// There is no pool, handler, input or output of this name.
    pub(super) fn no_such(what: &str, error: &ChangeError) -> Self {
        let next = format!("`/api/{what}` lists them");
        Self::new(StatusCode::NOT_FOUND, error.to_string(), format!("/api/{what}"), next)
    }
}

impl IntoResponse for Json {
    fn into_response(self) -> Response {
        let mut response = as_json(Body::from(format!("{:#}\n", self.1)));
        *response.status_mut() = self.0;
        response
    }
}

/// A body that is JSON already.
pub(super) fn as_json(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut error = json!({ "what": self.what, "where": self.place, "next": self.next });
        if let Some(details) = self.details {
            error["details"] = details;
        }
        Json(self.status, json!({ "error": error })).into_response()
    }
}
