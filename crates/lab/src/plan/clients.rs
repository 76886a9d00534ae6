//! Clients under test, one file each: the built-in ones and those of users. In a plan each is a
//! curve.

use std::collections::BTreeMap;

use eyas_emulator::units::in_words_of_the_file;
use serde::Deserialize;
use toml::{Table, Value};

use super::PlanError;
use crate::situation::live::ClientProgram;

/// The placeholder for the client in its expectations.
const PLACEHOLDER: &str = "{client}";
/// The key under the client's name in the plan's tables.
const CURVES: &str = "curve";

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        /// The built-in files.
        const SHIPPED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../clients/", $name, ".toml")))),+];
    };
}

shipped! {
    "eyas", "curl-7.88", "curl", "libcurl", "libcurl-h3", "wget", "chromium", "chromium-he3", "firefox",
    "firefox-he3", "node", "deno", "bun", "go", "java", "reqwest", "python-asyncio", "python-asyncio-he",
    "python-requests", "python-httpx", "python-httpx-async", "python-aiohttp", "python-niquests",
    "python-niquests-he",
}

/// The file of a client; all other keys belong to the program itself.
struct ClientFile {
    id: String,
    label: String,
    program: Table,
    expect: Vec<PublishedExpectation>,
    published: BTreeMap<String, String>,
}

/// What the authors of a client, or a publication, state about it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedExpectation {
    text: Option<String>,
    published: Option<String>,
    /// An expression in which `{client}` is the client.
    value: String,
    about: Option<String>,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    note: String,
    at_least: Option<f64>,
    at_most: Option<f64>,
    above: Option<f64>,
    below: Option<f64>,
}

/// The published values of each client, by its identifier and then by the label of a column.
pub(super) type PublishedValues = BTreeMap<String, BTreeMap<String, String>>;

/// Adds the clients that the plan names, and those of `own` files, as curves with their claims. A
/// client in `own` replaces a built-in one with the same name.
pub(super) fn add(table: &mut Table, own: &[String]) -> Result<PublishedValues, PlanError> {
    let named: Option<Vec<String>> = match table.remove("clients") {
        None => None,
        Some(names) => Some(
            names
                .try_into()
                .map_err(|cause| PlanError(format!("clients: a list of names: {cause}")))?,
        ),
    };
    if named.is_none() && !own.is_empty() {
        return Err(PlanError("--client: this plan tests no clients; he-clients does".to_owned()));
    }
    let own: Vec<ClientFile> = own.iter().map(|text| read(text)).collect::<Result<_, _>>()?;
    let ids: Vec<String> = own.iter().map(|client| client.id.clone()).collect();
    let mut clients = Vec::new();
    for name in named.unwrap_or_default().iter().filter(|name| !ids.contains(name)) {
        clients.push(read(shipped(name)?)?);
    }
    clients.extend(own);
    let mut published = PublishedValues::new();
    for client in clients {
        published.insert(client.id.clone(), client.published.clone());
        append(table, "claim", client.claims());
        append(table, CURVES, vec![client.curve()]);
    }
    restrict_shorter_runs(table, &ids);
    Ok(published)
}

fn shipped(name: &str) -> Result<&'static str, PlanError> {
    let found = SHIPPED.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let known: Vec<&str> = SHIPPED.iter().map(|(known, _)| *known).collect();
        PlanError(format!("clients: there is no {name:?}; there are {}", known.join(", ")))
    })
}

fn read(text: &str) -> Result<ClientFile, PlanError> {
    let refused = |cause: &dyn std::fmt::Display| PlanError(format!("client: {cause}"));
    let mut program: Table =
        toml::from_str(text).map_err(|cause| refused(&in_words_of_the_file(&cause)))?;
    let id = match program.remove("id") {
        Some(Value::String(id)) => id,
        _ => return Err(refused(&"id is missing: one word for tables, such as id = \"mine\"")),
    };
    let refused = |cause: &dyn std::fmt::Display| PlanError(format!("client {id:?}: {cause}"));
    let label = match program.remove("label") {
        Some(Value::String(label)) => label,
        None => id.clone(),
        Some(_) => return Err(refused(&"label: a text")),
    };
    let mut take = |key: &str, empty: Value| program.remove(key).unwrap_or(empty);
    let expect = take("expect", Value::Array(Vec::new()));
    let expect = expect
        .try_into()
        .map_err(|cause| refused(&format!("expect: {}", in_words_of_the_file(&cause))))?;
    let published = take("published", Value::Table(Table::new()));
    let published = published
        .try_into()
        .map_err(|cause| refused(&format!("published: {}", in_words_of_the_file(&cause))))?;
    // Parsed here for the sake of the error message; the situation parses it again.
    let _: ClientProgram = program
        .clone()
        .try_into()
        .map_err(|cause: toml::de::Error| refused(&in_words_of_the_file(&cause)))?;
    Ok(ClientFile { id, label, program, expect, published })
}

impl ClientFile {
    fn curve(self) -> Value {
        let live = super::layers::nest("live.client", Value::Table(self.program));
        let mut curve = Table::new();
        curve.insert("id".to_owned(), Value::String(self.id));
        curve.insert("label".to_owned(), Value::String(self.label));
        curve.insert("set".to_owned(), Value::Table(live));
        Value::Table(curve)
    }

