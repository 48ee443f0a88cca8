//! A server that runs out of what it needs: files, room on its disk, the right to write.

use std::process::Stdio;

use reqwest::StatusCode;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::harness::{PATIENCE, Premises, Server, program, ran, skipped};

#[tokio::test]
async fn connections_leave_the_store_the_files_that_it_needs() {
    let premises = Premises::new();
    let limited = format!("ulimit -n 80; exec {}", program());
    let server = Server::of(premises.command_of(&["sh", "-c", &limited])).await;
    server.logs("leaves no room for server.max_connections").await;
    // Who asked before and who watches keep their connections.
    let mut lobby = server.watch("lobby", Some(0)).await;
    let first = server.say("lobby", "Ana", "before the rush").await;
    let address = server.url.trim_start_matches("http://").to_owned();
    let mut crowd = Vec::new();
    let mut turned_away = 0;
    while turned_away < 20 {
        let mut stream = TcpStream::connect(&address).await.expect("a connection");
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").await.expect("sent");
        if crowd.len() >= 20 {
            // Whoever is cut off already need not be told.
            let _ = stream.write_all(b"localhost\r\n\r\n").await;
        }
        crowd.push(stream);
        assert!(crowd.len() < 200, "nobody is turned away");
        if crowd.len() > 20 {
            let last = crowd.last_mut().expect("there is one");
            let mut answer = [0; 12];
            let read = tokio::time::timeout(PATIENCE, last.read_exact(&mut answer)).await.expect("an answer in time");
            assert!(read.is_err() || &answer == b"HTTP/1.1 503", "{answer:?}");
            turned_away += 1;
        }
    }

    let second = server.say("lobby", "Ana", "hey aria, in the rush").await;

    lobby.event("statement").await;
    drop(crowd);
    let history = server.history("lobby").await;
    assert_eq!((history[0].0, history[1].0), (first, second));
    assert_eq!(history.iter().filter(|(_, from, _)| from == "aria").count(), 1, "{history:?}");
    let troubles = server.told_of("Too many open files");
    assert!(!troubles.iter().any(|line| line.contains("Too many open files")), "{troubles:#?}");
    server.stop().await;
}

#[tokio::test]
async fn a_disk_that_fills_up_ends_the_server_and_what_was_accepted_is_there_when_it_has_room() {
    let premises = Premises::new().with("server.requests_per_second", "1000000");
    let disk = match Disk::of(&premises, "6m").await {
        Ok(disk) => disk,
        Err(why) => return skipped(&format!("no small disk can be mounted here: {why}")),
    };
    let accepted = fill_up(Server::of(disk.command(&premises, &[])).await).await;

    // Without more room it may begin or not: sled gives back what it does not need any more.
    disk.resize("32m").await;
    keeps(Server::of(disk.command(&premises, &[])).await, &accepted).await;
}

/// Has somebody talk until the server takes no more and ends: what it accepted.
async fn fill_up(server: Server) -> Vec<(u64, String)> {
    let mut accepted = Vec::new();
    for number in 0.. {
        let text = format!("{number} {}", "and so on ".repeat(600));
        let said = json!({ "from": "Ana", "text": text.trim_end() });
        match server.try_ask(reqwest::Method::POST, "/api/rooms/lobby/messages", Some(said)).await {
            Ok((StatusCode::ACCEPTED, body)) => {
                accepted.push((body["seq"].as_u64().expect("a number"), text.trim_end().to_owned()))
            }
            // Its end, or the answer before it; whoever was refused for another reason would wait for it in vain.
            Ok((StatusCode::INTERNAL_SERVER_ERROR | StatusCode::SERVICE_UNAVAILABLE, _)) | Err(_) => break,
            Ok(other) => panic!("{other:?}"),
        }
    }
    let (status, log) = server.ended().await;
    assert_eq!(status.code(), Some(3), "{log}");
    assert!(log.contains("the store accepts no more writes") && log.contains("make room"), "{log}");
    assert!(!accepted.is_empty());
    accepted
}

/// All of that is there, once, and the server goes on.
async fn keeps(server: Server, accepted: &[(u64, String)]) {
    let history = server.history("lobby").await;
    for (seq, text) in accepted {
        let there = history.iter().filter(|(known, from, said)| known == seq && from == "Ana" && said == text).count();
        assert_eq!(there, 1, "message {seq} is not there once");
    }
    server.rest("lobby").await;
    server.stop().await;
}

