//! Every option of the configuration, declared once, as the types that it is read into. Decoding,
//! defaults, the JSON Schema and the reference page follow from the declarations;
//! `docs/extending-options.md` explains how to add one.

mod admin;
mod advisor;
mod condition;
mod config;
mod handler;
mod input;
mod layer;
mod output;
mod pool;
mod records;
mod telemetry;

pub use self::{
    admin::{AdminConfig, MetricsConfig},
    advisor::{AdvisorConfig, Autotune},
    condition::FieldCondition,
    config::{
        AuditConfig, Config, DeadLetterFile, DeadLettersConfig, LetterRetention, LetterStoreConfig,
        LettersTo, LoopbackConfig, ShutdownConfig,
    },
    handler::{AckWhen, HandlerConfig},
    input::InputConfig,
    layer::{Breaker, DeduplicationConfig, LayerConfig, Schema, Schemas},
    output::OutputConfig,
    pool::{
        AdaptiveConfig, Batch, DEFAULT_SHARE, LimitConfig, OnFinalFailure, PoolConfig, ShareConfig,
    },
    records::{AttributeFrom, AttributeRule, RecordsConfig},
    telemetry::{OtlpConfig, TelemetryConfig},
};
