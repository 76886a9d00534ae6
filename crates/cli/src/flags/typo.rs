//! Misspelt commands.

use clap::error::{ContextKind, ContextValue};
use clap::{Command, Error};

/// The maximum number of wrong, missing, additional or transposed letters.
const MAX_TYPOS: usize = 2;

/// Adds the most similar command if clap suggests none: clap does not recognise short words with
/// transposed letters.
pub(super) fn with_suggestion(mut error: Error, root: &Command) -> Error {
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return error;
    }
    if let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(suggestion) = nearest(given, root.get_subcommands().map(Command::get_name))
    {
        let suggestion = ContextValue::Strings(vec![suggestion.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, suggestion);
    }
    error
}

/// Returns the most similar name, if any is similar enough.
pub(crate) fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.map(|name| (strsim::osa_distance(given, name), name));
    let (typos, name) = near.min()?;
    // If less than half of the word is right, it could be any command.
    (typos <= MAX_TYPOS && 2 * typos < name.len()).then_some(name)
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
        for (given, suggestion) in
            [("gte", "get"), ("raec", "race"), ("sevre", "serve"), ("ge", "get")]
        {
            assert_eq!(nearest(given), Some(suggestion));
        }
        for given in ["xyz", "fetch", "download"] {
            assert_eq!(nearest(given), None);
        }
    }
}
