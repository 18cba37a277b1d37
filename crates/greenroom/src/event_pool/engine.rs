//! The mechanism that keeps the messages of one key in order, if there is one.

use greenroom_config::words;

words! {
    /// How an [`EventPool`](super::EventPool) distributes its messages. One key of the
    /// configuration, so that a service can compare, and go back.
    ///
    /// | | one key's messages | a slow key delays |
    /// |---|---|---|
    /// | `keyed` | in order, by any worker | no other key |
    /// | `sticky` | in order, by the same worker | the other keys of its worker |
    /// | `shared` | in no order | no other key |
    pub enum Engine {
        /// In order per key, by any free worker. The usual choice.
        Keyed = "keyed",
        /// In order per key, by the worker that has it: for workers that keep state
        /// for each of their keys.
        Sticky = "sticky",
        /// Without order: for independent messages.
        Shared = "shared",
    }
}
