//! Stores the sessions of browsers beside the store, so that browsers stay signed in across restarts. Only hashes are stored, and they are valid
//! only while the admin token is the same.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::settings::kept_token::KeptToken;
use crate::settings::private_file;

/// The contents of the file.
#[derive(Default, Serialize, Deserialize)]
struct Contents {
    /// The hash of the admin token with which the sessions were opened.
    token: String,
    /// The hashes of the session cookies, each with the end of the session in seconds since 1970.
    sessions: BTreeMap<String, u64>,
}

/// The file with the sessions.
#[derive(Clone)]
pub(super) struct KeptSessions(PathBuf);

impl KeptSessions {
    /// The file is beside the admin token that the server may create.
    pub(super) fn beside(token: &KeptToken) -> Self {
        Self(token.path().with_file_name("sessions.json"))
    }

    /// The sessions that were opened with this token. An unreadable file counts as empty: people sign in again.
    pub(super) fn read(&self, token: &str) -> BTreeMap<String, u64> {
        let contents = std::fs::read(&self.0).ok().and_then(|bytes| serde_json::from_slice::<Contents>(&bytes).ok());
        contents.filter(|contents| contents.token == hash(token)).map(|contents| contents.sessions).unwrap_or_default()
    }

    pub(super) fn write(&self, token: &str, sessions: BTreeMap<String, u64>) -> io::Result<()> {
        private_file::write(&self.0, &serde_json::to_vec(&Contents { token: hash(token), sessions })?)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

/// The SHA-256 of a text, in base64.
pub(super) fn hash(text: &str) -> String {
    STANDARD.encode(digest(&SHA256, text.as_bytes()))
}
