//! Fuzzes the parser of the server's address file.

use std::fs;

use super::address::{Running, running};
use crate::fuzzing::texts;

pub(crate) fn address_files() -> Vec<Vec<u8>> {
    texts(&[r#"{"url":"http://127.0.0.1:7878","pid":12}"#, "{}"])
}

pub(crate) fn address_file(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("server.json"), bytes).expect("a file");

    if let Some(read) = running(folder.path()) {
        let written = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<Running>(&written).unwrap(), read);
    }
}
