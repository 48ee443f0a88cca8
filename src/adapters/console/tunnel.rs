//! A tunnel: another program (`cloudflared`, `tailscale`) that connects to a service and forwards what arrives there at an https address.
//!
//! It runs in a process group of its own, below a shell that kills the group when its standard input ends. So the tunnel ends with the server, also
//! with one that is killed.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// The number of lines of the log that are kept, and of the characters of each.
const LOG_LINES: usize = 40;
const LINE_CHARS: usize = 240;

/// The longest line that is searched for an address, in bytes.
const LINE_BYTES: usize = 2_048;

/// Runs the program in `"$@"`, and kills it when standard input ends. The errors of the program are lines of the log, too.
const SHELL: &str = r#"exec 2>&1 3<&0; "$@" </dev/null 3<&- & tunnel=$!; { while read -r _ <&3; do :; done; kill -9 0; } >/dev/null 2>&1 & wait "$tunnel""#;

/// A program that makes tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Program {
    Cloudflared,
    Tailscale,
}

impl Program {
    pub(super) const ALL: [Self; 2] = [Self::Cloudflared, Self::Tailscale];

    const fn name(self) -> &'static str {
        match self {
            Self::Cloudflared => "cloudflared",
            Self::Tailscale => "tailscale",
        }
    }

    /// The domain of its addresses.
    const fn domain(self) -> &'static str {
        match self {
            Self::Cloudflared => ".trycloudflare.com",
            Self::Tailscale => ".ts.net",
        }
    }

    fn arguments(self, to: SocketAddr) -> Vec<String> {
        let url = format!("http://{to}");
        let words: &[&str] = match self {
            // With a settings file of another tunnel, cloudflared refuses to make one like this.
            Self::Cloudflared => &["tunnel", "--no-autoupdate", "--config", "/dev/null", "--url", &url],
            Self::Tailscale => &["funnel", &url],
        };
        words.iter().map(|&word| word.to_owned()).collect()
    }

    /// The program's file, in the first folder of `path` that has it.
    pub(super) fn find(self, path: &OsStr) -> Option<PathBuf> {
        let is_program =
            |file: &PathBuf| file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
        std::env::split_paths(path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(self.name())).find(is_program)
    }

    /// The address of the tunnel in a line of its log. The program also prints addresses of documents and of its service.
    fn address(self, line: &str) -> Option<String> {
        line.split("https://").skip(1).find_map(|rest| {
            let is_of_host = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
            let (host, after) = rest.split_at(rest.find(|c| !is_of_host(c)).unwrap_or(rest.len()));
            let name =
                host.strip_suffix(self.domain()).filter(|name| !matches!(*name, "" | "api") && !name.starts_with(['.', '-']));
            let ends = after.chars().next().is_none_or(|c| c.is_whitespace() || matches!(c, '/' | '|' | '"'));
            (name.is_some() && ends && host.len() <= 253).then(|| format!("https://{host}"))
        })
    }
}

/// What a tunnel has done so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    pub(super) url: Option<String>,
    pub(super) has_ended: bool,
    pub(super) log: VecDeque<String>,
}

/// A tunnel that was started. Dropping it ends it.
pub(super) struct Tunnel {
    pub(super) program: Program,
    progress: Arc<watch::Sender<Progress>>,
    /// The process group, until its leader has ended.
    group: Arc<Mutex<Option<Pid>>>,
}