#[tokio::test]
async fn a_folder_that_becomes_read_only_loses_nothing_and_is_refused_at_the_next_start() {
    let premises = Premises::new();
    let Some(user) = Somebody::who_may_not_write_everywhere(&premises).await else {
        return skipped("this user can write everywhere, and the program cannot be run as another one");
    };
    let server = Server::of(user.command(&premises)).await;
    let first = server.say("lobby", "Ana", "before it was forbidden").await;
    forbid(&premises, "555").await;

    // The files that it has open it may write.
    let second = server.say("lobby", "Ana", "hey aria, are you there?").await;
    server.logs("the manifest cannot be written").await;
    server.kill().await;
    let refused = ran(user.command(&premises)).await;

    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("cannot be written to: give it to the user that runs this"), "{refused:?}");
    forbid(&premises, "755").await;
    let server = Server::of(user.command(&premises)).await;
    server.rest("lobby").await;
    let history = server.history("lobby").await;
    assert_eq!((history[0].0, history[1].0), (first, second), "{history:?}");
    assert_eq!(history.iter().filter(|(_, from, _)| from == "aria").count(), 1, "{history:?}");
    server.stop().await;
}

async fn forbid(premises: &Premises, mode: &str) {
    let changed = ran(premises.command_of(&["chmod", mode, "data", "data/store", "data/store/blobs"])).await;
    assert_eq!(changed.code, Some(0), "{changed:?}");
}

/// The user that runs this, or one with less power.
struct Somebody(&'static [&'static str]);

impl Somebody {
    async fn who_may_not_write_everywhere(premises: &Premises) -> Option<Self> {
        const NOBODY: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let is_root = ran(premises.command_of(&["id", "-u"])).await.stdout.trim() == "0";
        if !is_root {
            return Some(Self(&[]));
        }
        let given = ran(premises.command_of(&["chown", "-R", "65534:65534", "."])).await;
        let opened = ran(premises.command_of(&["chmod", "755", "."])).await;
        let able = ran(premises.command_of(&[NOBODY, &[&*program(), "--version"]].concat())).await;
        ([given.code, opened.code, able.code] == [Some(0); 3]).then_some(Self(NOBODY))
    }

    fn command(&self, premises: &Premises) -> Command {
        premises.command_of(&[self.0, &[&*program()]].concat())
    }
}

/// A small disk that nobody else sees, for as long as a process holds it.
struct Disk {
    holder: Child,
    folder: String,
}

impl Disk {
    /// Mounts it where the data goes.
    async fn of(premises: &Premises, size: &str) -> Result<Self, String> {
        let folder = premises.data().to_string_lossy().into_owned();
        std::fs::create_dir_all(&folder).expect("a folder");
        let hold = format!("mount -t tmpfs -o size={size} tmpfs '{folder}' && echo mounted && exec sleep 600");
        let mut command = premises.command_of(&["unshare", "--mount", "sh", "-c", &hold]);
        command.stdin(Stdio::null());
        let mut holder = command.spawn().map_err(|error| error.to_string())?;
        let mut told = BufReader::new(holder.stdout.take().expect("piped")).lines();
        match told.next_line().await {
            Ok(Some(line)) if line == "mounted" => Ok(Self { holder, folder }),
            _ => {
                let mut why = String::new();
                let read = holder.stderr.take().expect("piped").read_to_string(&mut why).await;
                Err(read.map_or_else(|error| error.to_string(), |_| why.trim().to_owned()))
            }
        }
    }

    /// The program, which sees it.
    fn command(&self, premises: &Premises, arguments: &[&str]) -> Command {
        let holder = self.holder.id().expect("it holds on").to_string();
        let home = premises.path().to_string_lossy().into_owned();
        let line = ["nsenter", "--target", &holder, "--mount", "sh", "-c", "cd \"$0\" && exec \"$@\"", &home, &program()];
        premises.command_of(&[&line, arguments].concat())
    }

    async fn resize(&self, size: &str) {
        let holder = self.holder.id().expect("it holds on").to_string();
        let option = format!("remount,size={size}");
        let resized =
            Command::new("nsenter").args(["--target", &holder, "--mount", "mount", "-o", &option, &self.folder]).status();
        assert!(resized.await.expect("nsenter can be run").success());
    }
}
