//! `cargo xtask dist`: what a release hands out, made from a clean clone, and tried in clean roots.
//!
//! | module | purpose |
//! | --- | --- |
//! | `platform` | the platforms, and what each packager calls them |
//! | `tools` | the tools of other package registries that this needs, at fixed versions |
//! | `command` | the command, linked statically, and what belongs to it: pages, completions, licences |
//! | `archive` | files that are the same bytes whenever and wherever they are packed |
//! | `system` | packages of Debian and Fedora |
//! | `image` | the container image |
//! | `windows` | the command for Windows |
//! | `npm` | packages of Node |
//! | `wheels` | packages of Python |
//! | `library` | the C library |
//! | `crates` | the crates, as crates.io gets them |
//! | `materials` | the list of all that is inside, and the checksums |
//! | `trial` | each package installed in a root that has nothing else, and a race from there |

mod archive;
mod command;
mod crates;
mod image;
mod library;
mod materials;
mod npm;
pub(crate) mod platform;
mod system;
pub(crate) mod tools;
mod trial;
mod wheels;
mod windows;

use std::fs;
use std::path::{Path, PathBuf};

use self::platform::{PLATFORMS, Platform};
use self::tools::DistTools;
use crate::run::{command, file_error, output, target, workspace};

/// The version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One kind of package.
struct Part {
    /// Its name for `--only`.
    name: &'static str,
    /// Makes it for all platforms of the release.
    make: fn(&Release) -> Result<(), String>,
    /// Installs it in a clean root and runs it there.
    attempt: fn(&Release) -> Result<(), String>,
}

/// All kinds of packages, in the order of making.
const PARTS: &[Part] = &[
    Part { name: "archive", make: command::archives, attempt: trial::archives },
    Part { name: "system", make: system::make, attempt: trial::system },
    Part { name: "image", make: image::make, attempt: trial::image },
    Part { name: "windows", make: windows::make, attempt: windows::attempt },
    Part { name: "npm", make: npm::make, attempt: trial::npm },
    Part { name: "wheels", make: wheels::make, attempt: trial::wheels },
    Part { name: "sdist", make: wheels::sources, attempt: trial::sdist },
    Part { name: "library", make: library::make, attempt: trial::library },
    Part { name: "crates", make: crates::make, attempt: crates::attempt },
];

/// What is being released, and where it goes.
struct Release {
    /// The platforms.
    platforms: Vec<&'static Platform>,
    /// The commit, in twelve digits.
    commit: String,
    /// The time of the commit in seconds since 1970: the time of every file in every package.
    time: String,
    /// The directory with what is handed out.
    out: PathBuf,
    /// The directory with what is packed.
    stage: PathBuf,
    tools: DistTools,
}

impl Release {
    /// Opens the release of the commit that is checked out.
    fn open(options: &DistOptions) -> Result<Self, String> {
        let git = |arguments: &[&str]| {
            output(&mut command("git", arguments)).map(|text| text.trim().to_owned())
        };
        let changed = git(&["status", "--porcelain"])?;
        if !changed.is_empty() {
            println!("NOTE: files differ from the commit; this is not what a release would be");
        }
        let directory = target().join("dist");
        Ok(Self {
            platforms: options.platforms.clone(),
            commit: git(&["rev-parse", "--short=12", "HEAD"])?,
            time: git(&["log", "-1", "--format=%ct"])?,
            out: created(&directory.join("out"))?,
            stage: created(&directory.join("stage"))?,
            tools: DistTools::open(&directory.join("tools"))?,
        })
    }

    /// Returns whether there are packages for Windows, which are for one processor only.
    fn has_windows(&self) -> bool {
        self.platforms.iter().any(|platform| platform.arch == windows::ARCH)
    }

    /// Returns the platform of this machine, whose command can be run here.
    fn host(&self) -> Result<&'static Platform, String> {
        let own = self.platforms.iter().find(|one| one.arch == std::env::consts::ARCH);
        own.copied().ok_or_else(|| {
            format!(
                "the pages are made by the command itself: add --arch {}",
                std::env::consts::ARCH
            )
        })
    }
}

