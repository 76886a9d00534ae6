//! What is inside: the list of all crates (CycloneDX), their licences, and the checksums of the packages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::archive::{files, name_of, sha256};
use super::{Release, VERSION, file_error, written};
use crate::run::{command, output};

/// The file with the checksums, as `sha256sum --check` reads it.
const CHECKSUMS: &str = "SHA256SUMS";

/// One crate that the command is made of.
struct LinkedCrate {
    name: String,
    version: String,
    licence: String,
    checksum: Option<String>,
    folder: PathBuf,
}

/// Writes the list of materials and the checksums.
pub(super) fn make(release: &Release) -> Result<(), String> {
    let list = serde_json::to_string_pretty(&bill_of_materials(release)?)
        .map_err(|error| error.to_string())?;
    written(&release.out.join(format!("eyas-{VERSION}.cdx.json")), list + "\n")?;
    for installer in ["install.sh", "install.ps1"] {
        let source = crate::run::workspace().join("dist").join(installer);
        super::copied(&source, &release.out.join(installer))?;
    }
    let mut lines = String::new();
    for path in files(&release.out)? {
        let name = name_of(&path);
        if name != CHECKSUMS {
            let content = fs::read(&path).map_err(|error| file_error(&path, &error))?;
            lines += &format!("{}  {name}\n", sha256(&content));
        }
    }
    written(&release.out.join(CHECKSUMS), lines)
}

/// Prints what there is, with its size.
pub(super) fn print(release: &Release) -> Result<(), String> {
    println!("\n{}:", release.out.display());
    for path in files(&release.out)? {
        let bytes = fs::metadata(&path).map_err(|error| file_error(&path, &error))?.len();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        println!("  {:>8.2} MB  {name}", bytes as f64 / 1e6);
    }
    Ok(())
}

/// Returns the licence texts of all crates that the command is made of, each text once.
pub(super) fn third_party_licences() -> Result<String, String> {
    let mut text = String::from(
        "eyas contains the following crates. Where a crate may be used under one of several licences, it is used\n\
         under MIT where that is one of them.\n",
    );
    let mut seen = BTreeSet::new();
    for one in linked_crates()? {
        text += &format!("\n== {} {}: {}\n", one.name, one.version, one.licence);
        for file in files(&one.folder)? {
            let name = file.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            let is_licence = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT"];
            if !is_licence.iter().any(|start| name.starts_with(start)) {
                continue;
            }
            let content = fs::read(&file).map_err(|error| file_error(&file, &error))?;
            let content = String::from_utf8_lossy(&content).trim().to_owned();
            if seen.insert(content.clone()) {
                text += &format!("\n{content}\n");
            }
        }
    }
    Ok(text)
}

/// Returns the list of materials in the form of CycloneDX 1.5.
fn bill_of_materials(release: &Release) -> Result<Value, String> {
    let components: Vec<Value> = linked_crates()?.iter().map(component).collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "eyas",
                "version": VERSION,
                "properties": [{ "name": "commit", "value": release.commit }],
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            },
        },
        "components": components,
    }))
}

fn component(one: &LinkedCrate) -> Value {
    let url = format!("pkg:cargo/{}@{}", one.name, one.version);
    let mut component = json!({
        "type": "library",
        "bom-ref": url,
        "name": one.name,
        "version": one.version,
        "purl": url,
        // `/` is how crates wrote OR before SPDX.
        "licenses": [{ "expression": one.licence.replace('/', " OR ") }],
    });
    if let (Some(sum), Some(fields)) = (&one.checksum, component.as_object_mut()) {
        fields.insert("hashes".into(), json!([{ "alg": "SHA-256", "content": sum }]));
    }
    component
}

/// Returns all crates of others that are linked into the command under Linux or Windows, sorted.
fn linked_crates() -> Result<Vec<LinkedCrate>, String> {
    let arguments = [
        "tree",
        "--locked",
        "--package",
        "eyas-cli",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--target",
        "x86_64-unknown-linux-musl",
        "--target",
        "x86_64-pc-windows-gnu",
        "--format",
        "{p}",
    ];
    let tree = output(&mut command("cargo", &arguments))?;
    let mut linked = BTreeSet::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            linked.insert((name.to_owned(), version.trim_start_matches('v').to_owned()));
        }
    }
    let arguments = ["metadata", "--locked", "--format-version", "1"];
    let metadata = output(&mut command("cargo", &arguments))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let sums = checksums_of_lock()?;
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut crates: Vec<_> = packages
        .iter()
        .filter(|package| !package["source"].is_null())
        .map(|package| (text(&package["name"]), text(&package["version"]), package))
        .filter(|(name, version, _)| linked.contains(&(name.clone(), version.clone())))
        .map(|(name, version, package)| {
            let key = format!("{name} {version}");
            let folder = PathBuf::from(text(&package["manifest_path"]));
            LinkedCrate {
                licence: text(&package["license"]),
                checksum: sums.iter().find(|(of, _)| *of == key).map(|(_, sum)| sum.clone()),
                folder: folder.parent().map(Path::to_path_buf).unwrap_or_default(),
                name,
                version,
            }
        })
        .collect();
    crates.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(crates)
}

/// Returns `NAME VERSION` of each package in the lock file with its checksum.
fn checksums_of_lock() -> Result<Vec<(String, String)>, String> {
    let text = super::text_of("Cargo.lock")?;
    let lock: toml::Table = text.parse().map_err(|error| format!("Cargo.lock: {error}"))?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let row = |package: &toml::Value| {
        let field = |name: &str| package.get(name)?.as_str().map(str::to_owned);
        Some((format!("{} {}", field("name")?, field("version")?), field("checksum")?))
    };
    Ok(packages.into_iter().flatten().filter_map(row).collect())
}