    fn claims(&self) -> Vec<Value> {
        let claim = |(number, expected): (usize, &PublishedExpectation)| {
            let text = |text: &Option<String>, otherwise: &str| {
                Value::String(text.clone().unwrap_or_else(|| otherwise.to_owned()))
            };
            let value = expected.value.replace(PLACEHOLDER, &self.id);
            let mut check = Table::new();
            let mut put = |key: &str, value: Value| check.insert(key.to_owned(), value);
            put("value", Value::String(value.clone()));
            put("about", text(&expected.about, "what was measured"));
            put("unit", Value::String(expected.unit.clone()));
            let bounds = [
                ("at_least", expected.at_least),
                ("at_most", expected.at_most),
                ("above", expected.above),
                ("below", expected.below),
            ];
            for (key, bound) in bounds {
                bound.map(|bound| put(key, Value::Float(bound)));
            }
            let mut claim = Table::new();
            let mut put = |key: &str, value: Value| claim.insert(key.to_owned(), value);
            put("id", Value::String(format!("{}-{}", self.id, number + 1)));
            put("text", text(&expected.text, &format!("{}: {value}", self.label)));
            put("published", text(&expected.published, "the client's file"));
            put("note", Value::String(expected.note.clone()));
            put("check", Value::Array(vec![Value::Table(check)]));
            Value::Table(claim)
        };
        self.expect.iter().enumerate().map(claim).collect()
    }
}

fn append(table: &mut Table, key: &str, more: Vec<Value>) {
    let list = table.entry(key).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = list {
        list.extend(more);
    }
}

/// Restricts shorter runs to existing clients, and includes the user's clients in any case.
fn restrict_shorter_runs(table: &mut Table, own: &[String]) {
    let id = |curve: &Value| curve.get("id").and_then(Value::as_str).map(str::to_owned);
    let curves: Vec<String> = match table.get(CURVES) {
        Some(Value::Array(curves)) => curves.iter().filter_map(id).collect(),
        _ => return,
    };
    for extent in ["quick", "standard"] {
        let groups = table.get_mut(extent).and_then(|extent| extent.get_mut("points"));
        for group in groups.and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(Value::Array(named)) = group.get_mut("curves") else { continue };
            named.retain(|name| {
                name.as_str().is_some_and(|name| curves.iter().any(|id| id == name))
            });
            for id in own {
                if !named.iter().any(|name| name.as_str() == Some(id)) {
                    named.push(Value::String(id.clone()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, PlanExtent, PlanOptions};

    fn he_clients(options: &PlanOptions) -> Result<Plan, PlanError> {
        let shipped = crate::plan::shipped().iter().find(|plan| plan.name == "he-clients").unwrap();
        Plan::parse(shipped.text, options)
    }

    fn client_options(client: &str, set: &[&str]) -> PlanOptions {
        PlanOptions {
            extent: PlanExtent::Quick,
            set: set.iter().map(|text| (*text).to_owned()).collect(),
            clients: vec![client.to_owned()],
            ..PlanOptions::default()
        }
    }

    const MINE: &str = "id = 'mine'\ncommand = 'my-client {url}'\nversion = 'my-client --version'
        [[expect]]\nvalue = 'p50.byte[v6-drop, {client}, 0 ms]'\nunit = 'ms'\nat_most = 400";

    #[test]
    fn files_are_named_after_their_clients() {
        for (name, text) in SHIPPED {
            let client = read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(client.id, *name);
        }
    }

    #[test]
    fn a_users_client_is_a_curve_with_its_claims() {
        let plan = he_clients(&client_options(MINE, &[])).unwrap();
        let mine: Vec<_> = plan.grid.points.iter().filter(|point| point.curve == "mine").collect();
        assert!(mine.iter().any(|point| point.scene == "v6-drop"), "{mine:?}");
        let claim = plan.claims.iter().find(|claim| claim.id == "mine-1").unwrap();
        assert_eq!(claim.checks[0].text, "p50.byte[v6-drop, mine, 0 ms]");
        assert!(plan.grid.points.iter().any(|point| point.curve == "eyas"));
    }

    #[test]
    fn other_clients_can_be_left_out_with_their_claims() {
        let plan = he_clients(&client_options(MINE, &["clients=[]"])).unwrap();
        assert!(plan.grid.points.iter().all(|point| point.curve == "mine"));
        assert_eq!(plan.claims.len(), 1);
    }

    #[test]
    fn a_users_client_replaces_a_built_in_one() {
        let plan = he_clients(&client_options(&MINE.replace("mine", "wget"), &[])).unwrap();
        assert_eq!(plan.grid.curves.iter().filter(|curve| curve.id == "wget").count(), 1);
    }

    #[test]
    fn errors_name_the_key() {
        let error =
            |client: &str| he_clients(&client_options(client, &[])).unwrap_err().to_string();
        assert!(error("command = 'c {url}'").contains("id is missing"));
        assert!(error(&format!("comand = 'c'\n{MINE}")).contains("comand"));
        assert!(error(&MINE.replace("{url}", "")).contains("{url} is missing"));
        assert!(error(&MINE.replace("p50.byte[", "p50.byte[no-")).contains("no-v6-drop"));
        let unknown =
            he_clients(&client_options(MINE, &["clients=['lynx']"])).unwrap_err().to_string();
        assert!(unknown.contains("\"lynx\"") && unknown.contains("wget"), "{unknown}");
        let other = crate::plan::shipped().iter().find(|plan| plan.name == "h3-delay").unwrap();
        let refused = Plan::parse(other.text, &client_options(MINE, &[])).unwrap_err().to_string();
        assert!(refused.contains("tests no clients"), "{refused}");
    }
}
