//! The address of a server.

use redis::{ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

/// Parses a URL.
///
/// # Errors
/// It is not a URL of a Redis server. The message does not repeat it: it may hold a password.
pub(crate) fn address(url: &str) -> Result<ConnectionInfo, String> {
    let info = url.into_connection_info();
    let info = info.map_err(|error| format!("this is no URL of a Redis server: {error}"))?;
    // Answers are parsed as RESP2 has them, whatever the URL says.
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
    Ok(info.set_redis_settings(settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_those_of_resp2_whatever_the_url_says() {
        let address = address("redis://localhost/?protocol=resp3").unwrap();
        assert_eq!(address.redis_settings().protocol(), ProtocolVersion::RESP2);
    }
}
