//! Shares files beside the store with the next owner of a shared store: the model connection and the settings from the page, the sessions of
//! browsers, and the accepted tools.
//!
//! Each node has its own files. The owner of the store keeps copies in the store, encrypted if `cluster.secret_file` is set. A node that takes over
//! replaces its files with them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use tokio::sync::Mutex;
use tokio::time::{MissedTickBehavior, interval};

use crate::journal::key;
use crate::journal::record::decode_bytes;
use crate::ports::notes::{NoteError, Notes};
use crate::ports::rng::Rng;
use crate::ports::store::Store;
use crate::settings::cluster::Cluster;
use crate::settings::kept::is_secret;
use crate::settings::{Problem, private_file};

/// Each file, and whether its copy may be in plain text. Sessions may, because only hashes of them are stored.
const FILES: [(&str, bool); 4] =
    [("connection.json", false), ("settings.json", false), ("sessions.json", true), ("tools.lock", true)];
/// How often the files are checked for changes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The first byte of a copy in plain text, and of an encrypted copy.
const PLAIN: u8 = 0;
const SEALED: u8 = 1;

/// Encrypts and reads the copies.
pub(super) struct KeptFiles {
    data: PathBuf,
    /// Derived from the cluster's secret, which must be random.
    key: Option<LessSafeKey>,
    /// The contents of each file that have a copy in the store, or need none. `None`: unknown.
    known: Mutex<[Option<Option<Vec<u8>>>; FILES.len()]>,
}

/// Copies the files into the store.
#[derive(Clone)]
pub(super) struct Copies {
    files: Arc<KeptFiles>,
    notes: Arc<dyn Notes>,
    rng: Arc<dyn Rng>,
}

impl KeptFiles {
    /// # Errors
    /// Returns an error if the secret cannot be read, or is too short.
    pub(super) fn new(data: &Path, settings: &Cluster) -> Result<Self, Problem> {
        let key = settings.secret()?.and_then(|secret| {
            let hash = digest(&SHA256, secret.as_bytes());
            UnboundKey::new(&AES_256_GCM, hash.as_ref()).ok().map(LessSafeKey::new)
        });
        Ok(Self { data: data.into(), key, known: Mutex::default() })
    }

    /// Replaces the files with the copies in the store. Files without a copy are kept.
    pub(super) async fn restore(&self, store: &dyn Store) {
        let mut known = self.known.lock().await;
        for ((file, _), known) in FILES.into_iter().zip(&mut *known) {
            if let Err(error) = self.restore_file(store, file).await {
                tracing::error!(file, error, "the copy of a file in the store cannot be used; the file of this node stays");
                // The copy is kept, too, until this node's file changes.
                *known = self.contents(file).await.ok();
            }
        }
    }

    async fn restore_file(&self, store: &dyn Store, file: &str) -> Result<(), String> {
        let key = key::note(None, &note_name(file));
        let Some(stored) = store.get(key.clone()).await.map_err(|error| error.to_string())? else { return Ok(()) };
        let copy = decode_bytes(&key, &stored).map_err(|error| error.to_string())?;
        let path = self.data.join(file);
        match self.opened(file, &copy)? {
            // The removal of a file is copied, too.
            None => private_file::remove(&path),
            Some(bytes) => private_file::write(&path, &bytes),
        }
        .map_err(|error| error.to_string())
    }

