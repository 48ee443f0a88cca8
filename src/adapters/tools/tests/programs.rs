//! Servers that are programs: shell scripts that speak the protocol line by line.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::server::State;

/// The part of a script that connects, and lists one tool, `go`. What follows runs when the tool is called, with the id in `$id`.
const BEGIN: &str = r#"#!/bin/sh
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
text() { say "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"server/discover"'*) say '"error":{"code":-32601,"message":"unknown"}' ;;
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) say '"result":{"tools":[{"name":"go","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) "#;

struct World {
    data: tempfile::TempDir,
    set: ToolSet,
}

impl World {
    /// A program that does this when its tool is called.
    async fn new(call: &str, server: ToolServer) -> Self {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("server.sh");
        fs::write(&file, format!("{BEGIN}{call} ;;\n  esac\ndone\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let set = start(data.path(), ToolServer { command: Some(file.to_str().unwrap().to_owned()), ..server });
        set.tried().await;
        accept_all(&set).await;
        Self { data, set }
    }

    async fn until(&self, is_wanted: fn(&State) -> bool) {
        let mut state = self.set.in_force.read().servers["box"].server.state.subscribe();
        state.wait_for(is_wanted).await.unwrap();
    }
}

#[tokio::test]
async fn a_program_gets_its_folder_its_limit_and_no_variable_but_the_named_ones() {
    // SHLVL and others are the shell's own.
    let call = r#"text "$(pwd) $(ulimit -d) ${CARGO_PKG_NAME:-none} ${HOME:-none} ${PATH_X:-none} $*""#;
    let server = ToolServer { environment: vec!["CARGO_PKG_NAME".into()], memory_mb: Some(64), ..UNSET };
    let world = World::new(call, ToolServer { arguments: vec!["one".into(), "$two 'x'".into()], ..server }).await;

    let answer = call_go(&world.set).await.unwrap();

    let folder = fs::canonicalize(world.data.path().join("tools/box")).unwrap();
    assert_eq!(answer.text, format!("{} 65536 tertulia-tools none none one $two 'x'", folder.display()));
    assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn a_program_that_dies_in_a_call_has_an_unknown_outcome_and_is_started_again() {
    let world = World::new("echo 'it hurts' >&2; kill -9 $$", UNSET).await;

    let outcome = call_go(&world.set).await;

    assert!(matches!(outcome, Err(Failure::Unknown(_))), "{outcome:?}");
    world.until(|state| state.link.is_none() && state.problem.is_some()).await;
    let problem = world.set.review().servers.remove(0).problem.unwrap();
    assert!(problem.starts_with("it ended the connection; its log ends with: it hurts"), "{problem}");
    assert!(world.set.offered().is_empty());
    world.until(|state| state.link.is_some()).await;
    assert_eq!(names_offered(&world.set), ["box__go"]);
}

#[tokio::test]
async fn a_line_without_end_and_lines_that_are_no_messages_are_survived() {
    let call = r#"n=0; while [ $n -lt 2000 ]; do n=$((n+1)); echo 'no json'; echo '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}'; done
      head -c 34000000 /dev/zero; echo; text done"#;
    let world = World::new(call, UNSET).await;

    let answer = call_go(&world.set).await.unwrap();

    assert_eq!(answer.text, "done");
}

#[tokio::test]
async fn a_program_ends_with_all_its_processes_when_its_server_is_dropped() {
    let call = "mkfifo held; (trap '' TERM INT HUP; while :; do :; done) >held & text begun";
    let world = World::new(call, UNSET).await;
    assert_eq!(call_go(&world.set).await.unwrap().text, "begun");
    let held = world.data.path().join("tools/box/held");
    let mut held = tokio::task::spawn_blocking(|| fs::File::open(held)).await.unwrap().unwrap();

    drop(world.set);

    // It ends with the last process that writes.
    let ended = tokio::task::spawn_blocking(move || held.read_to_end(&mut Vec::new()));
    assert_eq!(ended.await.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named_with_the_reason() {
    for (command, variable, reason) in [
        ("no-such-program", None, "there is no program no-such-program in the folders of PATH"),
        (
            "python server.py",
            None,
            "there is no program python server.py in the folders of PATH; name the program alone, and the rest in `arguments`",
        ),
        ("./here", None, "./here is a relative path; give the whole path of the program"),
        ("/bin/true", Some("NOT_SET_X"), "the environment of tertulia has no variable NOT_SET_X; set it"),
        ("/bin/true", None, "it ended the connection instead of answering"),
    ] {
        let data = tempfile::tempdir().unwrap();
        let environment = variable.into_iter().map(str::to_owned).collect();

        let set = start(data.path(), ToolServer { command: Some(command.to_owned()), environment, ..UNSET });
        set.tried().await;

        assert_eq!(set.review().servers.remove(0).problem.as_deref(), Some(reason));
    }
}

async fn call_go(set: &ToolSet) -> Result<Answer, Failure> {
    set.call("box__go", Map::new()).await
}
