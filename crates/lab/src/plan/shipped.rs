//! The built-in plans.

/// A built-in plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShippedPlan {
    /// The name.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

const SHIPPED: [ShippedPlan; 18] = [
    ShippedPlan { name: "cmt-delay", text: include_str!("../../plans/cmt-delay.toml") },
    ShippedPlan { name: "cmt-bandwidth", text: include_str!("../../plans/cmt-bandwidth.toml") },
    ShippedPlan { name: "cmt-three-paths", text: include_str!("../../plans/cmt-three-paths.toml") },
    ShippedPlan { name: "cmt-auto", text: include_str!("../../plans/cmt-auto.toml") },
    ShippedPlan { name: "cmt-schedulers", text: include_str!("../../plans/cmt-schedulers.toml") },
    ShippedPlan { name: "cmt-options", text: include_str!("../../plans/cmt-options.toml") },
    ShippedPlan { name: "cmt-backup", text: include_str!("../../plans/cmt-backup.toml") },
    ShippedPlan { name: "cmt-coupling", text: include_str!("../../plans/cmt-coupling.toml") },
    ShippedPlan { name: "cmt-random", text: include_str!("../../plans/cmt-random.toml") },
    ShippedPlan { name: "cmt-live", text: include_str!("../../plans/cmt-live.toml") },
    ShippedPlan { name: "cmt-random-live", text: include_str!("../../plans/cmt-random-live.toml") },
    ShippedPlan { name: "h3-delay", text: include_str!("../../plans/h3-delay.toml") },
    ShippedPlan { name: "h3-loss", text: include_str!("../../plans/h3-loss.toml") },
    ShippedPlan { name: "h3-policies", text: include_str!("../../plans/h3-policies.toml") },
    ShippedPlan { name: "he-cost", text: include_str!("../../plans/he-cost.toml") },
    ShippedPlan { name: "he-cache", text: include_str!("../../plans/he-cache.toml") },
    ShippedPlan { name: "he-six", text: include_str!("../../plans/he-six.toml") },
    ShippedPlan { name: "he-clients", text: include_str!("../../plans/he-clients.toml") },
];

/// A plan with every key of a simulated situation, each with its values: a reference for authors of plans,
/// and no experiment.
pub const EVERY_KEY: &str = include_str!("../../plans/keys.toml");

/// Returns all of them, in the order of listing.
#[must_use]
pub const fn shipped() -> &'static [ShippedPlan] {
    &SHIPPED
}
