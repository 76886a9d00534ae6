//! The built-in plans.

/// A built-in plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// The name.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

const SHIPPED: [Shipped; 18] = [
    Shipped { name: "cmt-delay", text: include_str!("../../plans/cmt-delay.toml") },
    Shipped { name: "cmt-bandwidth", text: include_str!("../../plans/cmt-bandwidth.toml") },
    Shipped { name: "cmt-three-paths", text: include_str!("../../plans/cmt-three-paths.toml") },
    Shipped { name: "cmt-auto", text: include_str!("../../plans/cmt-auto.toml") },
    Shipped { name: "cmt-schedulers", text: include_str!("../../plans/cmt-schedulers.toml") },
    Shipped { name: "cmt-options", text: include_str!("../../plans/cmt-options.toml") },
    Shipped { name: "cmt-backup", text: include_str!("../../plans/cmt-backup.toml") },
    Shipped { name: "cmt-coupling", text: include_str!("../../plans/cmt-coupling.toml") },
    Shipped { name: "cmt-random", text: include_str!("../../plans/cmt-random.toml") },
    Shipped { name: "cmt-live", text: include_str!("../../plans/cmt-live.toml") },
    Shipped { name: "cmt-random-live", text: include_str!("../../plans/cmt-random-live.toml") },
    Shipped { name: "h3-delay", text: include_str!("../../plans/h3-delay.toml") },
    Shipped { name: "h3-loss", text: include_str!("../../plans/h3-loss.toml") },
    Shipped { name: "h3-policies", text: include_str!("../../plans/h3-policies.toml") },
    Shipped { name: "he-cost", text: include_str!("../../plans/he-cost.toml") },
    Shipped { name: "he-cache", text: include_str!("../../plans/he-cache.toml") },
    Shipped { name: "he-six", text: include_str!("../../plans/he-six.toml") },
    Shipped { name: "he-clients", text: include_str!("../../plans/he-clients.toml") },
];

/// A plan with every key of a simulated situation, each with its values: a reference for authors of plans,
/// and no experiment.
pub const EVERY_KEY: &str = include_str!("../../plans/keys.toml");

/// Returns all of them, in the order of listing.
#[must_use]
pub const fn shipped() -> &'static [Shipped] {
    &SHIPPED
}
