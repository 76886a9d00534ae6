//! Misspelt commands.

use clap::error::{ContextKind, ContextValue};
use clap::{Command, Error};

/// The maximum number of wrong, missing, additional or transposed letters.
const SLIPS: usize = 2;

/// Adds the most similar command if clap suggests none: clap does not recognise short words with
/// transposed letters.
pub(super) fn with_suggestion(mut refused: Error, root: &Command) -> Error {
    if refused.get(ContextKind::SuggestedSubcommand).is_some() {
        return refused;
    }
    if let Some(ContextValue::String(given)) = refused.get(ContextKind::InvalidSubcommand)
        && let Some(meant) = nearest(given, root.get_subcommands().map(Command::get_name))
    {
        let meant = ContextValue::Strings(vec![meant.to_owned()]);
        refused.insert(ContextKind::SuggestedSubcommand, meant);
    }
    refused
}

/// Returns the most similar name, if any is similar enough.
pub(crate) fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.map(|name| (strsim::osa_distance(given, name), name));
    let (slips, name) = near.min()?;
    // Of a word of which less than half is left, anything could be meant.
    (slips <= SLIPS && 2 * slips < name.len()).then_some(name)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::flags::Cli;

    #[test]
    fn swapped_letters_are_recognised() {
        let root = Cli::command();
        let nearest = |given: &str| nearest(given, root.get_subcommands().map(Command::get_name));
        for (given, meant) in [("gte", "get"), ("raec", "race"), ("sevre", "serve"), ("ge", "get")]
        {
            assert_eq!(nearest(given), Some(meant));
        }
        for given in ["xyz", "fetch", "download"] {
            assert_eq!(nearest(given), None);
        }
    }
}
