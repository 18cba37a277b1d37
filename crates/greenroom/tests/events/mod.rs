//! What listeners receive: topics (A14), pool events (X01, X02) and dead letters (X03).

mod dead_letters;
mod dead_letters_pool;
mod desk;
mod logs;
mod pool_events;
mod pool_events_of_pools;
mod topic;
