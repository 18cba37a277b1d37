//! The pools and handlers of a running engine, and a configuration that is brought to all of them.

use super::{
    change::{ChangeError, known},
    handle::Control,
    handler::{HandlerControl, RetryChange},
    pool::PoolControl,
};
use crate::router::{DEFAULT_POOL, HandlerConfig, PoolConfig};

impl Control {
    /// The pool of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn pool(&self, name: &str) -> Result<PoolControl, ChangeError> {
        let place = self.shared.process.pools.iter().position(|pool| &*pool.name == name);
        place.map(|place| PoolControl { control: self.clone(), place }).ok_or_else(|| {
            let known = known(self.shared.process.pools.iter().map(|pool| pool.name.as_str()));
            ChangeError::NoSuchPool { name: name.to_owned(), known }
        })
    }

    /// All pools, in the order of their settings; `default` comes first if it is not set.
    pub fn pools(&self) -> Vec<PoolControl> {
        let places = 0..self.shared.process.pools.len();
        places.map(|place| PoolControl { control: self.clone(), place }).collect()
    }

    /// The handler of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn handler(&self, name: &str) -> Result<HandlerControl, ChangeError> {
        let place = self.shared.process.handlers.iter().position(|handler| &*handler.name == name);
        place.map(|place| HandlerControl { shared: self.shared.clone(), place }).ok_or_else(|| {
            let known =
                known(self.shared.process.handlers.iter().map(|handler| handler.name.as_str()));
            ChangeError::NoSuchHandler { name: name.to_owned(), known }
        })
    }

    /// Each handler, in the order of their settings.
    pub fn handlers(&self) -> Vec<HandlerControl> {
        let places = 0..self.shared.process.handlers.len();
        places.map(|place| HandlerControl { shared: self.shared.clone(), place }).collect()
    }

    /// Brings the pools and handlers to this configuration, as far as that is possible while the
    /// engine runs, and returns the changes, for example `pools.erp.workers`. It first checks that
    /// all of them are possible.
    ///
    /// # Errors
    /// A pool or handler was added, removed, or changed in a way that needs a restart: nothing has
    /// changed then. If a pool refuses a size (it is stopping, or the size is out of range),
    /// earlier changes stay in effect.
    pub fn apply(
        &self,
        pools: &[(&str, PoolConfig)],
        handlers: &[(&str, HandlerConfig)],
    ) -> Result<Vec<String>, ChangeError> {
        let added = |what: &str, name: &str| {
            ChangeError::already_started(format!("{what}.{name} (which is new)"))
        };
        let gone = |what: &str, name: &str| {
            ChangeError::already_started(format!("{what}.{name} (which is gone)"))
        };
        for own in self.pools() {
            let name = own.name();
            if name != DEFAULT_POOL && pools.iter().all(|(other, _)| *other != name) {
                return Err(gone("pools", name));
            }
        }
        for own in self.handlers() {
            if handlers.iter().all(|(name, _)| *name != own.name()) {
                return Err(gone("handlers", own.name()));
            }
        }
        let mut changes = Vec::new();
        for (name, config) in pools {
            let pool = self.pool(name).map_err(|_| added("pools", name))?;
            changes.push(pool.changes(config)?);
        }
        let mut retries = Vec::new();
        for (name, config) in handlers {
            let handler = self.handler(name).map_err(|_| added("handlers", name))?;
            let of_pool = pools.iter().find(|(pool, _)| *pool == handler.pool().as_str());
            let of_pool = of_pool.map_or_else(|| handler.pool_config(), |(_, config)| *config);
            retries.push(handler.changes(config, &of_pool)?);
        }
        let mut done = Vec::new();
        for change in changes.into_iter().flatten() {
            done.push(change.carry_out()?);
        }
        done.extend(retries.into_iter().flatten().map(RetryChange::carry_out));
        Ok(done)
    }
}
