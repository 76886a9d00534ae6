//! `eyas replay`: a recorded race, run again.

use serde_json::Value;

use crate::account::{self, Account, explanation, plan_shape};
use crate::failure::Failure;
use crate::flags::{CommonFlags, ReplayFlags};
use crate::output;
use crate::shape::value;
use crate::terminal::{Line, Look, Paint};
use crate::timeline;

/// Runs it again; a decision that differs is a failure that names the step.
pub(crate) fn run(flags: &ReplayFlags, common: &CommonFlags) -> Result<(), Failure> {
    let account = Account::of(account::read(&flags.file)?)?;
    if common.json {
        let target = account.trace.header.setup.target.to_string();
        let mut object = serde_json::json!({ "identical": true, "target": target });
        if let (Value::Object(object), Value::Object(race)) = (&mut object, value(&account.shape()))
        {
            object.extend(race);
            if flags.explain {
                object.insert("plan".to_owned(), value(&plan_shape(&account.report.plan)));
            }
        }
        return output::object(&object);
    }
    let look = Look::of_stdout(common.color);
    let mut lines = super::race::heading(&account);
    lines.extend(timeline::draw(&account.picture_with_dns(), look));
    if flags.explain {
        lines.extend(explanation(&account.report.plan, look));
    }
    let steps = account.trace.steps.len();
    let said = format!("{steps} steps, each as it was recorded.");
    lines.extend([Line::new(), Line::new().with(Paint::Good, said)]);
    output::page(&lines, look)
}
