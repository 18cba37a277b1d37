//! The playground of `greenroom demo` behind the same guard as the dashboard, without a token: for
//! this machine alone.

use std::{
    convert::Infallible,
    net::{SocketAddr, ToSocketAddrs},
    sync::Arc,
};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, Uri},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use greenroom_bus::http::server::within_descriptors;
use tokio::net::TcpListener;

use super::{MOST, SHARE, answer::Refusal, guard::Guard, page, serve};

/// A bound address that is not served yet.
pub(crate) struct Site(TcpListener);

impl Site {
    /// Binds an address of this machine.
    ///
    /// # Errors
    /// The error and the next step.
    pub(crate) async fn bind(address: &str) -> Result<Self, String> {
        let next = "give an address of this machine and a free port, such as `127.0.0.1:7071`";
        let failed = |error| format!("cannot listen at {address}: {error}; {next}");
        let found = address.to_socket_addrs().map_err(|error| failed(error.to_string()))?;
        let found = found.into_iter().find(|found| found.ip().is_loopback());
        let found = found.ok_or_else(|| failed("other machines could reach it".to_owned()))?;
        TcpListener::bind(found).await.map(Self).map_err(|error| failed(error.to_string()))
    }

    /// The address, with the port that was chosen.
    ///
    /// # Errors
    /// The system does not say.
    pub(crate) fn address(&self) -> Result<SocketAddr, String> {
        self.0.local_addr().map_err(|error| error.to_string())
    }

    /// Answers with the page and these requests until it is dropped.
    pub(crate) async fn serve(self, requests: Router) -> Infallible {
        serve::serve(self.0, behind_guard(requests), within_descriptors(MOST, SHARE)).await
    }
}

fn behind_guard(mut routes: Router) -> Router {
    for asset in &page::PLAYGROUND {
        routes = routes.route(asset.path, get(async |asked: HeaderMap| asset.answer(&asked)));
    }
    routes
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .layer(middleware::from_fn_with_state(Arc::new(Guard::local()), admit))
}

async fn admit(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    page::guarded(match guard.admit(request.method(), request.headers(), path, false) {
        Ok(_) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    })
}

async fn unknown(method: Method, uri: Uri) -> Refusal {
    let what = format!("there is nothing at {method} {}", uri.path());
    Refusal::new(StatusCode::NOT_FOUND, what, uri.path(), "the playground is at `/`")
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tower_service::Service;

    use super::*;

    async fn status(method: Method, path: &str, pairs: &[(&str, &str)]) -> u16 {
        let requests =
            Router::new().route("/api/settings", get(async || "settings").post(async || "changed"));
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in pairs {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        behind_guard(requests).call(request).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn o09_a_page_from_elsewhere_neither_reads_nor_changes_the_playground() {
        let here = ("host", "127.0.0.1:7070");
        let elsewhere = ("origin", "http://evil.example");
        for path in ["/", "/assets/playground.js", "/api/settings"] {
            assert_eq!(status(Method::GET, path, &[here]).await, 200, "{path}");
            let rebound = [("host", "evil.example")];
            assert_eq!(status(Method::GET, path, &rebound).await, 403, "{path}");
        }
        assert_eq!(status(Method::POST, "/api/settings", &[here]).await, 200);
        assert_eq!(status(Method::POST, "/api/settings", &[here, elsewhere]).await, 403);
        assert_eq!(status(Method::GET, "/api/pools", &[here]).await, 404);
    }

    #[tokio::test]
    async fn o09_the_playground_is_for_this_machine_alone() {
        for wrong in ["0.0.0.0:0", "nowhere", "127.0.0.1"] {
            let refused = Site::bind(wrong).await.err().unwrap();
            assert!(refused.contains(wrong) && refused.contains("such as"), "{refused}");
        }
        assert!(Site::bind("127.0.0.1:0").await.unwrap().address().unwrap().ip().is_loopback());
    }
}
