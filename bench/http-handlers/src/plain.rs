//! The load generator: tasks that post one event after the other by one client, and do nothing
//! else.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom_bus::event::{Event, http::write_binary};
use reqwest::{
    Client, Method, Request, Url,
    header::{HeaderName, HeaderValue},
    redirect,
};

use crate::{AT_ONCE, Failure};

/// Posts all of them. Returns how many were accepted.
pub async fn run(url: &str, events: Vec<Event>) -> Result<u64, Failure> {
    // Somebody may have done it before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // As the handler's client is.
    let client = Client::builder()
        .user_agent("plain")
        .redirect(redirect::Policy::none())
        .no_proxy()
        .timeout(Duration::from_secs(5))
        .connect_timeout(Duration::from_secs(2))
        .build()?;
    let shared = Arc::new((client, Url::parse(url)?, events, AtomicUsize::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let shared = shared.clone();
        tasks.spawn(async move {
            let (client, url, events, next) = &*shared;
            let mut accepted = 0;
            while let Some(event) = events.get(next.fetch_add(1, Ordering::Relaxed)) {
                while !post(client, url, event).await? {}
                accepted += 1;
            }
            Ok::<u64, Failure>(accepted)
        });
    }
    let mut accepted = 0;
    while let Some(ended) = tasks.join_next().await {
        accepted += ended??;
    }
    Ok(accepted)
}

/// False where it is to be posted again.
async fn post(client: &Client, url: &Url, event: &Event) -> Result<bool, Failure> {
    let response = client.execute(request(url, event)?).await?;
    let is_accepted = response.status().is_success();
    response.bytes().await?;
    Ok(is_accepted)
}

/// The same request as the handler makes.
fn request(url: &Url, event: &Event) -> Result<Request, Failure> {
    let message = write_binary(event);
    let mut request = Request::new(Method::POST, url.clone());
    let headers = request.headers_mut();
    for (name, text) in &message.headers {
        headers.insert(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(text)?);
    }
    let key = format!("{} {}", event.source(), event.id());
    headers.insert("idempotency-key", HeaderValue::from_str(&key)?);
    headers.insert("greenroom-attempt", HeaderValue::from(1));
    *request.body_mut() = Some(message.body.into());
    Ok(request)
}
