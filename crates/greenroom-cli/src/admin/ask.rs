//! Asks the admin listener of another greenroom: one request, one answer.
//!
//! HTTP/1.0, so that an answer comes in one piece.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

use serde_json::Value;

/// Where a listener is, unless said otherwise.
pub(crate) const ADDRESS: &str = "127.0.0.1:7070";

/// The listener answers at once, or something is wrong.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer that is read, in bytes.
const LONGEST: u64 = 64 << 20;

/// The variable that holds the token of the listener.
const TOKEN: &str = "GREENROOM_ADMIN_TOKEN";

/// Asks for `path`, and returns the answer's JSON.
///
/// # Errors
/// What happened, where, and what to do next.
pub(crate) fn get(address: &str, path: &str) -> Result<Value, String> {
    let host = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
    let answer = exchange(host, path).map_err(|error| {
        let error = in_words(&error);
        format!(
            "nobody answers at {host}: {error}; is `greenroom run` there, with `admin: {{ listen: {host} }}` in its configuration?"
        )
    })?;
    let strange = || {
        format!("what answers at {host} is no greenroom; name the address that `admin.listen` says")
    };
    let (head, body) = answer.ok_or_else(strange)?;
    let status = head.split(' ').nth(1).ok_or_else(strange)?;
    let body: Value = serde_json::from_slice(&body).map_err(|_| strange())?;
    if status == "200" {
        return Ok(body);
    }
    let text = |name| body["error"][name].as_str().unwrap_or_default();
    match text("what") {
        "" => Err(strange()),
        what => Err(format!("{host}: {what}; {}", text("next"))),
    }
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("no answer within {} s", PATIENCE.as_secs())
        }
        _ => error.to_string(),
    }
}

/// Head and body of an answer; `None` where it is no HTTP.
type Answer = Option<(String, Vec<u8>)>;

fn exchange(host: &str, path: &str) -> io::Result<Answer> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return converse(stream, host, path),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn converse(mut stream: TcpStream, host: &str, path: &str) -> io::Result<Answer> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let token = std::env::var(TOKEN).unwrap_or_default();
    if token.contains(char::is_control) {
        let why = format!("{TOKEN} has a line break or a control character");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let token = match token.as_str() {
        "" => String::new(),
        token => format!("Authorization: Bearer {token}\r\n"),
    };
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n{token}\r\n");
    stream.write_all(request.as_bytes())?;
    read(&mut BufReader::new(stream.take(LONGEST)))
}

fn read(answer: &mut impl BufRead) -> io::Result<Answer> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if answer.read_until(b'\n', &mut head)? == 0 {
            return Ok(None);
        }
    }
    let Ok(head) = String::from_utf8(head) else { return Ok(None) };
    let length = head.lines().filter_map(|line| line.split_once(':'));
    let length = length.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.filter_map(|(_, length)| length.trim().parse().ok()).next();
    let mut body = Vec::new();
    answer.take(length.unwrap_or(LONGEST)).read_to_end(&mut body)?;
    Ok(Some((head, body)))
}
