//! The systems that are compared, one in each file.

pub mod actix;
pub mod crossbeam;
pub mod flume;
pub mod kameo;
pub mod kameo_pool;
pub mod kanal;
pub mod queues;
pub mod ractor;
