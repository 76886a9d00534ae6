//! Packages of Node: `eyas`, which starts the command, and one with the command for each platform, of which npm
//! installs the one whose `os` and `cpu` fit. Nothing runs at installation.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::archive::{clear, name_of};
use super::command::{LICENCES, command_for};
use super::{Release, VERSION, copied, emptied, text_of, windows, written};
use crate::run::{check, command, workspace};

/// The template of the package that users name.
const TEMPLATE: &str = "dist/npm";

/// A package with the command for one platform.
struct CommandPackage {
    /// Node's names of the system and the processor, and how people call the system.
    os: &'static str,
    cpu: &'static str,
    system: &'static str,
    /// The command.
    program: PathBuf,
}

/// Makes all packages.
pub(super) fn make(release: &Release) -> Result<(), String> {
    clear(release, "eyas-", ".tgz")?;
    let mut packages = Vec::new();
    for platform in &release.platforms {
        let program = command_for(release, platform)?;
        packages.push(CommandPackage { os: "linux", cpu: platform.node, system: "Linux", program });
    }
    if release.has_windows() {
        let program = windows::command_for(release)?;
        packages.push(CommandPackage { os: "win32", cpu: "x64", system: "Windows", program });
    }
    for package in &packages {
        package.pack(release)?;
    }
    let directory = emptied(&release.stage.join("npm"))?;
    for file in ["bin/eyas.js", "README.md"] {
        copied(&workspace().join(TEMPLATE).join(file), &directory.join(file))?;
    }
    let mut package = template()?;
    let platforms = packages.iter().map(|one| (one.name(), json!(VERSION)));
    package.insert("optionalDependencies".into(), Value::Object(platforms.collect()));
    pack(release, &directory, package)
}

impl CommandPackage {
    fn name(&self) -> String {
        format!("@eyas/{}-{}", self.os, self.cpu)
    }

    fn pack(&self, release: &Release) -> Result<(), String> {
        let directory = emptied(&release.stage.join(format!("npm-{}-{}", self.os, self.cpu)))?;
        copied(&self.program, &directory.join("bin").join(name_of(&self.program)))?;
        let mut package = template()?;
        let about = format!("The command eyas for {} on {}", self.system, self.cpu);
        for (field, value) in [
            ("name", json!(self.name())),
            ("description", json!(about)),
            ("os", json!([self.os])),
            ("cpu", json!([self.cpu])),
            ("preferUnplugged", json!(true)),
        ] {
            package.insert(field.into(), value);
        }
        // The file is looked up by its path: only the package that users name has a command.
        package.remove("bin");
        let readme = format!("# {}\n\n{about}: a part of the package `eyas`.\n", self.name());
        written(&directory.join("README.md"), readme)?;
        pack(release, &directory, package)
    }
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
