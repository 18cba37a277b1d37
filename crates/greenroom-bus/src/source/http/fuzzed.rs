//! An intake as a function of bytes, for the targets in `fuzz/`. No interface for anybody else: it
//! changes as they need it.

use std::{sync::Arc, time::SystemTime};

use bytes::Bytes;
use hyper::{
    HeaderMap,
    header::{HeaderName, HeaderValue},
};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Access, HttpSettings, guard::Guard, serve, shared::Shared};
use crate::source::log::EventLog;

/// Answers the requests on this connection until it ends, as an intake at `path` does.
///
/// # Errors
/// Settings that cannot be used.
pub async fn converse<S>(
    stream: S,
    path: &str,
    settings: HttpSettings,
    log: Arc<dyn EventLog>,
) -> Result<(), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shared = Arc::new(Shared::new("http:fuzzed".to_owned(), path, settings, log)?);
    let place = shared.connections.enter().ok_or("no connection may be open")?;
    serve::connection(stream, place, shared).await;
    Ok(())
}

/// Whether a request with these headers and this body would be taken at this time.
///
/// # Errors
/// No client could post like this, or these are not valid headers.
pub fn admits(
    access: Option<&Access>,
    headers: &[(&str, &[u8])],
    body: &Bytes,
    now: SystemTime,
) -> Result<bool, String> {
    let guard = Guard::new(access)?;
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name: HeaderName = name.parse().map_err(|_| "no name of a header")?;
        map.append(name, HeaderValue::from_bytes(value).map_err(|_| "no value of a header")?);
    }
    Ok(guard.admit(&map).is_ok() && guard.admit_body(&map, body, now).is_ok())
}
