//! A server that runs out of resources: open files, disk space, write permission.

use std::process::Stdio;

use reqwest::StatusCode;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::harness::{PATIENCE, Premises, Server, UnprivilegedUser, permit, program, ran, skipped};

#[tokio::test]
async fn connections_leave_the_store_enough_open_files() {
    let premises = Premises::new();
    let server = Server::of(premises.command_of(&["sh", "-c", "ulimit -n 80; exec \"$0\"", &program()])).await;
    server.logs("leaves no room for server.max_connections").await;
    // Earlier connections stay open.
    let mut lobby = server.watch("lobby", Some(0)).await;
    let first = server.say("lobby", "Ana", "before the rush").await;
    let address = server.url.trim_start_matches("http://").to_owned();
    let mut crowd = Vec::new();
    let mut rejected = 0;
    while rejected < 20 {
        let mut stream = TcpStream::connect(&address).await.expect("a connection");
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").await.expect("sent");
        if crowd.len() >= 20 {
            // A connection that was already closed may fail here.
            let _ = stream.write_all(b"localhost\r\n\r\n").await;
        }
        crowd.push(stream);
        assert!(crowd.len() < 200, "no connection is rejected");
        if crowd.len() > 20 {
            let last = crowd.last_mut().expect("there is one");
            let mut answer = [0; 12];
            let read = tokio::time::timeout(PATIENCE, last.read_exact(&mut answer)).await.expect("an answer in time");
            assert!(read.is_err() || &answer == b"HTTP/1.1 503", "{answer:?}");
            rejected += 1;
        }
    }

    let second = server.say("lobby", "Ana", "hey aria, in the rush").await;

    lobby.event("statement").await;
    drop(crowd);
    let history = server.history("lobby").await;
    assert_eq!((history[0].0, history[1].0), (first, second));
    assert_eq!(history.iter().filter(|(_, from, _)| from == "aria").count(), 1, "{history:?}");
    let lines = server.log_lines_with("Too many open files");
    assert!(!lines.iter().any(|line| line.contains("Too many open files")), "{lines:#?}");
    server.stop().await;
}

#[tokio::test]
async fn a_file_size_limit_ends_the_server_and_loses_no_accepted_message() {
    let premises = Premises::new().with("server.requests_per_second", "1000000");
    // The limit of a file's size: two mebibytes, in blocks of half a kibibyte.
    let limited = ["sh", "-c", "ulimit -f 4096; exec \"$0\"", &program()];
    let accepted = fill_up(Server::of(premises.command_of(&limited)).await).await;

    assert_stored(premises.start().await, &accepted).await;
}

#[tokio::test]
async fn a_full_disk_ends_the_server_and_accepted_messages_are_there_once_it_has_room() {
    let premises = Premises::new().with("server.requests_per_second", "1000000");
    let disk = match Disk::mount(&premises, "6m").await {
        Ok(disk) => disk,
        Err(error) => return skipped(&format!("no small disk can be mounted here: {error}")),
    };
    let accepted = fill_up(Server::of(disk.command(&premises, &[])).await).await;

    // Without more space, the start may succeed or fail, because sled frees space that it no longer needs.
    disk.resize("32m").await;
    assert_stored(Server::of(disk.command(&premises, &[])).await, &accepted).await;
}

