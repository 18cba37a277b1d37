//! Queries the admin listener of another greenroom: one request, one answer.
//!
//! HTTP/1.0, so that an answer comes in one piece; HTTP/1.1 for a long one, so that its end can be
//! distinguished from a broken connection.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

use serde_json::{Value, value::RawValue};

/// The default address of a listener.
pub(crate) const ADDRESS: &str = "127.0.0.1:7070";

/// The listener answers at once, or something is wrong.
const PATIENCE: Duration = Duration::from_secs(5);

/// A command may take longer.
const DONE_WITHIN: Duration = Duration::from_secs(300);

/// A live stream sends something every few seconds.
const SILENCE: Duration = Duration::from_secs(15);

/// The longest answer to read, in bytes.
const LONGEST: u64 = 64 << 20;

/// The variable that holds the token of the listener.
const TOKEN: &str = "GREENROOM_ADMIN_TOKEN";

/// True if there is a token to send.
pub(crate) fn has_token() -> bool {
    std::env::var_os(TOKEN).is_some_and(|token| !token.is_empty())
}

/// Requests `path`, and returns the answer's JSON.
///
/// # Errors
/// The error, its place, and the next step.
pub(crate) fn get(address: &str, path: &str) -> Result<Value, String> {
    AdminRequest { method: "GET", path, body: b"", patience: PATIENCE }.ask(address)
}

/// Requests `path`, and returns the answer's JSON as written.
///
/// # Errors
/// The error, its place, and the next step.
pub(crate) fn get_text(address: &str, path: &str) -> Result<String, String> {
    AdminRequest { method: "GET", path, body: b"", patience: PATIENCE }.text(address)
}

/// Sends a command to `path`, and returns the answer's JSON.
///
/// # Errors
/// The error, its place, and the next step.
pub(crate) fn post(address: &str, path: &str, body: &[u8]) -> Result<Value, String> {
    AdminRequest { method: "POST", path, body, patience: DONE_WITHIN }.ask(address)
}

/// Copies the answer at `path`, whatever its size.
///
/// # Errors
/// The error, its place, and the next step; also if the answer broke off.
pub(crate) fn copy(address: &str, path: &str, out: &mut dyn Write) -> Result<(), String> {
    copy_within(address, path, DONE_WITHIN, out)
}

/// Like [`copy`], for an answer that arrives piece by piece as long as the connection stays open.
///
/// # Errors
/// Those of [`copy`]; and nothing arrived for [`SILENCE`].
pub(crate) fn listen(address: &str, path: &str, out: &mut dyn Write) -> Result<(), String> {
    copy_within(address, path, SILENCE, out)
}

fn copy_within(
    address: &str,
    path: &str,
    patience: Duration,
    out: &mut dyn Write,
) -> Result<(), String> {
    let host = host(address);
    let request = AdminRequest { method: "GET", path, body: b"", patience };
    let stream = connect(host).and_then(|mut stream| {
        request.send(&mut stream, host, "1.1")?;
        Ok(BufReader::new(stream))
    });
    let mut stream = stream.map_err(|error| request.nobody(host, &error))?;
    let head = head(&mut stream).map_err(|error| request.nobody(host, &error))?;
    let head = head.ok_or_else(|| strange(host))?;
    if head.split(' ').nth(1) != Some("200") || !is_chunked(&head) {
        // In one piece, so it is no greenroom.
        return request.ask(address).map(|_| ());
    }
    chunks(&mut stream, out).map_err(|error| format!("{host}: the answer was cut off: {error}"))
}

fn host(address: &str) -> &str {
    address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/')
}

fn strange(host: &str) -> String {
    format!("the server at {host} is not a greenroom; use the address of `admin.listen`")
}

fn is_chunked(head: &str) -> bool {
    let head = head.to_ascii_lowercase();
    head.lines().any(|line| line.starts_with("transfer-encoding:") && line.ends_with("chunked"))
}

