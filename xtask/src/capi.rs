//! `cargo xtask capi`: installs the C library with its header, and compiles and runs its examples, also
//! under valgrind and with the address sanitizer.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{check, command, file_error, output, target, works, workspace};

/// The package.
const PACKAGE: &str = "crates/capi";
/// Its programs in C and C++: examples, and tests that need a C program.
const PROGRAMS: [&str; 2] = ["examples", "tests/programs"];
/// The version of the library: the workspace's.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The soname that linked programs refer to; the package's build.rs passes the same to the linker.
const SONAME: &str = "libeyas.so.0";
/// The libraries that a statically linked program needs (rustc --print native-static-libs).
const STATIC: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc";
/// Warnings that are errors.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];
/// Invalid reads, writes and frees, and definite leaks, make valgrind fail. Uninitialised values are not checked:
/// valgrind reports false positives for the tags that ring's assembly computes, and for padding that optimised Rust
/// code compares along with values.
const VALGRIND: [&str; 8] = [
    "-q",
    "--fair-sched=try",
    "--num-callers=40",
    "--undef-value-errors=no",
    "--error-exitcode=99",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--errors-for-leak-kinds=definite",
];

/// The parsed options.
#[derive(Debug, Default, PartialEq)]
struct Options {
    /// Where to install, instead of testing.
    install: Option<PathBuf>,
    /// Whether to build without optimisation.
    dev: bool,
}

/// Builds the library, and installs or tests it.
pub(crate) fn main(args: &[&str]) -> Result<(), String> {
    let options = parse(args)?;
    let built = build(options.dev)?;
    if let Some(prefix) = options.install {
        install(&built, &prefix, &prefix.to_string_lossy())?;
        println!("eyas is installed in {}", prefix.display());
        return Ok(());
    }
    test(&built)
}

fn parse(args: &[&str]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match (*arg, args.len()) {
            ("--dev", _) => options.dev = true,
            ("--install", 1..) => {
                let prefix = args.next().map(|prefix| workspace().join(prefix));
                options.install = prefix;
            }
            _ => return Err("capi takes --install PREFIX and --dev".into()),
        }
    }
    Ok(options)
}

/// Builds the libraries, and the command with the same dependencies; returns the libraries' directory.
fn build(dev: bool) -> Result<PathBuf, String> {
    let args: &[&str] = match dev {
        true => &["build", "--locked", "--package", "eyas-capi"],
        false => {
            &["build", "--locked", "--release", "--package", "eyas-capi", "--package", "eyas-cli"]
        }
    };
    check(&mut command("cargo", args))?;
    Ok(target().join(if dev { "debug" } else { "release" }))
}

/// Installs everything below a prefix, as a package does; `described_as` is the prefix as pkg-config is told.
pub(crate) fn install(built: &Path, prefix: &Path, described_as: &str) -> Result<(), String> {
    let package = workspace().join(PACKAGE);
    let library = prefix.join("lib");
    let full = format!("libeyas.so.{VERSION}");
    copy(&built.join("libeyas.so"), &library.join(&full))?;
    copy(&built.join("libeyas.a"), &library.join("libeyas.a"))?;
    for name in [SONAME, "libeyas.so"] {
        let link = library.join(name);
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link).map_err(|error| file_error(&link, &error))?;
        }
        symlink(&full, &link).map_err(|error| file_error(&link, &error))?;
    }
    copy(&package.join("include/eyas.h"), &prefix.join("include/eyas.h"))?;
    copy(&package.join("man/eyas.3"), &prefix.join("share/man/man3/eyas.3"))?;
    let template = package.join("eyas.pc.in");
    let text = fs::read_to_string(&template).map_err(|error| file_error(&template, &error))?;
    let described = library.join("pkgconfig/eyas.pc");
    make_directory_of(&described)?;
    let text = text.replace("@PREFIX@", described_as);
    let text = text.replace("@VERSION@", VERSION).replace("@PRIVATE@", STATIC);
    fs::write(&described, text).map_err(|error| file_error(&described, &error))
}

fn test(built: &Path) -> Result<(), String> {
    let directory = target().join("capi");
    let prefix = directory.join("prefix");
    if prefix.exists() {
        fs::remove_dir_all(&prefix).map_err(|error| file_error(&prefix, &error))?;
    }
    install(built, &prefix, &prefix.to_string_lossy())?;
    let installed = Installed { prefix, directory };
    installed.check_exports()?;
    let programs = sources()?;
    for source in &programs {
        let program = installed.compile(source, Kind::Shared)?;
        installed.run(&mut command(&program, &[""; 0]))?;
        installed.under_valgrind(&program)?;
        let program = installed.compile(source, Kind::Sanitized)?;
        let mut run = command(&program, &[""; 0]);
        installed.run(run.env("ASAN_OPTIONS", "detect_stack_use_after_return=1"))?;
    }
    // One program is enough to check that nothing is missing.
    if let Some(source) = programs.first() {
        let program = installed.compile(source, Kind::Static)?;
        check(&mut command(&program, &[""; 0]))?;
    }
    println!("{} programs in C and C++ passed", programs.len());
    Ok(())
}

