//! The C library: `libeyas` with its header, manual and description for pkg-config.

use super::archive::tar_gz;
use super::command::licences_into;
use super::platform::OLDEST_GLIBC;
use super::{Release, VERSION, emptied};
use crate::capi;

/// Makes an archive for each platform, which can be unpacked anywhere.
pub(super) fn make(release: &Release) -> Result<(), String> {
    for platform in &release.platforms {
        let oldest = format!(".{OLDEST_GLIBC}");
        let built = release.tools.build(release, "eyas-capi", &platform.gnu(), &oldest)?;
        let directory =
            emptied(&release.stage.join(format!("libeyas-{VERSION}-{}-linux", platform.arch)))?;
        // pkg-config finds the rest from where the description lies.
        capi::install(&built, &directory, "${pcfiledir}/../..")?;
        licences_into(&directory.join("share/doc/eyas"))?;
        tar_gz(release, &directory)?;
    }
    Ok(())
}