/// The pieces of an answer, each with its length before it (RFC 9112, 7.1).
fn chunks(from: &mut impl BufRead, out: &mut dyn Write) -> io::Result<()> {
    loop {
        let mut line = String::new();
        from.by_ref().take(64).read_line(&mut line)?;
        let length = line.trim().split(';').next().unwrap_or_default();
        let length = u64::from_str_radix(length, 16);
        let length = length.map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        if length == 0 {
            return out.flush();
        }
        if io::copy(&mut from.by_ref().take(length), out)? < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut end = [0; 2];
        from.read_exact(&mut end)?;
    }
}

/// The request.
struct AdminRequest<'a> {
    method: &'a str,
    path: &'a str,
    body: &'a [u8],
    /// How long the answer may take.
    patience: Duration,
}

impl AdminRequest<'_> {
    fn ask(&self, address: &str) -> Result<Value, String> {
        let text = self.text(address)?;
        serde_json::from_str(&text).map_err(|_| strange(host(address)))
    }

    fn text(&self, address: &str) -> Result<String, String> {
        let host = host(address);
        let answer = exchange(host, self).map_err(|error| self.nobody(host, &error))?;
        let (head, body) = answer.ok_or_else(|| strange(host))?;
        let status = head.split(' ').nth(1).ok_or_else(|| strange(host))?;
        let body: Box<RawValue> = serde_json::from_slice(&body).map_err(|_| strange(host))?;
        if status == "200" {
            return Ok(String::from(Box::<str>::from(body)));
        }
        let body: Value = serde_json::from_str(body.get()).map_err(|_| strange(host))?;
        let text = |name| body["error"][name].as_str().unwrap_or_default();
        match text("what") {
            "" => Err(strange(host)),
            what => Err(format!("{host}: {what}; {}", text("next"))),
        }
    }

    fn nobody(&self, host: &str, error: &io::Error) -> String {
        let error = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!("no answer within {} s", self.patience.as_secs())
            }
            _ => error.to_string(),
        };
        format!(
            "there is no answer from {host}: {error}; is `greenroom run` active there, with `admin: {{ listen: {host} }}` in its configuration?"
        )
    }

    fn send(&self, stream: &mut TcpStream, host: &str, version: &str) -> io::Result<()> {
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        let token = std::env::var(TOKEN).unwrap_or_default();
        if token.contains(char::is_control) {
            let why = format!("{TOKEN} has a line break or a control character");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let token = match token.as_str() {
            "" => String::new(),
            token => format!("Authorization: Bearer {token}\r\n"),
        };
        let Self { method, path, body, .. } = self;
        let length = match body.len() {
            0 => String::new(),
            length => {
                format!("Content-Type: application/json\r\nContent-Length: {length}\r\n")
            }
        };
        let request = format!(
            "{method} {path} HTTP/{version}\r\nHost: {host}\r\nConnection: close\r\n{length}{token}\r\n"
        );
        stream.write_all(request.as_bytes())?;
        // A server that refuses it may answer without reading all of it.
        let _ = stream.write_all(body);
        Ok(())
    }
}

/// Head and body of an answer; `None` if it is no HTTP.
type HttpAnswer = Option<(String, Vec<u8>)>;

fn exchange(host: &str, request: &AdminRequest<'_>) -> io::Result<HttpAnswer> {
    let mut stream = connect(host)?;
    request.send(&mut stream, host, "1.0")?;
    read(&mut BufReader::new(stream.take(LONGEST)))
}

fn connect(host: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The head of an answer; `None` if it is no HTTP.
fn head(answer: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if answer.by_ref().take(64 << 10).read_until(b'\n', &mut head)? == 0
            || head.len() > 64 << 10
        {
            return Ok(None);
        }
    }
    Ok(String::from_utf8(head).ok())
}

fn read(answer: &mut impl BufRead) -> io::Result<HttpAnswer> {
    let Some(head) = head(answer)? else { return Ok(None) };
    let length = head.lines().filter_map(|line| line.split_once(':'));
    let length = length.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.filter_map(|(_, length)| length.trim().parse().ok()).next();
    let mut body = Vec::new();
    answer.take(length.unwrap_or(LONGEST)).read_to_end(&mut body)?;
    Ok(Some((head, body)))
}
