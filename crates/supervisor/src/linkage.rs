//! Detects programs that the library cannot be preloaded into.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use elf::ElfStream;
use elf::abi::PT_INTERP;
use elf::endian::AnyEndian;

/// The section that Go's linker adds to every program.
const GO: &str = ".go.buildinfo";
/// The start of a script's first line.
const SCRIPT: &[u8] = b"#!";
/// The maximum length of the first line that the kernel reads.
const MAX_LINE: u64 = 256;

/// How a program makes its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramLinkage {
    /// Through a dynamically linked libc, before which a library can be preloaded.
    Dynamic,
    /// Through a statically linked libc.
    Static,
    /// Directly by system calls, as Go programs do.
    Go,
    /// Through musl, which cannot load a library built for glibc.
    Musl,
}

impl ProgramLinkage {
    /// Returns how the program with this name makes its calls; for a script, how its interpreter
    /// does. Returns `None` if the program is not found or is not an ELF file.
    pub fn from_program(program: &OsStr) -> Option<Self> {
        let path = search_path(program)?;
        let mut file = File::open(&path).ok()?;
        let mut line = Vec::new();
        file.by_ref().take(MAX_LINE).read_to_end(&mut line).ok()?;
        match line.strip_prefix(SCRIPT) {
            Some(rest) => {
                let mut words = rest.split(|byte| byte.is_ascii_whitespace());
                let interpreter = words.find(|word| !word.is_empty())?;
                Self::of_file(File::open(OsStr::from_bytes(interpreter)).ok()?)
            }
            None => Self::of_file(file),
        }
    }

    fn of_file(mut file: File) -> Option<Self> {
        file.rewind().ok()?;
        let mut elf = ElfStream::<AnyEndian, _>::open_stream(file).ok()?;
        if elf.section_header_by_name(GO).ok()?.is_some() {
            return Some(Self::Go);
        }
        let linker = elf.segments().iter().find(|segment| segment.p_type == PT_INTERP).copied();
        let Some(linker) = linker else { return Some(Self::Static) };
        let name = elf.segment_data(&linker).ok()?;
        let is_musl = name.windows(b"ld-musl".len()).any(|part| part == b"ld-musl");
        Some(if is_musl { Self::Musl } else { Self::Dynamic })
    }
}

/// Returns the path of a program, searched for as `execvp` does.
fn search_path(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    let metadata = path.metadata();
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_linked_dynamically() {
        let this = std::env::current_exe().unwrap();
        assert_eq!(ProgramLinkage::from_program(this.as_os_str()), Some(ProgramLinkage::Dynamic));
        assert_eq!(ProgramLinkage::from_program(OsStr::new("sh")), Some(ProgramLinkage::Dynamic));
    }

    #[test]
    fn the_interpreter_of_a_script_is_inspected() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#! /bin/sh -e\n").unwrap();
        assert_eq!(ProgramLinkage::from_program(script.as_os_str()), Some(ProgramLinkage::Dynamic));
        std::fs::write(&script, "#!/nowhere/at/all\n").unwrap();
        assert_eq!(ProgramLinkage::from_program(script.as_os_str()), None);
        std::fs::write(&script, "not a program").unwrap();
        assert_eq!(ProgramLinkage::from_program(script.as_os_str()), None);
    }
}