/// Returns the examples and then the tests, each in the order of their names.
fn sources() -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::new();
    for directory in PROGRAMS {
        let directory = workspace().join(PACKAGE).join(directory);
        let entries = fs::read_dir(&directory).map_err(|error| file_error(&directory, &error))?;
        let mut sources: Vec<PathBuf> =
            entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        if sources.is_empty() {
            return Err(format!("{} is empty", directory.display()));
        }
        sources.sort();
        all.append(&mut sources);
    }
    Ok(all)
}

/// How a program is built.
#[derive(Clone, Copy)]
enum Kind {
    Shared,
    Static,
    Sanitized,
}

/// The installed library.
struct Installed {
    prefix: PathBuf,
    directory: PathBuf,
}

impl Installed {
    /// Returns the flags from pkg-config.
    fn flags(&self, args: &[&str]) -> Result<Vec<String>, String> {
        let mut pkg_config = command("pkg-config", args);
        pkg_config.arg("eyas").env("PKG_CONFIG_PATH", self.prefix.join("lib/pkgconfig"));
        Ok(output(&mut pkg_config)?.split_whitespace().map(str::to_owned).collect())
    }

    fn compile(&self, source: &Path, kind: Kind) -> Result<String, String> {
        let is_cpp = source.extension().is_some_and(|ending| ending == "cpp");
        let (compiler, standard) = if is_cpp { ("c++", "-std=c++17") } else { ("cc", "-std=c11") };
        let name = source.file_name().unwrap_or_default().to_string_lossy().replace('.', "-");
        let (name, args): (String, &[&str]) = match kind {
            Kind::Shared => (name, &["--cflags", "--libs"]),
            Kind::Static => (format!("{name}-static"), &["--static", "--cflags", "--libs"]),
            Kind::Sanitized => (format!("{name}-sanitized"), &["--cflags", "--libs"]),
        };
        let program = self.directory.join(name);
        let mut compile = command(compiler, &[standard, "-g", "-D_POSIX_C_SOURCE=200809L"]);
        compile.args(STRICT).arg(source).arg("-o").arg(&program);
        if let Kind::Sanitized = kind {
            compile.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
        }
        let archive = self.prefix.join("lib/libeyas.a").to_string_lossy().into_owned();
        for flag in self.flags(args)? {
            // The linker would take the shared library of the same name.
            let is_ours = matches!(kind, Kind::Static) && flag == "-leyas";
            compile.arg(if is_ours { &archive } else { &flag });
        }
        check(&mut compile)?;
        Ok(program.to_string_lossy().into_owned())
    }

    fn run(&self, program: &mut Command) -> Result<(), String> {
        check(program.env("LD_LIBRARY_PATH", self.prefix.join("lib")))
    }

    fn under_valgrind(&self, program: &str) -> Result<(), String> {
        if !works("valgrind", &["--version"]) {
            println!("SKIPPED valgrind: it is missing");
            return Ok(());
        }
        self.run(command("valgrind", &VALGRIND).arg(program))
    }

    /// Checks the exported symbols, because any other symbol could clash with a program's own.
    fn check_exports(&self) -> Result<(), String> {
        if !works("nm", &["--version"]) {
            println!("SKIPPED symbols: nm is missing");
            return Ok(());
        }
        let library = self.prefix.join("lib/libeyas.so");
        let listed = output(command("nm", &["-D", "--defined-only"]).arg(&library))?;
        let names = listed.lines().filter_map(|line| line.split_whitespace().last());
        let others: Vec<&str> = names.filter(|name| !name.starts_with("eyas_")).collect();
        match others.is_empty() {
            true => Ok(()),
            false => Err(format!("libeyas.so exports more than eyas_*: {}", others.join(", "))),
        }
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    make_directory_of(to)?;
    fs::copy(from, to).map(|_| ()).map_err(|error| file_error(from, &error))
}

fn make_directory_of(file: &Path) -> Result<(), String> {
    let directory = file.parent().unwrap_or(file);
    fs::create_dir_all(directory).map_err(|error| file_error(directory, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_options_are_refused() {
        for options in [&["--fast"][..], &["--install"]] {
            assert!(main(options).is_err_and(|why| why.contains("--install PREFIX")));
        }
    }

    #[test]
    fn the_soname_matches_the_linkers() {
        let script = workspace().join(PACKAGE).join("build.rs");
        let script = fs::read_to_string(script).expect("the build script");
        assert!(script.contains(&format!("-soname,{SONAME}\"")));
    }

    #[test]
    fn an_installed_library_is_found_by_pkg_config() {
        let (built, prefix) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for name in ["libeyas.so", "libeyas.a"] {
            fs::write(built.path().join(name), "").unwrap();
        }
        // Twice, because an installation replaces an earlier one.
        for _ in 0..2 {
            install(built.path(), prefix.path(), &prefix.path().to_string_lossy()).unwrap();
        }
        for name in
            ["include/eyas.h", "lib/libeyas.so.0", "lib/libeyas.so", "share/man/man3/eyas.3"]
        {
            assert!(prefix.path().join(name).exists(), "{name}");
        }
        if !works("pkg-config", &["--version"]) {
            return;
        }
        let directory = prefix.path().to_path_buf();
        let installed = Installed { prefix: directory.clone(), directory };
        let library = format!("-L{}/lib", prefix.path().display());
        let flags = installed.flags(&["--libs", "--static"]).unwrap();
        assert!(flags.contains(&library) && flags.contains(&"-leyas".to_owned()), "{flags:?}");
        assert_eq!(installed.flags(&["--modversion"]).unwrap(), [VERSION]);
    }
}