    /// The contents of a file. `None`: the file does not exist.
    async fn contents(&self, file: &str) -> io::Result<Option<Vec<u8>>> {
        match tokio::fs::read(self.data.join(file)).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn copy(&self, notes: &dyn Notes, rng: &dyn Rng) -> Result<(), NoteError> {
        let mut all_known = self.known.lock().await;
        for ((file, is_public), known) in FILES.into_iter().zip(&mut *all_known) {
            let Ok(now) = self.contents(file).await else { continue };
            // A file that never existed needs no copy.
            if known.as_ref() == Some(&now) || known.is_none() && now.is_none() {
                *known = Some(now);
                continue;
            }
            if is_public || self.key.is_some() || !has_secret(now.as_deref()) {
                notes.write(None, vec![(note_name(file), Some(self.closed(file, now.as_deref(), rng)))]).await?;
            } else {
                tracing::warn!(
                    file,
                    "secrets that were set on the page are not shared with other nodes, which will not have them: set cluster.secret_file"
                );
            }
            *known = Some(now);
        }
        Ok(())
    }

    fn closed(&self, file: &str, contents: Option<&[u8]>, rng: &dyn Rng) -> Vec<u8> {
        let (Some(contents), Some(key)) = (contents, &self.key) else {
            return contents.map_or_else(Vec::new, |contents| [&[PLAIN], contents].concat());
        };
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&rng.id().to_be_bytes()[..NONCE_LEN]);
        let mut sealed = contents.to_vec();
        // Encryption fails only for more than 64 GiB.
        let _ = key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(file), &mut sealed);
        [&[SEALED][..], &nonce, &sealed].concat()
    }

    fn opened(&self, file: &str, copy: &[u8]) -> Result<Option<Vec<u8>>, String> {
        match copy.split_first() {
            None => Ok(None),
            Some((&PLAIN, contents)) => Ok(Some(contents.to_vec())),
            Some((&SEALED, sealed)) => {
                let key = self.key.as_ref().ok_or("it is encrypted, and cluster.secret_file is not set here")?;
                let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>().ok_or("it is cut off")?;
                let mut contents = sealed.to_vec();
                let opened = key.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(file), &mut contents);
                let opened = opened.map_err(|_| "cluster.secret_file has another secret here than on the node that wrote it")?;
                Ok(Some(opened.to_vec()))
            }
            Some(_) => Err("it is of a newer version".to_owned()),
        }
    }
}

impl Copies {
    pub(super) fn new(files: Arc<KeptFiles>, notes: Arc<dyn Notes>, rng: Arc<dyn Rng>) -> Self {
        Self { files, notes, rng }
    }

    /// Copies changed files now.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    pub(super) async fn update(&self) -> Result<(), NoteError> {
        self.files.copy(&*self.notes, &*self.rng).await
    }

    /// Copies changed files as long as it is polled.
    pub(super) async fn keep(&self) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.update().await {
                tracing::warn!(%error, "a file could not be copied into the store; this is tried again");
            }
        }
    }
}

/// Whether a connection has an API key, or headers or parameters that may be secret, or settings have a key or a token.
fn has_secret(contents: Option<&[u8]>) -> bool {
    let json = contents.and_then(|bytes| serde_json::from_slice::<serde_json::Map<_, serde_json::Value>>(bytes).ok());
    let is_one = |key: &String| ["api_key", "extra_headers", "extra_query"].contains(&key.as_str()) || is_secret(key);
    json.is_some_and(|json| json.keys().any(is_one))
}

fn note_name(file: &str) -> String {
    format!("file/{file}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::system::SystemRng;

    fn files(secret: Option<&str>) -> (KeptFiles, tempfile::TempDir) {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("secret");
        let secret_file = secret.map(|secret| std::fs::write(&path, secret).map(|()| path.clone()).unwrap());
        let settings = Cluster { secret_file, ..Cluster::default() };
        (KeptFiles::new(data.path(), &settings).unwrap(), data)
    }

    #[test]
    fn a_copy_is_read_with_the_same_secret_only() {
        let (one, _one) = files(Some("a secret of all nodes"));
        let (other, _other) = files(Some("another secret of theirs"));
        let (none, _none) = files(None);

        let copy = one.closed("connection.json", Some(b"{\"api_key\":\"hidden\"}"), &SystemRng);

        assert!(!String::from_utf8_lossy(&copy).contains("hidden"));
        assert_eq!(one.opened("connection.json", &copy).unwrap().unwrap(), b"{\"api_key\":\"hidden\"}");
        assert!(one.opened("sessions.json", &copy).is_err());
        assert!(other.opened("connection.json", &copy).unwrap_err().contains("another secret"));
        assert!(none.opened("connection.json", &copy).unwrap_err().contains("is not set"));
        assert_eq!(one.opened("connection.json", &one.closed("connection.json", None, &SystemRng)).unwrap(), None);
        assert!(
            has_secret(Some(b"{\"api_key\":\"hidden\"}"))
                && has_secret(Some(b"{\"discord.token\":\"hidden\"}"))
                && !has_secret(Some(b"{}"))
                && !has_secret(None)
        );
    }

    #[test]
    fn a_short_secret_is_refused() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("secret");
        std::fs::write(&path, "too short\n").unwrap();

        let problem = KeptFiles::new(data.path(), &Cluster { secret_file: Some(path), ..Cluster::default() }).err().unwrap();

        assert!(problem.key == "secret_file" && !problem.message.contains("too short\n"), "{problem}");
    }
}
