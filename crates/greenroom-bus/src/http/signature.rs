//! Signatures of requests by [Standard Webhooks](https://www.standardwebhooks.com), so that a
//! target knows who has posted, and that nobody has changed or kept what was posted.
//!
//! ```text
//! webhook-id: msg_0c6ec8a1...                the same in all attempts at an event
//! webhook-timestamp: 1764278460              of this attempt
//! webhook-signature: v1,K5oZ... v1,Xk2a...   one for each secret of the share
//! ```
//!
//! Each share has one or two secrets: two while one takes the place of the other. They are in a
//! file, which is read again when it has changed.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use parking_lot::Mutex;
use reqwest::{
    Request,
    header::{HeaderName, HeaderValue},
};
use ring::{
    digest::{SHA256, digest},
    hmac::{self, HMAC_SHA256, Key},
};
use serde_json::Value;
use tokio::time::Instant;

use crate::event::Event;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// What a secret may begin with.
const PREFIX: &str = "whsec_";

/// The file is looked at no more often.
const LOOK: Duration = Duration::from_secs(1);

/// More secrets of one share are a mistake: it has one, or two while they change.
const MOST: usize = 2;

/// The secrets of each share.
type Secrets = HashMap<String, Vec<Key>>;

/// Signs requests with the secrets of a file.
#[derive(Debug)]
pub(crate) struct Signer {
    path: PathBuf,
    read: Mutex<SecretsRead>,
}

/// What the file held when it was read last.
#[derive(Debug)]
struct SecretsRead {
    secrets: Arc<Secrets>,
    stamp: FileStamp,
    looked_at: Instant,
}

/// Another one means that the file has changed.
type FileStamp = Option<(SystemTime, u64)>;

impl Signer {
    /// # Errors
    /// The file cannot be read, or is none of secrets. It repeats none.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let stamp = stamp(path);
        let secrets = Arc::new(read(path)?);
        let read = Mutex::new(SecretsRead { secrets, stamp, looked_at: Instant::now() });
        Ok(Self { path: path.to_owned(), read })
    }

    /// Signs the body of a request, which is complete.
    ///
    /// # Errors
    /// The share has no secret.
    pub(crate) fn sign(
        &self,
        request: &mut Request,
        event: &Event,
        share: Option<&str>,
    ) -> Result<(), String> {
        let share = share.unwrap_or_default();
        let secrets = self.current();
        let keys = secrets.get(share).ok_or_else(|| {
            format!("http: the share {share:?} has no secret in {}", self.path.display())
        })?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let id = id(event);
        let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
        let value = signature(keys, &id, now, body);
        let headers = request.headers_mut();
        for (name, value) in [(ID, id), (SIGNATURE, value)] {
            // All of it is printable ASCII.
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
        headers.insert(TIMESTAMP, HeaderValue::from(now));
        Ok(())
    }

    /// The secrets as they are in the file, or were before it could not be read.
    fn current(&self) -> Arc<Secrets> {
        let mut last = self.read.lock();
        let now = Instant::now();
        if now.duration_since(last.looked_at) < LOOK {
            return last.secrets.clone();
        }
        last.looked_at = now;
        let stamp = stamp(&self.path);
        if stamp != last.stamp {
            last.stamp = stamp;
            match read(&self.path) {
                Ok(secrets) => last.secrets = Arc::new(secrets),
                Err(why) => tracing::error!("{why}; those from before hold"),
            }
        }
        last.secrets.clone()
    }
}

fn stamp(path: &Path) -> FileStamp {
    let found = std::fs::metadata(path).ok()?;
    Some((found.modified().ok()?, found.len()))
}

/// Of source and id, which together identify an event. Without the characters in either that no
/// `webhook-id` may have.
fn id(event: &Event) -> String {
    let named = format!("{}\n{}", event.source(), event.id());
    let hash = digest(&SHA256, named.as_bytes());
    let hex = hash.as_ref()[..16].iter().map(|byte| format!("{byte:02x}"));
    hex.fold("msg_".to_owned(), |id, byte| id + &byte)
}

