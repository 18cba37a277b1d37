//! TLS to a target: trusted roots, and a client certificate.

use std::sync::Arc;

use reqwest::ClientBuilder;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};

use super::config::{Identity, Tls};

/// Settings of [`Tls`] that cannot be used, for an operator. Does not repeat a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadTls {
    /// The certificates of the authorities.
    #[error("`ca` {0}")]
    Ca(String),
    /// The certificate of the client.
    #[error("`cert` {0}")]
    Cert(String),
    /// Its key.
    #[error("`key` {0}")]
    Key(String),
    /// The name of the target.
    #[error("`server_name` {0}")]
    ServerName(String),
}

/// Whether certificates, key and name can be used, and belong together.
///
/// # Errors
/// The problem, and the next step.
pub fn check_tls(tls: &Tls) -> Result<(), BadTls> {
    if tls.ca.is_none() {
        if tls.server_name.is_some() {
            let why = "needs a `ca`: name the authority that has signed the target's certificate";
            return Err(BadTls::ServerName(why.to_owned()));
        }
        return tls.identity.as_ref().map_or(Ok(()), |identity| {
            let roots = RootCertStore::empty();
            configured(roots, Some(identity), None).map(drop)
        });
    }
    of_own_authority(tls).map(drop)
}

/// Plain HTTP has to work on a machine without any root certificates, such as an empty container:
/// it gets a configuration that trusts no root and is never used.
///
/// # Errors
/// A sentence for the operator.
pub(super) fn configure(
    builder: ClientBuilder,
    is_https: bool,
    tls: &Tls,
) -> Result<ClientBuilder, String> {
    if !is_https {
        if !tls.is_default() {
            return Err("http: `tls` is for an https URL, and this one is http".to_owned());
        }
        let nobody = configured(RootCertStore::empty(), None, None);
        let nobody = nobody.map_err(|error| format!("http: TLS cannot be set up: {error}"))?;
        return Ok(builder.tls_backend_preconfigured(nobody));
    }
    check_tls(tls).map_err(|why| format!("http: in `tls`, {why}"))?;
    if tls.ca.is_some() {
        let own = of_own_authority(tls).map_err(|why| format!("http: in `tls`, {why}"))?;
        return Ok(builder.tls_backend_preconfigured(own));
    }
    // An error means that the program has installed a provider already: that one is used.
    let _ = ring::default_provider().install_default();
    let Some(identity) = &tls.identity else { return Ok(builder) };
    let pem = [&*identity.cert, b"\n", &*identity.key].concat();
    let identity = reqwest::Identity::from_pem(&pem)
        .map_err(|_| "http: in `tls`, `cert` and `key` cannot be used together".to_owned())?;
    Ok(builder.identity(identity))
}

fn of_own_authority(tls: &Tls) -> Result<ClientConfig, BadTls> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(tls.ca.as_deref().unwrap_or_default()).map_err(BadTls::Ca)? {
        roots.add(certificate).map_err(|error| {
            BadTls::Ca(format!("has a certificate that cannot be trusted as an authority: {error}"))
        })?;
    }
    configured(roots, tls.identity.as_ref(), tls.server_name.as_deref())
}

fn configured(
    roots: RootCertStore,
    identity: Option<&Identity>,
    server_name: Option<&str>,
) -> Result<ClientConfig, BadTls> {
    let provider = Arc::new(ring::default_provider());
    let unusable = |error: Error| BadTls::Ca(format!("cannot be used: {error}"));
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder = match server_name {
        None => builder.with_root_certificates(roots),
        Some(name) => {
            let verifier = NameVerifier::new(roots, &provider, name)?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain = certificates(&identity.cert).map_err(BadTls::Cert)?;
            let key = private_key(&identity.key)?;
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                BadTls::Key(format!("does not fit `cert`, or cannot be used: {error}"))
            })?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// A key without a passphrase.
pub(crate) fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, BadTls> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|_| {
        let why = "holds no private key: it has to be PEM, with a line that begins -----BEGIN PRIVATE KEY, and \
                   without a passphrase";
        BadTls::Key(why.to_owned())
    })
}

/// At least one.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let none = || {
        "holds no certificate: it has to be PEM, with a line that begins -----BEGIN CERTIFICATE"
            .to_owned()
    };
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|_| none())?;
    if found.is_empty() { Err(none()) } else { Ok(found) }
}

/// The usual check, except that the certificate has to be for this name.
#[derive(Debug)]
struct NameVerifier {
    usual: Arc<WebPkiServerVerifier>,
    name: ServerName<'static>,
}

impl NameVerifier {
    fn new(
        roots: RootCertStore,
        provider: &Arc<CryptoProvider>,
        name: &str,
    ) -> Result<Self, BadTls> {
        let roots = Arc::new(roots);
        let usual = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
        let usual = usual.map_err(|error| BadTls::Ca(format!("cannot be used: {error}")))?;
        let name = ServerName::try_from(name.to_owned()).map_err(|_| {
            BadTls::ServerName(
                "is no host name; write it as it stands in the certificate".to_owned(),
            )
        })?;
        Ok(Self { usual, name })
    }
}

impl ServerCertVerifier for NameVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.usual.verify_server_cert(end_entity, intermediates, &self.name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}
