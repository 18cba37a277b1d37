//! Names in the URLs of events: resolved once for a connection, which is made to one of the
//! addresses that were looked at. A name that resolves to another address the second time (DNS
//! rebinding) gains nothing by that.

use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};

use super::allow::Allow;
use crate::BoxFuture;

/// The addresses of a name.
pub(super) type Lookup = fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;

/// A resolver that leaves out the addresses that may not be reached.
pub(super) struct GuardedResolver {
    pub(super) allow: Arc<Allow>,
    pub(super) lookup: Lookup,
}

/// No address of a host may be reached.
#[derive(Debug, thiserror::Error)]
#[error(
    "{host} leads to {address}, which is not public; if that is meant, add the range to `allow` of `http.url`"
)]
pub(super) struct RefusedAddress {
    host: String,
    address: IpAddr,
}

/// By the system.
pub(super) fn system(host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
    Box::pin(async move {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|found| found.ip()).collect())
    })
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (host, allow) = (name.as_str().to_owned(), self.allow.clone());
        let looked_up = (self.lookup)(host.clone());
        Box::pin(async move {
            let found = looked_up.await?;
            let refused = found.iter().find(|address| !allow.reaches(**address)).copied();
            let open: Vec<_> =
                found.into_iter().filter(|address| allow.reaches(*address)).collect();
            match refused {
                Some(address) if open.is_empty() => Err(RefusedAddress { host, address }.into()),
                _ => {
                    Ok(Box::new(open.into_iter().map(|address| SocketAddr::new(address, 0)))
                        as Addrs)
                }
            }
        })
    }
}

/// Addresses in a URL are not resolved, so they are looked at here.
///
/// # Errors
/// The host is an address that may not be reached.
pub(super) fn check_host(url: &Url, allow: &Allow) -> Result<(), RefusedAddress> {
    let host = url.host_str().unwrap_or_default();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.parse() {
        Ok(address) if !allow.reaches(address) => {
            Err(RefusedAddress { host: host.to_owned(), address })
        }
        _ => Ok(()),
    }
}

/// That a connection failed because of an address.
pub(super) fn refused(error: &reqwest::Error) -> Option<&RefusedAddress> {
    std::iter::successors(error.source(), |&cause| cause.source())
        .find_map(|cause| cause.downcast_ref())
}