/// The parsed options.
#[derive(Debug)]
struct DistOptions {
    platforms: Vec<&'static Platform>,
    parts: Vec<&'static str>,
    /// Whether packages are made, and whether they are tried.
    makes: bool,
    tries: bool,
}

/// Makes the packages, and tries them.
pub(crate) fn main(arguments: &[&str]) -> Result<(), String> {
    let options = parse(arguments)?;
    let release = Release::open(&options)?;
    let chosen = || PARTS.iter().filter(|part| options.parts.contains(&part.name));
    if options.makes {
        for part in chosen() {
            println!("\n== {}", part.name);
            (part.make)(&release)?;
        }
        materials::make(&release)?;
    }
    if options.tries {
        for part in chosen() {
            println!("\n== {}, tried", part.name);
            (part.attempt)(&release)?;
        }
    }
    materials::print(&release)
}

fn parse(arguments: &[&str]) -> Result<DistOptions, String> {
    let names = || PARTS.iter().map(|part| part.name).collect::<Vec<_>>();
    let mut options =
        DistOptions { platforms: Vec::new(), parts: Vec::new(), makes: true, tries: true };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--make" => options.tries = false,
            "--try" => options.makes = false,
            "--only" => {
                let name = arguments.next().copied().unwrap_or_default();
                let known = names().into_iter().find(|known| *known == name);
                let all = names().join(", ");
                options
                    .parts
                    .push(known.ok_or(format!("--only takes one of {all}, not '{name}'"))?);
            }
            "--arch" => {
                let name = arguments.next().copied().unwrap_or_default();
                let known = PLATFORMS.iter().find(|one| one.arch == name);
                options
                    .platforms
                    .push(known.ok_or(format!("--arch takes x86_64 or aarch64, not '{name}'"))?);
            }
            other => {
                return Err(format!(
                    "dist takes --only PART, --arch ARCH, --make and --try, not {other}"
                ));
            }
        }
    }
    if !options.makes && !options.tries {
        return Err("--make leaves out the trials and --try the making: nothing remains".into());
    }
    if options.parts.is_empty() {
        options.parts = names();
    }
    if options.platforms.is_empty() {
        options.platforms = PLATFORMS.iter().collect();
    }
    Ok(options)
}

/// Creates a directory and returns its path.
fn created(directory: &Path) -> Result<PathBuf, String> {
    fs::create_dir_all(directory).map_err(|error| file_error(directory, &error))?;
    Ok(directory.to_path_buf())
}

/// Returns the path of an empty directory.
fn emptied(directory: &Path) -> Result<PathBuf, String> {
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(|error| file_error(directory, &error))?;
    }
    created(directory)
}

/// Copies a file with its permissions; creates its directory.
fn copied(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(directory) = to.parent() {
        created(directory)?;
    }
    fs::copy(from, to).map_err(|error| file_error(from, &error))?;
    Ok(())
}

/// Writes a file; creates its directory.
fn written(path: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    if let Some(directory) = path.parent() {
        created(directory)?;
    }
    fs::write(path, content).map_err(|error| file_error(path, &error))
}

/// Returns a file of the repository as text.
fn text_of(path: &str) -> Result<String, String> {
    let path = workspace().join(path);
    fs::read_to_string(&path).map_err(|error| file_error(&path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_made_for_all_platforms_and_tried_unless_less_is_requested() {
        let all = parse(&[]).unwrap();
        assert_eq!(all.parts.len(), PARTS.len());
        assert_eq!(all.platforms.len(), PLATFORMS.len());
        assert!(all.makes && all.tries);

        let some = parse(&["--only", "npm", "--arch", "aarch64", "--make"]).unwrap();
        assert_eq!(some.parts, ["npm"]);
        assert_eq!(some.platforms[0].arch, "aarch64");
        assert!(!some.tries);
    }

    #[test]
    fn unknown_parts_and_platforms_are_named() {
        assert!(parse(&["--only", "snap"]).unwrap_err().contains("'snap'"));
        assert!(parse(&["--arch", "sparc"]).unwrap_err().contains("'sparc'"));
        assert!(parse(&["--fast"]).unwrap_err().contains("--fast"));
        assert!(parse(&["--make", "--try"]).is_err());
    }
}
