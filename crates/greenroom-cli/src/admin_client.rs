//! The commands' requests to the admin listener of a running greenroom.

use std::{error::Error, io::Write, time::Duration};

use axum::body::{Body, to_bytes};
use futures_util::StreamExt;
use hyper::{
    Request, Response, StatusCode,
    client::conn::http1,
    header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderValue},
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, value::RawValue};
use tokio::{net::TcpStream, time::timeout};

/// The default address of an admin listener.
pub(crate) const ADDRESS: &str = "127.0.0.1:7070";

/// The timeout for a connection, and for an answer that changes nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// The timeout for a change, and between two pieces of a long answer.
const DONE_WITHIN: Duration = Duration::from_secs(300);

/// The timeout between two pieces of a stream of samples, which come once a second.
const SILENCE: Duration = Duration::from_secs(15);

/// The size of the largest answer.
const LONGEST: usize = 64 << 20;

/// The variable that holds the token.
const TOKEN: &str = "GREENROOM_ADMIN_TOKEN";

/// The content types of answers of any length.
const STREAMS: [&str; 2] = ["application/x-ndjson", "text/event-stream"];

/// Whether requests carry a token.
pub(crate) fn has_token() -> bool {
    std::env::var_os(TOKEN).is_some_and(|token| !token.is_empty())
}

/// Gets JSON.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn get(address: &str, path: &str) -> Result<Value, String> {
    json(address, &get_text(address, path)?)
}

/// Gets JSON as it was sent.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn get_text(address: &str, path: &str) -> Result<String, String> {
    wait(AdminRequest { method: "GET", path, body: b"", patience: PATIENCE }.text(host(address)))
}

/// Posts a change.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn post(address: &str, path: &str, body: &[u8]) -> Result<Value, String> {
    let request = AdminRequest { method: "POST", path, body, patience: DONE_WITHIN };
    json(address, &wait(request.text(host(address)))?)
}

/// Copies an answer of any length.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn copy(address: &str, path: &str, out: &mut dyn Write) -> Result<(), String> {
    let request = AdminRequest { method: "GET", path, body: b"", patience: DONE_WITHIN };
    wait(request.copy(host(address), out))
}

/// Copies a stream until it ends, `out` fails, or it is silent for too long.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn listen(address: &str, path: &str, out: &mut dyn Write) -> Result<(), String> {
    let request = AdminRequest { method: "GET", path, body: b"", patience: SILENCE };
    wait(request.copy(host(address), out))
}

fn wait<T>(asked: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no threads: {error}"))?;
    let answer = runtime.block_on(asked);
    // A name server may still take its time.
    runtime.shutdown_background();
    answer
}

fn host(address: &str) -> &str {
    address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/')
}

fn json(address: &str, text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|_| strange(host(address)))
}

fn strange(host: &str) -> String {
    format!("the server at {host} is not a greenroom; use the address of `admin.listen`")
}

/// Why there is no answer.
type Failure = Box<dyn Error + Send + Sync>;

struct AdminRequest<'a> {
    method: &'a str,
    path: &'a str,
    body: &'a [u8],
    /// The longest wait for the head of an answer, and for each piece of it.
    patience: Duration,
}

impl AdminRequest<'_> {
    async fn text(&self, host: &str) -> Result<String, String> {
        let answer = self.send(host).await?;
        self.read(host, answer).await
    }

    async fn copy(&self, host: &str, out: &mut dyn Write) -> Result<(), String> {
        let answer = self.send(host).await?;
        let kind = answer.headers().get(CONTENT_TYPE);
        if !kind.is_some_and(|kind| STREAMS.iter().any(|stream| kind == stream)) {
            self.read(host, answer).await?;
            return Err(strange(host));
        }
        let mut pieces = answer.into_body().into_data_stream();
        let copied = async {
            while let Some(piece) = self.within(async { Ok(pieces.next().await) }).await? {
                out.write_all(&piece?)?;
            }
            Ok::<_, Failure>(out.flush()?)
        };
        copied.await.map_err(|error| format!("{host}: the answer was cut off: {error}"))
    }

    async fn send(&self, host: &str) -> Result<Response<Body>, String> {
        let sent = async {
            let stream = timeout(PATIENCE, TcpStream::connect(host)).await;
            let stream = stream.map_err(|_| late(PATIENCE))??;
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            Ok(sender.send_request(self.request(host)?).await?.map(Body::new))
        };
        self.within(sent).await.map_err(|error| nobody(host, &error))
    }

    fn request(&self, host: &str) -> Result<Request<Body>, Failure> {
        let body = Body::from(self.body.to_vec());
        let mut request = Request::builder().method(self.method).uri(self.path).body(body)?;
        let headers = request.headers_mut();
        headers.insert(HOST, host.parse()?);
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if !self.body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let token = std::env::var(TOKEN).unwrap_or_default();
        if !token.is_empty() {
            let token = HeaderValue::try_from(format!("Bearer {token}"));
            let wrong = || format!("{TOKEN} has a line break or a control character");
            headers.insert(AUTHORIZATION, token.map_err(|_| wrong())?);
        }
        Ok(request)
    }

    /// The JSON of an answer.
    async fn read(&self, host: &str, answer: Response<Body>) -> Result<String, String> {
        let status = answer.status();
        let body = self.within(async { Ok(to_bytes(answer.into_body(), LONGEST).await?) }).await;
        let body = body.map_err(|error| nobody(host, &error))?;
        let body: Box<RawValue> = serde_json::from_slice(&body).map_err(|_| strange(host))?;
        if status == StatusCode::OK {
            return Ok(String::from(Box::<str>::from(body)));
        }
        let body: Value = json(host, body.get())?;
        let text = |name| body["error"][name].as_str().unwrap_or_default();
        match text("what") {
            "" => Err(strange(host)),
            what => Err(format!("{host}: {what}; {}", text("next"))),
        }
    }

    async fn within<T>(
        &self,
        step: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        timeout(self.patience, step).await.unwrap_or_else(|_| Err(late(self.patience)))
    }
}

fn late(patience: Duration) -> Failure {
    format!("no answer within {} s", patience.as_secs()).into()
}

fn nobody(host: &str, error: &Failure) -> String {
    let answered = error.downcast_ref::<hyper::Error>();
    if answered.is_some_and(|error| error.is_parse() || error.is_incomplete_message()) {
        return strange(host);
    }
    format!(
        "there is no answer from {host}: {error}; is `greenroom run` active there, with `admin: {{ listen: {host} }}` in its configuration?"
    )
}
