//! The credentials for a target.

use greenroom_config::{Secret, group, options, text};

options! {
    /// The credentials in the header `authorization`: exactly one.
    #[derive(Eq)]
    pub enum Auth = "auth" {
        /// A user and a password.
        Basic(BasicAuth) as "basic" = group();
        /// A token: `Authorization: Bearer TOKEN`.
        Bearer(Secret<String>) as "bearer" = text().secret();
    }
}

options! {
    /// Sent with every request. Write `${NAME}` or `file:PATH` for secrets.
    #[derive(Eq)]
    pub struct BasicAuth = "basic" {
        /// The user, without a colon.
        user: Secret<String> = text().secret();
        /// The password.
        password: Secret<String> = text().secret();
    }
}
