//! A real server for tests, from Debian's package, in a temporary folder.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use secrecy::SecretString;
use tempfile::TempDir;

use super::connection::{Database, Session};

const PACKAGES: &str = "/usr/lib/postgresql";
/// The number of the user `nobody`: the server refuses to run as root.
const NOBODY: u32 = 65534;
/// Stops a server and removes its folder when its standard input ends, which is when the process that started it has ended.
const STOP_AT_END: &str = r#"trap '' INT; read -r _; "$0" --pgdata "$1/data" --mode=immediate stop; rm -rf "$1""#;

/// A running server. It ends when this is dropped.
pub struct TestServer {
    folder: TempDir,
    programs: PathBuf,
    schemas: AtomicU32,
}

impl TestServer {
    /// The server that the tests of a process share, which ends with the process. `None`: it is not installed, so the test is skipped.
    pub fn shared() -> Option<Arc<Self>> {
        static SHARED: OnceLock<Option<(Arc<TestServer>, Child)>> = OnceLock::new();
        let start = || {
            let server = Self::new()?;
            let folder = server.folder.path();
            let mut stopping = Self::as_nobody("sh".as_ref());
            stopping.args(["-c", STOP_AT_END]).arg(server.programs.join("pg_ctl")).arg(folder).current_dir("/");
            let stopping = stopping.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            Some((Arc::new(server), stopping))
        };
        SHARED.get_or_init(start).as_ref().map(|(server, _)| server.clone())
    }

    /// A server for one test.
    pub fn new() -> Option<Self> {
        let Some(programs) = programs() else {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "PostgreSQL is not installed");
            eprintln!("SKIPPED: PostgreSQL is not installed (apt-get install postgresql)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        if rustix::process::geteuid().is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let server = Self { folder, programs, schemas: AtomicU32::new(0) };
        server.run("initdb", &["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync", "--locale=C"]);
        server.start();
        Some(server)
    }

    /// Starts it, and waits until it is ready. It listens on a socket in its folder only.
    pub fn start(&self) {
        let socket = self.folder.path().display();
        // The tests end processes and not machines, so nothing needs to be on disk.
        let options = format!("-c listen_addresses='' -c unix_socket_directories='{socket}' -c fsync=off -c max_connections=300");
        self.run("pg_ctl", &["--wait", "--options", &options, "--log", &format!("{socket}/log"), "start"]);
    }

    /// Ends it as a crash does.
    pub fn crash(&self) {
        self.run("pg_ctl", &["--wait", "--mode=immediate", "stop"]);
    }

    /// Where its socket is.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    /// The URL of this database.
    pub fn url(&self, database: &str) -> SecretString {
        let socket = self.socket_folder().display().to_string().replace('/', "%2F");
        format!("postgresql://postgres:hidden@{socket}/{database}").into()
    }

    /// The URL of an empty schema.
    pub async fn empty(&self) -> SecretString {
        let schema = format!("s{}", self.schemas.fetch_add(1, Ordering::Relaxed));
        self.admin().await.client.batch_execute(&format!("create schema {schema}")).await.unwrap();
        self.url(&format!("postgres?options=-csearch_path%3D{schema}"))
    }

    /// A connection of its administrator.
    pub(super) async fn admin(&self) -> Session {
        Database::at(&self.url("postgres?application_name=admin")).unwrap().connect().await.unwrap()
    }

    #[track_caller]
    fn run(&self, program: &str, arguments: &[&str]) {
        let (mut command, data) = (Self::as_nobody(&self.programs.join(program)), self.folder.path().join("data"));
        command.arg("--pgdata").arg(data).args(arguments).current_dir(self.folder.path());
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
        assert!(status.success(), "{command:?}: {status}");
    }

    /// The command that runs a program, as the user `nobody` instead of root. The environment may hold settings of PostgreSQL, such as `PGPORT`.
    fn as_nobody(program: &Path) -> Command {
        let mut command = Command::new(program);
        if rustix::process::geteuid().is_root() {
            command = Command::new("setpriv");
            command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".to_owned()]).arg(program);
        }
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.crash();
    }
}

/// The folder of the newest installed version.
fn programs() -> Option<PathBuf> {
    let versions = Path::new(PACKAGES).read_dir().ok()?.flatten();
    let numbered =
        versions.filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin"))));
    numbered.filter(|(_, programs)| programs.join("initdb").exists()).max().map(|(_, programs)| programs)
}
