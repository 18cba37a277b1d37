//! The URL to post to and the credentials to use, from the command line.

use std::{env, time::Duration};

use greenroom_bus::http::{Auth, Poster, TargetConfig, Tls};
use greenroom_config::Secret;
use url::Url;

use crate::cli::SendArgs;

/// The variable that holds the token.
const TOKEN: &str = "GREENROOM_SEND_TOKEN";

/// Longer than an input takes for a batch, even on a slow disk.
const TIMEOUT: Duration = Duration::from_secs(60);

/// # Errors
/// The part that cannot be used, and how to fix it.
pub(super) fn poster(args: &SendArgs) -> Result<Poster, String> {
    let token = args.token.clone().or_else(|| env::var(TOKEN).ok()).filter(|t| !t.is_empty());
    let ca = args.ca.as_ref().map(std::fs::read).transpose();
    let ca = ca.map_err(|error| format!("cannot read the file given as `--ca`: {error}"))?;
    let config = TargetConfig {
        url: url(&args.address)?,
        timeout: TIMEOUT,
        auth: token.map(|token| Auth::Bearer(Secret(token))),
        tls: Tls { ca, ..Tls::default() },
        ..TargetConfig::default()
    };
    Poster::new(&config)
}

/// `127.0.0.1:8080` and `https://host` as a whole URL.
fn url(address: &str) -> Result<String, String> {
    let whole = match address.contains("://") {
        true => address.to_owned(),
        false => format!("http://{address}"),
    };
    let strange = |why| {
        let next = "write a URL, or an address and a port, such as `127.0.0.1:8080`";
        format!("`{address}` is not an address to send to: {why}; {next}")
    };
    let mut url = Url::parse(&whole).map_err(|error| strange(error.to_string()))?;
    if url.path() == "/" {
        url.set_path("/events");
    }
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c07_an_address_is_a_url_or_the_beginning_of_one() {
        assert_eq!(url("127.0.0.1:80").unwrap(), "http://127.0.0.1/events");
        assert_eq!(url("[::1]:8080").unwrap(), "http://[::1]:8080/events");
        assert_eq!(url("https://h/hooks/x").unwrap(), "https://h/hooks/x");
        assert_eq!(url("https://h").unwrap(), "https://h/events");
        assert!(url("http://").unwrap_err().contains("127.0.0.1:8080"));
    }
}