/// A signature for each of these.
fn signature(keys: &[Key], id: &str, timestamp: u64, body: &[u8]) -> String {
    let one = |key: &Key| {
        let mut signed = hmac::Context::with_key(key);
        signed.update(format!("{id}.{timestamp}.").as_bytes());
        signed.update(body);
        format!("v1,{}", BASE64_STANDARD.encode(signed.sign()))
    };
    keys.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Whether a file holds secrets.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_secrets(path: &Path) -> Result<(), String> {
    read(path).map(drop)
}

fn read(path: &Path) -> Result<Secrets, String> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    let Ok(Value::Object(shares)) = serde_json::from_slice(&bytes) else {
        return Err(format!("`{shown}` is no JSON object of shares with their secrets"));
    };
    let secrets = shares.into_iter().map(|(share, value)| {
        let keys = keys(&value).map_err(|why| format!("`{shown}`, share {share:?}: {why}"))?;
        Ok((share, keys))
    });
    secrets.collect()
}

fn keys(value: &Value) -> Result<Vec<Key>, &'static str> {
    let single = std::slice::from_ref(value);
    let all = value.as_array().map_or(single, Vec::as_slice);
    if all.is_empty() || all.len() > MOST {
        return Err("it has one secret, or two while one takes the place of the other");
    }
    let key = |value: &Value| {
        let text = value.as_str().ok_or("a secret is text")?;
        let bytes = BASE64_STANDARD.decode(text.strip_prefix(PREFIX).unwrap_or(text));
        let bytes = bytes.ok().filter(|bytes| !bytes.is_empty());
        let bytes = bytes.ok_or("a secret is `whsec_` and base64")?;
        Ok(Key::new(HMAC_SHA256, &bytes))
    };
    all.iter().map(key).collect()
}

#[cfg(test)]
mod tests {
    use reqwest::Method;

    use super::*;

    /// Of the specification's test vectors.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const SIGNED: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    #[test]
    fn q12_a_signature_is_that_of_the_specification() {
        let keys = keys(&Value::from(SECRET)).unwrap();
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", br#"{"test": 2432232314}"#);
        assert_eq!(signature(&keys, id, 1_614_265_330, body), SIGNED);
    }

    fn signed(signer: &Signer, share: &str) -> Result<Vec<String>, String> {
        let mut request = Request::new(Method::POST, "http://localhost/".parse().unwrap());
        *request.body_mut() = Some("{}".into());
        let event = Event::builder("1", "/shop", "t").build().unwrap();
        signer.sign(&mut request, &event, Some(share))?;
        let header = |name: HeaderName| request.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header(ID), id(&event));
        assert!(header(TIMESTAMP).parse::<u64>().unwrap() > 1_700_000_000);
        Ok(header(SIGNATURE).split(' ').map(str::to_owned).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn q12_each_share_has_its_secrets_which_are_read_again_when_they_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secrets.json");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write(&format!(r#"{{"acme":"{SECRET}","bolt":["{SECRET}","YWJj"]}}"#));
        let signer = Signer::open(&path).unwrap();
        assert_eq!(signed(&signer, "acme").unwrap().len(), 1);
        let both = signed(&signer, "bolt").unwrap();
        assert!(both.len() == 2 && both[0] != both[1], "both sign");
        let why = signed(&signer, "cafe").unwrap_err();
        assert!(why.contains("\"cafe\" has no secret"), "{why}");
        write(r#"{"cafe":"YWJj"}"#);
        tokio::time::advance(LOOK).await;
        assert_eq!(signed(&signer, "cafe").unwrap().len(), 1);
        assert!(signed(&signer, "acme").is_err());
        write("broken");
        tokio::time::advance(LOOK).await;
        assert!(signed(&signer, "cafe").is_ok(), "those from before hold");
    }

    #[test]
    fn q12_a_file_that_holds_no_secrets_is_refused_without_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secrets.json");
        for text in ["[]", "", r#"{"a":5}"#, r#"{"a":"hunter2!"}"#, r#"{"a":[]}"#, r#"{"a":""}"#] {
            std::fs::write(&path, text).unwrap();
            let why = check_secrets(&path).unwrap_err();
            assert!(why.contains("secrets.json") && !why.contains("hunter2"), "{why}");
        }
        assert!(check_secrets(&directory.path().join("missing")).is_err());
    }
}
