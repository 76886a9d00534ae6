//! Packages of Node: `eyas`, which starts the command, and one with the command for each platform, of which npm
//! installs the one whose `os` and `cpu` fit. Nothing runs at installation.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::archive::clear;
use super::command::{LICENCES, command_for};
use super::platform::Platform;
use super::{Release, VERSION, copied, emptied, text_of, written};
use crate::run::{check, command, workspace};

/// The template of the package that users name.
const TEMPLATE: &str = "dist/npm";

/// Makes all packages.
pub(super) fn make(release: &Release) -> Result<(), String> {
    clear(release, "eyas-", ".tgz")?;
    for platform in &release.platforms {
        pack_platform(release, platform)?;
    }
    let directory = emptied(&release.stage.join("npm"))?;
    for file in ["bin/eyas.js", "README.md"] {
        copied(&workspace().join(TEMPLATE).join(file), &directory.join(file))?;
    }
    let mut package = template()?;
    let platforms = release.platforms.iter().map(|one| (name_of(one), json!(VERSION)));
    package.insert("optionalDependencies".into(), Value::Object(platforms.collect()));
    pack(release, &directory, package)
}

/// Returns the name of the package for a platform.
fn name_of(platform: &Platform) -> String {
    format!("@eyas/linux-{}", platform.node)
}

/// Makes the package with the command for a platform.
fn pack_platform(release: &Release, platform: &Platform) -> Result<(), String> {
    let directory = emptied(&release.stage.join(format!("npm-{}", platform.node)))?;
    copied(&command_for(release, platform)?, &directory.join("bin/eyas"))?;
    let mut package = template()?;
    let about = format!("The command eyas for Linux on {}", platform.node);
    for (field, value) in [
        ("name", json!(name_of(platform))),
        ("description", json!(about)),
        ("os", json!(["linux"])),
        ("cpu", json!([platform.node])),
        ("preferUnplugged", json!(true)),
    ] {
        package.insert(field.into(), value);
    }
    // The file is looked up by its path: only the package that users name has a command.
    package.remove("bin");
    let readme = format!("# {}\n\n{about}: a part of the package `eyas`.\n", name_of(platform));
    written(&directory.join("README.md"), readme)?;
    pack(release, &directory, package)
}

/// Returns the fields that all packages have.
fn template() -> Result<Map<String, Value>, String> {
    let text = text_of(&format!("{TEMPLATE}/package.json"))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let Value::Object(mut fields) = value else {
        return Err(format!("{TEMPLATE}/package.json is no object"));
    };
    fields.insert("version".into(), json!(VERSION));
    Ok(fields)
}

/// Packs a directory as npm does; its files are of 1985 then, for everybody.
fn pack(release: &Release, directory: &Path, package: Map<String, Value>) -> Result<(), String> {
    for licence in LICENCES {
        copied(&workspace().join(licence), &directory.join(licence))?;
    }
    let text = serde_json::to_string_pretty(&package).map_err(|error| error.to_string())?;
    written(&directory.join("package.json"), text + "\n")?;
    let mut npm = command("npm", &["pack", "--silent", "--ignore-scripts", "--pack-destination"]);
    check(npm.arg(&release.out).current_dir(directory))
}
