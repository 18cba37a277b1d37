//! The address that a server listens on, as an option.

use std::net::{Ipv4Addr, SocketAddr};

use crate::{at::At, options::Take, record::Typed};

/// An address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen(pub SocketAddr);

impl Listen {
    /// `127.0.0.1:7070`, `[::1]:7070`, `localhost:7070`. Other names are not looked up: their
    /// addresses may change.
    fn parse(text: &str) -> Option<Self> {
        let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
        match local {
            Some(port) => Some(Self(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))),
            None => text.parse().ok().map(Self),
        }
    }
}

impl Take for Listen {
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self> {
        let written = String::take(found, at)?;
        let listen = Self::parse(&written);
        if listen.is_none() {
            let here = at.written("");
            let text = format!("`{}` is not an address to listen on", here.show(&written));
            let port = written.trim_start_matches(':').parse::<u16>().ok();
            let help = match port.filter(|_| here.origin.is_none()) {
                Some(port) => format!("did you mean `127.0.0.1:{port}`?"),
                None => "an IP address and a port, such as `127.0.0.1:7070`".to_owned(),
            };
            at.error("", text, help);
        }
        listen
    }
}
