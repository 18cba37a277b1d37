//! The life of actors and workers: hooks, exits, stops (A10, A11, A13), links and monitors (A12),
//! names (A15), systems (A17), timers (A18), restarts (P17 to P21), kills and supervisors.

mod hooks;
mod kills;
mod lifecycle;
mod links;
mod links_of_many;
mod own_address;
mod probe;
mod ready;
mod registry;
mod restarts;
mod stops;
mod supervised_pools;
mod system;
mod table;
mod timers;
mod user_panics;
