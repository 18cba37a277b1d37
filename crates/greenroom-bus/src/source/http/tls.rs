//! TLS of a server, from PEM.

use std::{fmt, sync::Arc};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    server::{WantsServerCert, WebPkiClientVerifier},
};

use crate::http::{
    BadTls,
    tls::{certificates, private_key},
};

/// A server's certificate, and the authorities of its clients, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerTls {
    /// The certificate, and those between it and its authority.
    pub cert: Vec<u8>,
    /// Its private key. Never shown.
    pub key: Vec<u8>,
    /// Authorities of clients: with them, each client needs a certificate issued by one of them.
    pub client_ca: Option<Vec<u8>>,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls")
            .field("client_ca", &self.client_ca.is_some())
            .finish_non_exhaustive()
    }
}

impl ServerTls {
    /// Whether certificates and key can be used, and belong together.
    ///
    /// # Errors
    /// The problem, and the next step. Does not repeat a key.
    pub fn check(&self) -> Result<(), BadTls> {
        self.server().map(drop)
    }

    pub(super) fn server(&self) -> Result<Arc<ServerConfig>, BadTls> {
        let chain = certificates(&self.cert).map_err(BadTls::Cert)?;
        let key = private_key(&self.key)?;
        let config = self.clients()?.with_single_cert(chain, key);
        let mut config = config.map_err(|error| {
            BadTls::Key(format!("does not fit `cert`, or cannot be used: {error}"))
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn clients(&self) -> Result<rustls::ConfigBuilder<ServerConfig, WantsServerCert>, BadTls> {
        let unusable = |why: String| BadTls::Ca(format!("cannot be used: {why}"));
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(error.to_string()))?;
        let Some(pem) = &self.client_ca else { return Ok(builder.with_no_client_auth()) };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(pem).map_err(BadTls::Ca)? {
            roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| unusable(error.to_string()))?;
        Ok(builder.with_client_cert_verifier(verifier))
    }
}
