//! Packages of Debian and Fedora: `dist/packages/nfpm.yaml`.

use std::path::{Path, PathBuf};

use super::archive::{clear, files, name_of};
use super::command::{command_for, licences_into, pages};
use super::platform::Platform;
use super::{Release, VERSION, copied, emptied};
use crate::run::{check, command, workspace};

/// nfpm's names of the kinds of packages, and where programs of that system look for completions of zsh.
pub(super) const KINDS: [(&str, &str); 2] =
    [("deb", "/usr/share/zsh/vendor-completions"), ("rpm", "/usr/share/zsh/site-functions")];

/// Makes all kinds for all platforms.
pub(super) fn make(release: &Release) -> Result<(), String> {
    let nfpm = release.tools.nfpm()?;
    for (kind, _) in KINDS {
        clear(release, "eyas", &format!(".{kind}"))?;
    }
    let pages = pages(release)?;
    for platform in &release.platforms {
        let stage = stage(release, platform, &pages)?;
        for (kind, completions) in KINDS {
            let arguments = ["package", "--config", "dist/packages/nfpm.yaml", "--packager", kind];
            let mut nfpm = command(&nfpm.to_string_lossy(), &arguments);
            nfpm.arg("--target").arg(&release.out);
            nfpm.env("ARCH", platform.deb).env("VERSION", VERSION).env("ZSH", completions);
            nfpm.env("STAGE", &stage).env("SOURCE_DATE_EPOCH", &release.time);
            check(&mut nfpm)?;
        }
    }
    Ok(())
}

/// Lays out what the packages contain.
fn stage(release: &Release, platform: &Platform, pages: &Path) -> Result<PathBuf, String> {
    let stage = emptied(&release.stage.join(format!("system-{}", platform.arch)))?;
    copied(&command_for(release, platform)?, &stage.join("eyas"))?;
    for page in files(&pages.join("man"))? {
        let section = if name_of(&page).contains(".7.") { "man7" } else { "man1" };
        copied(&page, &stage.join(section).join(name_of(&page)))?;
    }
    for file in files(&pages.join("completions"))? {
        copied(&file, &stage.join("completions").join(name_of(&file)))?;
    }
    for unit in files(&workspace().join("dist/systemd"))? {
        copied(&unit, &stage.join("systemd").join(name_of(&unit)))?;
    }
    licences_into(&super::created(&stage.join("doc"))?)?;
    Ok(stage)
}
