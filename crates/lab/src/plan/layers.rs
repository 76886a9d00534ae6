//! Merging tables: the upper one takes precedence, key by key.

use toml::{Table, Value};

use super::PlanError;

/// A setting from the command line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SettingLayer {
    /// The dotted key.
    pub(super) key: String,
    /// The same as nested tables.
    pub(super) table: Table,
}

impl SettingLayer {
    /// Returns the first part of the key.
    pub(super) fn first(&self) -> &str {
        self.key.split('.').next().unwrap_or_default()
    }
}

/// Merges `upper` into `lower`. Tables are merged; anything else is replaced.
pub(super) fn merge(lower: &mut Table, upper: &Table) {
    for (key, value) in upper {
        match (lower.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            _ => {
                lower.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Returns a table with the value at this dotted key.
pub(super) fn nest(key: &str, value: Value) -> Table {
    let mut value = value;
    for part in key.rsplit('.') {
        let mut table = Table::new();
        table.insert(part.to_owned(), value);
        value = Value::Table(table);
    }
    match value {
        Value::Table(table) => table,
        _ => Table::new(),
    }
}

/// Parses `KEY.KEY=VALUE`. The value is parsed as TOML if possible, and is otherwise a string.
pub(super) fn parse_set(text: &str) -> Result<SettingLayer, PlanError> {
    let refused =
        || PlanError(format!("--set {text}: give PARAMETER=VALUE, such as path.B.delay='50 ms'"));
    let (key, value) = text.split_once('=').ok_or_else(refused)?;
    let key = key.trim();
    if key.is_empty() || key.split('.').any(str::is_empty) {
        return Err(refused());
    }
    let value = match toml::from_str::<Table>(&format!("value = {value}")) {
        Ok(mut table) => table.remove("value").ok_or_else(refused)?,
        Err(_) => Value::String(value.trim().to_owned()),
    };
    Ok(SettingLayer { key: key.to_owned(), table: nest(key, value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn single_keys_are_replaced() {
        let mut lower = table("a.b = 1\na.c = 2\nd = [1]");
        merge(&mut lower, &table("a.b = 3\nd = [4, 5]"));
        assert_eq!(lower, table("a.b = 3\na.c = 2\nd = [4, 5]"));
    }

    #[test]
    fn overrides_are_toml_or_text() {
        let set = |text: &str| parse_set(text).unwrap().table;
        assert_eq!(set("path.B.delay=50 ms"), table("path.B.delay = '50 ms'"));
        assert_eq!(set("association.nr_sack=true"), table("association.nr_sack = true"));
        assert_eq!(set("association.only=['A']"), table("association.only = ['A']"));
        assert!(parse_set("path.B.delay").is_err());
        assert!(parse_set("path..delay=1").is_err());
    }
}
