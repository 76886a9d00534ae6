//! Commands with a slip in them.

use clap::error::{ContextKind, ContextValue};
use clap::{Command, Error};

/// Letters that may be wrong, missing, too many or in each other's place.
const SLIPS: usize = 2;

/// With the command that was most likely meant, where clap sees none: letters that changed places
/// make a short word look like another to it.
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

/// The name that was most likely meant, if any was.
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
    fn letters_in_each_others_place_are_seen_through() {
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
