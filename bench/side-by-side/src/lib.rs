//! The pages of the guide that compare Greenroom with other crates. Their code is compiled and run
//! by the doctests: `cargo test --doc -p side-by-side`.

#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/guide/compare/channels.md")]
    pub struct Channels;

    #[doc = include_str!("../../../docs/guide/compare/ractor.md")]
    pub struct Ractor;

    #[doc = include_str!("../../../docs/guide/compare/kameo.md")]
    pub struct Kameo;

    #[doc = include_str!("../../../docs/guide/compare/actix.md")]
    pub struct Actix;
}
