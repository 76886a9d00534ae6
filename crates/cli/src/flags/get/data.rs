//! The data of `-d` and its relatives, which are sent in the order in which they are given.

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, Error, FromArgMatches};

/// How a piece of data is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataForm {
    /// As it is, or `@FILE`, whose line breaks are left out.
    Text,
    /// As it is, or `@FILE`, sent unchanged.
    Binary,
    /// As it is, even if it begins with `@`.
    Raw,
    /// `TEXT`, `=TEXT`, `NAME=TEXT`, `@FILE` or `NAME@FILE`, percent-encoded except for the name.
    UrlEncoded,
}

/// The flags: their name, their form, and their help.
const FLAGS: [(&str, DataForm, &str); 4] = [
    (
        "data",
        DataForm::Text,
        "Send this data with POST; @FILE reads a file, @- standard input; several are joined with &",
    ),
    (
        "data-binary",
        DataForm::Binary,
        "Like --data, but send @FILE unchanged, including line breaks",
    ),
    ("data-raw", DataForm::Raw, "Like --data, but @ has no special meaning"),
    (
        "data-urlencode",
        DataForm::UrlEncoded,
        "Like --data, but percent-encode it: TEXT, NAME=TEXT, @FILE or NAME@FILE",
    ),
];

/// One piece of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataPiece {
    /// How it is given.
    pub(crate) form: DataForm,
    /// The value of the flag.
    pub(crate) text: String,
}

/// The data of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DataFlags(pub(crate) Vec<DataPiece>);

impl Args for DataFlags {
    fn augment_args(command: Command) -> Command {
        let mut command = command.next_help_heading("Request");
        for (name, _, help) in FLAGS {
            let mut arg = Arg::new(id(name)).long(name).value_name("DATA").help(help);
            if name == "data" {
                arg = arg.short('d').visible_alias("data-ascii");
            }
            command = command.arg(arg.action(ArgAction::Append).allow_hyphen_values(true));
        }
        // The name under which other flags conflict with all of them.
        command.group(ArgGroup::new("data").args(FLAGS.map(|(name, ..)| id(name))).multiple(true))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Returns the identifier of a flag, other than that of the group.
fn id(name: &'static str) -> &'static str {
    if name == "data" { "data-text" } else { name }
}

impl FromArgMatches for DataFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut all = Vec::new();
        for (name, form, _) in FLAGS {
            let at = matches.indices_of(id(name)).into_iter().flatten();
            let texts = matches.get_many::<String>(id(name)).into_iter().flatten();
            all.extend(
                at.zip(texts).map(|(at, text)| (at, DataPiece { form, text: text.clone() })),
            );
        }
        all.sort_by_key(|(index, _)| *index);
        Ok(Self(all.into_iter().map(|(_, piece)| piece).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