/// Sends messages until the disk is full and the server ends. Returns the accepted messages.
async fn fill_up(server: Server) -> Vec<(u64, String)> {
    let mut accepted = Vec::new();
    for number in 0.. {
        let text = format!("{number} {}", "and so on ".repeat(600));
        let message = json!({ "from": "Ana", "text": text.trim_end() });
        match server.try_ask(reqwest::Method::POST, "/api/rooms/lobby/messages", Some(message)).await {
            Ok((StatusCode::ACCEPTED, body)) => {
                accepted.push((body["seq"].as_u64().expect("a number"), text.trim_end().to_owned()))
            }
            // The server ends, or answers just before. Any other refusal is an error, because the server would not end.
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

/// Checks that each accepted message is stored once, and that the server works.
async fn assert_stored(server: Server, accepted: &[(u64, String)]) {
    let history = server.history("lobby").await;
    for (seq, text) in accepted {
        let copies = history
            .iter()
            .filter(|(other_seq, from, other_text)| other_seq == seq && from == "Ana" && other_text == text)
            .count();
        assert_eq!(copies, 1, "message {seq} is not stored exactly once");
    }
    server.rest("lobby").await;
    server.stop().await;
}

#[tokio::test]
async fn a_folder_that_becomes_read_only_loses_nothing_and_prevents_the_next_start() {
    let premises = Premises::new();
    let Some(user) = UnprivilegedUser::find(&premises).await else {
        return skipped("this user can write to every folder, and the program cannot be run as another user");
    };
    let server = Server::of(user.command(&premises, &[])).await;
    let first = server.say("lobby", "Ana", "before it was forbidden").await;
    change_mode(&premises, 0o555);

    // The server may still write to files that it has open.
    let second = server.say("lobby", "Ana", "hey aria, are you there?").await;
    server.logs("the manifest cannot be written").await;
    server.kill().await;
    let refused = ran(user.command(&premises, &[])).await.exits_with(3);

    assert!(refused.stderr.contains("cannot be written to: give it to the user that runs this"), "{refused:?}");
    change_mode(&premises, 0o755);
    let server = Server::of(user.command(&premises, &[])).await;
    server.rest("lobby").await;
    let history = server.history("lobby").await;
    assert_eq!((history[0].0, history[1].0), (first, second), "{history:?}");
    assert_eq!(history.iter().filter(|(_, from, _)| from == "aria").count(), 1, "{history:?}");
    server.stop().await;
}

fn change_mode(premises: &Premises, mode: u32) {
    for folder in ["", "store", "store/blobs"] {
        permit(&premises.data().join(folder), mode);
    }
}

/// A small disk in the mount namespace of a process.
struct Disk {
    holder: Child,
    folder: String,
}

impl Disk {
    /// Mounts it as the data folder.
    async fn mount(premises: &Premises, size: &str) -> Result<Self, String> {
        let folder = premises.data().to_string_lossy().into_owned();
        std::fs::create_dir_all(&folder).expect("a folder");
        let hold = format!("mount -t tmpfs -o size={size} tmpfs '{folder}' && echo mounted && exec sleep 600");
        let mut command = premises.command_of(&["unshare", "--mount", "sh", "-c", &hold]);
        command.stdin(Stdio::null());
        let mut holder = command.spawn().map_err(|error| error.to_string())?;
        let mut output = BufReader::new(holder.stdout.take().expect("piped")).lines();
        match output.next_line().await {
            Ok(Some(line)) if line == "mounted" => Ok(Self { holder, folder }),
            _ => {
                let mut error_text = String::new();
                let read = holder.stderr.take().expect("piped").read_to_string(&mut error_text).await;
                Err(read.map_or_else(|error| error.to_string(), |_| error_text.trim().to_owned()))
            }
        }
    }

    /// The program, in that namespace.
    fn command(&self, premises: &Premises, arguments: &[&str]) -> Command {
        let holder = self.holder.id().expect("the holder runs").to_string();
        let home = premises.path().to_string_lossy().into_owned();
        let line = ["nsenter", "--target", &holder, "--mount", "sh", "-c", "cd \"$0\" && exec \"$@\"", &home, &program()];
        premises.command_of(&[&line, arguments].concat())
    }

    async fn resize(&self, size: &str) {
        let holder = self.holder.id().expect("the holder runs").to_string();
        let option = format!("remount,size={size}");
        let resized =
            Command::new("nsenter").args(["--target", &holder, "--mount", "mount", "-o", &option, &self.folder]).status();
        assert!(resized.await.expect("nsenter can be run").success());
    }
}
