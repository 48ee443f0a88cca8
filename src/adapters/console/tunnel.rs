//! A tunnel: another program (`cloudflared`, `tailscale`) that connects to a service and forwards what arrives there at an https address.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::adapters::program::{self, LINE_CHARS, Start};

/// The number of lines of the log that are kept.
const LOG_LINES: usize = 40;

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
        program::find(self.name(), path)
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
    running: program::Program,
}

impl Tunnel {
    /// Starts a program that forwards to an address of this machine. It gets nothing of the server's environment but `path`.
    pub(super) fn start(program: Program, path: &OsStr, to: SocketAddr) -> io::Result<Self> {
        let file = program.find(path).ok_or(io::ErrorKind::NotFound)?;
        let (arguments, environment) = (program.arguments(to), [("PATH".into(), path.to_owned())]);
        let start = Start {
            file: &file,
            arguments: &arguments,
            environment: &environment,
            folder: Path::new("/"),
            data_bytes: None,
            logs_output: true,
        };
        let progress = Arc::new(watch::Sender::new(Progress::default()));
        let told = progress.clone();
        let (running, _) = program::Program::start(&start, move |line| log(program, line, &told))?;
        Ok(Self { program, progress, running })
    }

    pub(super) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Ends the tunnel at once.
    pub(super) fn stop(&self) {
        self.running.stop();
        self.progress.send_modify(|progress| progress.has_ended = true);
    }
}

/// Notes a line of the log, or its end.
fn log(program: Program, line: Option<&str>, progress: &watch::Sender<Progress>) {
    progress.send_modify(|progress| {
        let Some(line) = line else {
            progress.has_ended = true;
            return;
        };
        progress.url = progress.url.take().or_else(|| program.address(line));
        progress.log.push_back(line.chars().take(LINE_CHARS).collect());
        if progress.log.len() > LOG_LINES {
            progress.log.pop_front();
        }
    });
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::fs::PermissionsExt as _;

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
