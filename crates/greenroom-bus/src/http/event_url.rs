//! URLs that come with the events: each names where it is posted.

use std::sync::Arc;

use reqwest::Url;

use super::{
    allow::Allow,
    config::TargetConfig,
    connection::{Connection, Link},
    resolver::{self, GuardedResolver, Lookup},
    target::Target,
};
use crate::{
    event::{Event, OrderBy},
    stand_in::StandIn,
};

/// Where an event has the URL that it is posted to, and which URLs may be posted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventUrl {
    /// The attribute, extension or member of the data.
    pub from: OrderBy,
    /// The URLs, and the addresses besides the public ones. Without a pattern of URLs, nothing is
    /// posted.
    pub allow: Allow,
}

/// The targets that events name. They share a client.
#[derive(Debug)]
pub(crate) struct EventTargets {
    from: OrderBy,
    allow: Arc<Allow>,
    link: Arc<Link>,
    /// Answers in place of all of them.
    stand_in: Option<StandIn>,
}

impl EventTargets {
    /// `config.url` is not used. Connects to nothing yet.
    ///
    /// # Errors
    /// A sentence for the operator, as for one target.
    pub(crate) fn new(
        config: &TargetConfig,
        url: &EventUrl,
        stand_in: Option<StandIn>,
    ) -> Result<Self, String> {
        Self::looked_up(config, url, resolver::system, stand_in)
    }

    pub(super) fn looked_up(
        config: &TargetConfig,
        url: &EventUrl,
        lookup: Lookup,
        stand_in: Option<StandIn>,
    ) -> Result<Self, String> {
        let allow = Arc::new(url.allow.clone());
        let resolver = Arc::new(GuardedResolver { allow: allow.clone(), lookup });
        let has_tls = allow.has_tls() && stand_in.is_none();
        let link = Link::guarded(config, has_tls, &resolver)?;
        Ok(Self { from: url.from, allow, link, stand_in })
    }

    /// The target that the event names.
    ///
    /// # Errors
    /// It names none, or one that is not allowed: no further attempt changes that. For an operator;
    /// of the URL, only what a log may show.
    pub(crate) fn target(&self, event: &Event) -> Result<Connection, String> {
        let from = self.from;
        let Ok(Some(text)) = from.key(event) else {
            return Err(format!("http: the event has no URL at `{from}`"));
        };
        let mut target =
            Target::parse(&text).map_err(|why| format!("{why}; the event has it at `{from}`"))?;
        if has_credentials(&target.url) {
            return Err(format!("http: the URL at `{from}` of the event has a user or a password"));
        }
        let shown = &target.shown;
        if !self.allow.permits(&target.url) {
            return Err(format!(
                "http: {shown}, which the event has at `{from}`, matches no URL in `allow` of `http.url`"
            ));
        }
        resolver::check_host(&target.url, &self.allow).map_err(|why| format!("http: {why}"))?;
        target.url.set_fragment(None);
        Ok(Connection { target, link: self.link.clone(), stand_in: self.stand_in.clone() })
    }
}

fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;
    use crate::http::message::{self, Mode};

    /// How often the name was looked up.
    static LOOKED_UP: AtomicUsize = AtomicUsize::new(0);

    /// First to an address that is allowed, then to one that is not.
    fn rebinding(
        host: String,
    ) -> crate::BoxFuture<'static, std::io::Result<Vec<std::net::IpAddr>>> {
        assert_eq!(host, "rebinding.test");
        let first = LOOKED_UP.fetch_add(1, Ordering::Relaxed) == 0;
        let address = if first { [127, 0, 0, 1] } else { [127, 0, 0, 2] };
        Box::pin(async move { Ok(vec![address.into()]) })
    }

    #[tokio::test]
    async fn q12_a_name_is_resolved_once_for_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4_096];
            let read = stream.read(&mut head).await.unwrap();
            let answer = b"HTTP/1.1 204 Yes\r\nconnection: close\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            String::from_utf8_lossy(&head[..read]).into_owned()
        });
        let mut allow = Allow::default();
        for entry in ["http://rebinding.test:*/**", "127.0.0.1"] {
            allow.push(entry).unwrap();
        }
        let url = EventUrl { from: "subject".parse().unwrap(), allow };
        let targets =
            EventTargets::looked_up(&TargetConfig::default(), &url, rebinding, None).unwrap();
        let named = format!("http://rebinding.test:{port}/");
        let event = Event::builder("1", "s", "t").subject(&named).build().unwrap();
        let target = targets.target(&event).unwrap();
        let attempt = message::SentAttempt { number: 1, fence: None };
        let request = || message::single(&target, Mode::Binary, &event, attempt).unwrap();
        assert_eq!(target.send(request()).await.unwrap().status(), 204);
        let request_head = served.await.unwrap();
        assert!(request_head.contains(&format!("host: rebinding.test:{port}\r\n")));
        assert_eq!(LOOKED_UP.load(Ordering::Relaxed), 1);
        let none = target.send(request()).await.unwrap_err();
        assert!(none.refused && !none.reached, "{none:?}");
        assert!(none.text.contains("rebinding.test leads to 127.0.0.2"), "{none:?}");
    }
}
