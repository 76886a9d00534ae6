//! Amounts and what links do, as people write them.
//!
//! | file | job |
//! | --- | --- |
//! | `quantity` | amounts with units |
//! | `queue` | what waits before a link, and how much |
//! | `loss` | what a link loses at random |

mod loss;
mod quantity;
mod queue;

pub use loss::Loss;
pub(crate) use quantity::parse as parse_amount;
pub use quantity::{Kind, NotAnAmount, Part, Rate, Size, Time};
pub use queue::{Framing, NotAQueue, Queue};
