//! Amounts and properties of links, as written in plans.
//!
//! | file | purpose |
//! | --- | --- |
//! | `quantity` | amounts with units |
//! | `queue` | the queue before a link |
//! | `loss` | the random losses of a link |

mod loss;
mod quantity;
mod queue;

pub use loss::Loss;
pub(crate) use quantity::parse as parse_amount;
pub use quantity::{Kind, ParseAmountError, Part, Rate, Size, Time};
pub use queue::{Framing, ParseQueueError, Queue};
