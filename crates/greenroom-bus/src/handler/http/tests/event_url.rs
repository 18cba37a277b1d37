//! Targets that the events name.

use super::*;

/// Posts to what `/url` of an event says.
fn by_event(allow: &[&str]) -> HttpOptions {
    let allow = Some(allow.iter().map(|entry| entry.to_string()).collect());
    HttpOptions::with_url(PostTo { to: None, from: Some("/url".to_owned()), allow })
}

const HERE: [&str; 2] = ["http://127.0.0.1:*/**", "127.0.0.0/8"];

impl Server {
    /// Its URL without credentials, with this in place of its host.
    fn url(&self, host: &str) -> String {
        self.url.replace("me:secret@127.0.0.1", host)
    }
}

fn named(url: &str) -> Event {
    samples::event("1", &serde_json::json!({ "url": url }).to_string())
}

async fn posted(config: HttpOptions, url: &str) -> HandlerResult {
    let mut handler = HttpFactory::new(&config).unwrap().build(0).unwrap();
    let (event, attempt) = (named(url), samples::attempt());
    samples::settle(handler.handle(&event, &attempt)).await
}

/// Why it was not posted, and will not be.
async fn refused(config: HttpOptions, url: &str) -> String {
    let failure = posted(config, url).await.unwrap_err();
    assert_eq!((failure.kind, failure.effect), (FailureKind::Reject, Effect::None), "{failure}");
    failure.error
}

#[tokio::test]
async fn q12_each_event_is_posted_to_the_url_that_it_names() {
    let mut servers = [
        Server::answering("204 No Content", "", "").await,
        Server::answering("204 No Content", "", "").await,
    ];
    for server in &mut servers {
        let url = format!("{}&more#fragment", server.url("127.0.0.1"));
        posted(by_event(&HERE), &url).await.unwrap();
        let request = server.requests.recv().await.unwrap();
        assert!(request.starts_with("POST /in?key=secret&more HTTP/1.1\r\n"), "{request}");
    }
}

#[tokio::test]
async fn q12_a_url_that_is_not_allowed_is_not_posted_to() {
    let server = Server::answering("204 No Content", "", "").await;
    let elsewhere = || by_event(&["https://*.example.com/**", "127.0.0.0/8"]);
    let why = refused(elsewhere(), &server.url("127.0.0.1")).await;
    assert!(why.contains("matches no URL in `allow`") && why.contains("`/url`"), "{why}");
    assert!(!why.contains("secret"), "{why}");
    let why = refused(by_event(&HERE), &server.url("me:secret@127.0.0.1")).await;
    assert!(why.contains("has a user or a password") && !why.contains("secret"), "{why}");
    let why = refused(by_event(&HERE), "nowhere").await;
    assert!(why.contains("cannot be read") && why.contains("`/url`"), "{why}");
    let mut handler = HttpFactory::new(&by_event(&HERE)).unwrap().build(0).unwrap();
    for data in ["{}", "{\"url\":[]}", "{\"url\":null}"] {
        let event = samples::event("1", data);
        let attempt = samples::attempt();
        let failure = samples::settle(handler.handle(&event, &attempt)).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Reject);
        assert!(failure.error.contains("has no URL at `/url`"), "{failure}");
    }
    assert_eq!(server.connections.load(SeqCst), 0);
}

#[tokio::test]
async fn q12_an_address_that_is_not_public_is_refused_unless_its_range_is_allowed() {
    let server = Server::answering("204 No Content", "", "").await;
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]", "0x7f.1"] {
        let url = server.url(host);
        let pattern = ["http://127.0.0.1:*/**", "http://localhost:*/**", "http://*:*/**"];
        let why = refused(by_event(&pattern), &url).await;
        assert!(why.contains("is not public") && why.contains("add the range"), "{host}: {why}");
        assert_eq!(server.connections.load(SeqCst), 0, "{host}");
    }
    let allowed = by_event(&["http://*:*/**", "127.0.0.0/8"]);
    assert!(posted(allowed, &server.url("localhost")).await.is_ok());
}

#[tokio::test]
async fn q12_a_redirect_is_not_followed() {
    let behind = Server::answering("204 No Content", "", "").await;
    let location = format!("location: {}\r\n", behind.url("127.0.0.1"));
    let server = Server::answering("307 Elsewhere", &location, "").await;
    let failure = posted(by_event(&HERE), &server.url("127.0.0.1")).await.unwrap_err();
    assert!(failure.kind == FailureKind::Reject && failure.error.contains("307"), "{failure}");
    assert_eq!(behind.connections.load(SeqCst), 0);
}

#[tokio::test]
async fn q12_events_that_wait_together_are_posted_one_by_one() {
    let mut servers = [
        Server::answering("204 No Content", "", "").await,
        Server::answering("204 No Content", "", "").await,
    ];
    let events = servers.each_ref().map(|server| named(&server.url("127.0.0.1")));
    let mut handler = HttpFactory::new(&by_event(&HERE)).unwrap().build(0).unwrap();
    let events = events.each_ref().map(|event| (event, samples::attempt()));
    assert!(handler.handle_all(&events).await.iter().all(Result::is_ok));
    for server in &mut servers {
        assert!(!server.requests.recv().await.unwrap().contains("cloudevents-batch"));
    }
}
