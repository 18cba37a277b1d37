//! Whom a connection to an `http` target trusts: the same for handlers and outputs.

use std::{
    io,
    path::{Path, PathBuf},
};

use greenroom_config::{At, options, path, text};

use super::{BadTls, Identity, Tls, check_tls};

options! {
    /// For `https`. Files are PEM. Each reload reads them again, except those of `telemetry`.
    pub struct HttpTls = "tls", then HttpTls::cert_with_its_key {
        /// A file with the certificates of the authorities to trust, instead of the system's.
        ca: Option<PathBuf> = path().optional();
        /// A file with the certificate to present to the target, and its intermediates.
        cert: Option<PathBuf> = path().optional();
        /// The file with its private key, without a passphrase.
        key: Option<PathBuf> = path().optional();
        /// The name in the certificate of the target, if that differs from the host of the URL.
        /// Needs a `ca`.
        server_name: Option<String> = text().optional();
    }
}

impl HttpTls {
    fn cert_with_its_key(self, at: &mut At<'_>) -> Option<Self> {
        let help = "the target is shown a certificate with its key: name both files";
        at.both(("cert", self.cert.is_some()), ("key", self.key.is_some()), help)?;
        Some(self)
    }
}

/// A file that cannot be read.
#[derive(Debug)]
pub struct UnreadFile {
    /// The option that names it.
    pub option: &'static str,
    /// Its path.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

impl std::fmt::Display for UnreadFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { option, path, error } = self;
        write!(f, "cannot read `tls.{option}`, {}: {error}", path.display())
    }
}

impl HttpTls {
    /// Certificates and keys as they are in their files now.
    ///
    /// # Errors
    /// The first file that cannot be read.
    pub fn read(&self) -> Result<Tls, UnreadFile> {
        let ca = self.ca.as_deref().map(|path| read("ca", path)).transpose()?;
        let identity = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                Some(Identity { cert: read("cert", cert)?, key: read("key", key)? })
            }
            _ => None,
        };
        Ok(Tls { ca, identity, server_name: self.server_name.clone() })
    }
}

impl UnreadFile {
    /// Reports it below `tls`, which is at `at`.
    pub(crate) fn report(&self, at: &mut At<'_>) {
        let shown = at.written(self.option).show(&self.path.display().to_string());
        let text = format!("cannot read `{shown}`: {}", self.error);
        at.error(self.option, text, "paths start at the directory of the configuration file");
    }
}

/// How to see what is wrong with a certificate.
pub(crate) const SHOW: &str = "`openssl x509 -in FILE -text -noout` shows what a certificate holds";

/// What to do about a key that does not fit its certificate.
pub(crate) const ITS_KEY: &str = "name the key that the certificate was made with";

impl HttpTls {
    /// Reports certificates that cannot be read or used, and keys that do not fit them.
    pub fn reach(&self, at: &mut At<'_>) {
        let tls = match self.read() {
            Ok(tls) => tls,
            Err(unread) => return unread.report(at),
        };
        let Err(why) = check_tls(&tls) else { return };
        let (option, help) = match why {
            BadTls::Ca(_) => ("ca", SHOW),
            BadTls::Cert(_) => ("cert", SHOW),
            BadTls::Key(_) => ("key", ITS_KEY),
            BadTls::ServerName(_) => ("server_name", "leave it out to expect the host of the URL"),
        };
        at.error(option, why.to_string(), help);
    }
}

pub(crate) fn read(option: &'static str, path: &Path) -> Result<Vec<u8>, UnreadFile> {
    std::fs::read(path).map_err(|error| UnreadFile { option, path: path.to_owned(), error })
}
