//! Runs another program in a process group of its own, below a shell that kills the group when this server ends, also when it is killed.
//!
//! The shell notices the end of the server by a socket, its standard error. The program writes its log there.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, kill_process_group, prlimit, waitid};

/// The most characters of a line of the log.
pub const LINE_CHARS: usize = 240;
/// The longest line that is read, in bytes.
const LINE_BYTES: usize = 2_048;

/// Waits for a line on the socket, runs the program in `"$@"`, and kills the group when the socket is closed. A program in the background would
/// get no standard input, hence its copy.
const SHELL: &str = r#"read -r _ <&2 || exit; exec 3<&2 4<&0; "$@" <&4 3<&- 4<&- & program=$!; exec 0</dev/null 4<&- 1>/dev/null; { while read -r _ <&3; do :; done; kill -9 0; } >/dev/null 2>&1 & wait "$program""#;

/// A program that was started. Dropping it kills its group.
pub struct Program {
    /// The process group, until its leader has ended.
    group: Arc<Mutex<Option<Pid>>>,
    /// The socket. The shell waits for its end.
    socket: UnixStream,
}

/// How a program is started.
pub struct Start<'a> {
    pub file: &'a Path,
    pub arguments: &'a [String],
    /// All variables of its environment.
    pub environment: &'a [(OsString, OsString)],
    pub folder: &'a Path,
    /// The most bytes of data of each process. `None`: no limit.
    pub data_bytes: Option<u64>,
    /// Whether standard output is part of the log. Otherwise, standard input and output are pipes.
    pub logs_output: bool,
}

/// The ends of a program's standard input and output, if they are pipes.
pub type Pipes = Option<(ChildStdin, ChildStdout)>;

impl Program {
    /// Starts a program. `log` gets each line of its log, in a thread of its own, and `None` once the last process of the group has ended.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started.
    pub fn start(start: &Start<'_>, log: impl FnMut(Option<&str>) + Send + 'static) -> io::Result<(Self, Pipes)> {
        let (socket, theirs) = UnixStream::pair()?;
        let theirs = OwnedFd::from(theirs);
        let output = if start.logs_output { Some(theirs.try_clone()?) } else { None };
        let piped = |output: Option<OwnedFd>| output.map_or_else(Stdio::piped, Stdio::from);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SHELL, "sh"]).arg(start.file).args(start.arguments).current_dir(start.folder).process_group(0);
        command.env_clear().envs(start.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(if start.logs_output { Stdio::null() } else { Stdio::piped() }).stdout(piped(output)).stderr(theirs);
        let mut child = command.spawn()?;
        // It has the other end of the socket, whose end would not be noticed otherwise.
        drop(command);
        let pipes = child.stdin.take().zip(child.stdout.take());
        let pid = Pid::from_raw(child.id().cast_signed()).ok_or(io::ErrorKind::NotFound)?;
        let program = Self { group: Arc::new(Mutex::new(Some(pid))), socket };
        let (group, lines) = (program.group.clone(), program.socket.try_clone()?);
        thread::Builder::new().name("program-end".into()).spawn(move || wait(child, &group))?;
        thread::Builder::new().name("program-log".into()).spawn(move || read(lines, log))?;
        if let Some(most) = start.data_bytes {
            prlimit(Some(pid), Resource::Data, Rlimit { current: Some(most), maximum: Some(most) })?;
        }
        // The limit is in force before the program begins.
        (&program.socket).write_all(b"\n")?;
        Ok((program, pipes))
    }

    /// Ends the program at once.
    pub fn stop(&self) {
        if let Some(group) = *self.group.lock() {
            // It fails only if the group has ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
        // Processes that left the group keep their end of the socket.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The file of a program with this name, in the first folder of `path` that has it.
pub fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    let is_program =
        |file: &PathBuf| file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    std::env::split_paths(path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).find(is_program)
}

/// Waits for the end of the shell, and ends what is left of its group. As long as the shell is not reaped, its group cannot be another's.
fn wait(mut child: Child, group: &Mutex<Option<Pid>>) {
    let leader = *group.lock();
    if let Some(leader) = leader {
        let _ = waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        if group.lock().take().is_some() {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
    let _ = child.wait();
}

/// Reads the log. It ends with the last process that has the socket.
fn read(mut output: UnixStream, mut log: impl FnMut(Option<&str>)) {
    let (mut piece, mut line) = ([0; 1_024], Vec::new());
    loop {
        let length = output.read(&mut piece).unwrap_or_default();
        for byte in &piece[..length] {
            if *byte == b'\n' {
                log_line(&line, &mut log);
                line.clear();
            } else if line.len() < LINE_BYTES {
                line.push(*byte);
            }
        }
        if length == 0 {
            log_line(&line, &mut log);
            return log(None);
        }
    }
}

fn log_line(line: &[u8], log: &mut impl FnMut(Option<&str>)) {
    let line: String = String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).collect();
    let line = line.trim();
    if !line.is_empty() {
        log(Some(line));
    }
}
