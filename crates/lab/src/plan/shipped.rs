//! The plans that come with eyas.

/// A plan that comes with eyas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

const SHIPPED: [Shipped; 3] = [
    Shipped { name: "cmt-delay", text: include_str!("../../plans/cmt-delay.toml") },
    Shipped { name: "cmt-bandwidth", text: include_str!("../../plans/cmt-bandwidth.toml") },
    Shipped { name: "cmt-three-paths", text: include_str!("../../plans/cmt-three-paths.toml") },
];

/// All of them, in the order of telling.
#[must_use]
pub const fn shipped() -> &'static [Shipped] {
    &SHIPPED
}