impl Tunnel {
    /// Starts a program that forwards to an address of this machine. It gets nothing of the server's environment but `path`.
    pub(super) fn start(program: Program, path: &OsStr, to: SocketAddr) -> io::Result<Self> {
        let file = program.find(path).ok_or(io::ErrorKind::NotFound)?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SHELL, "sh"]).arg(file).args(program.arguments(to)).env_clear().env("PATH", path).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let tunnel = Self {
            program,
            progress: Arc::new(watch::Sender::new(Progress::default())),
            group: Arc::new(Mutex::new(Pid::from_raw(child.id().cast_signed()))),
        };
        let (progress, group) = (tunnel.progress.clone(), tunnel.group.clone());
        thread::Builder::new().name("tunnel-end".into()).spawn(move || wait(child, &group))?;
        thread::Builder::new().name("tunnel-log".into()).spawn(move || read(program, output, &progress))?;
        Ok(tunnel)
    }

    pub(super) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Ends the tunnel at once.
    pub(super) fn stop(&self) {
        if let Some(group) = *self.group.lock() {
            // It fails only if the group has ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.progress.send_modify(|progress| progress.has_ended = true);
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.stop();
    }
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

/// Reads the output. It ends with the last process of the group.
fn read(program: Program, mut output: ChildStdout, progress: &watch::Sender<Progress>) {
    let (mut piece, mut line) = ([0; 1_024], Vec::new());
    loop {
        let length = output.read(&mut piece).unwrap_or_default();
        for byte in &piece[..length] {
            if *byte == b'\n' {
                log(program, &line, progress);
                line.clear();
            } else if line.len() < LINE_BYTES {
                line.push(*byte);
            }
        }
        if length == 0 {
            log(program, &line, progress);
            return progress.send_modify(|progress| progress.has_ended = true);
        }
    }
}

fn log(program: Program, line: &[u8], progress: &watch::Sender<Progress>) {
    let line: String = String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).collect();
    if line.trim().is_empty() {
        return;
    }
    progress.send_modify(|progress| {
        progress.url = progress.url.take().or_else(|| program.address(&line));
        progress.log.push_back(line.trim().chars().take(LINE_CHARS).collect());
        if progress.log.len() > LOG_LINES {
            progress.log.pop_front();
        }
    });
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A folder with a program `cloudflared` of these lines.
    pub(crate) fn program(lines: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cloudflared");
        std::fs::write(&file, format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    pub(crate) fn start(folder: &tempfile::TempDir) -> Tunnel {
        let path = std::env::join_paths([folder.path(), "/usr/bin".as_ref(), "/bin".as_ref()]).unwrap();
        Tunnel::start(Program::Cloudflared, &path, "127.0.0.1:4711".parse().unwrap()).unwrap()
    }

    #[test]
    fn only_an_address_of_the_tunnels_service_is_taken() {
        let of = |line| Program::Cloudflared.address(line);

        assert_eq!(
            of("INF |  https://calm-blue-hats.trycloudflare.com   |").as_deref(),
            Some("https://calm-blue-hats.trycloudflare.com")
        );
        for other in [
            "ERR Post \"https://api.trycloudflare.com/tunnel\": timeout",
            "https://developers.cloudflare.com/cloudflare-one",
            "https://a.trycloudflare.com.evil.example/",
            "https://a.trycloudflare.com@evil.example/",
            "https://a.trycloudflare.com:8443/",
            "https://.trycloudflare.com http://a.trycloudflare.com",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        let of = |line| Program::Tailscale.address(line);
        assert_eq!(of("https://attic.tail1234.ts.net/").as_deref(), Some("https://attic.tail1234.ts.net"));
        assert_eq!(of("To enable, visit: https://login.tailscale.com/f/funnel?node=x"), None);
    }

    #[tokio::test]
    async fn a_tunnel_tells_its_address_and_sees_nothing_of_the_servers_environment() {
        let folder = program(r#"env | cut -d= -f1; echo "args $*"; echo "  https://a-b.trycloudflare.com  " >&2"#);
        let tunnel = start(&folder);

        let mut progress = tunnel.progress();
        let progress = progress.wait_for(|progress| progress.has_ended).await.unwrap().clone();

        assert_eq!(progress.url.as_deref(), Some("https://a-b.trycloudflare.com"));
        assert!(progress.log.iter().any(|line| line.ends_with("--url http://127.0.0.1:4711")), "{:?}", progress.log);
        let names = progress.log.iter().take_while(|line| !line.starts_with("args")).map(String::as_str);
        assert!(names.clone().all(|name| ["PATH", "PWD", "OLDPWD", "SHLVL", "_"].contains(&name)), "{:?}", progress.log);
    }

    #[tokio::test]
    async fn a_tunnel_that_ignores_signals_and_prints_without_end_is_bounded_and_ends() {
        let folder = program("trap '' TERM INT HUP; while :; do printf '\\033[1m\\377%02000d\\n' 7; done");
        let tunnel = start(&folder);
        let mut progress = tunnel.progress();
        progress.wait_for(|progress| progress.log.len() == LOG_LINES).await.unwrap();

        tunnel.stop();

        let progress = progress.wait_for(|progress| progress.has_ended).await.unwrap().clone();
        assert!(progress.log.iter().all(|line| line.chars().count() <= LINE_CHARS && !line.contains('\u{1b}')));
        assert_eq!((progress.log.len(), progress.url), (LOG_LINES, None));
    }
}
