//! The companions' pictures in the store, and the URLs where they are served.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use parking_lot::RwLock;

use crate::domain::id::CompanionId;
use crate::journal::key;
use crate::journal::reader::ReadError;
use crate::journal::record::decode_bytes;
use crate::ports::store::Store;
use crate::settings::server::Server;

/// How many hexadecimal digits of a picture's hash are in its path. They are enough to give different pictures different paths.
const HASH_CHARS: usize = 32;

/// How many pictures are in memory at a time while all of them are read.
const AT_A_TIME: usize = 16;

/// The hashes of the companions' pictures. Cheap to clone. All clones share their state.
#[derive(Clone, Default)]
pub struct Pictures(Arc<RwLock<BTreeMap<CompanionId, Arc<str>>>>);

impl Pictures {
    /// Reads all pictures of the store. Skips those that cannot be decoded.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    pub async fn load(&self, store: &dyn Store) -> Result<(), ReadError> {
        let mut from = key::pictures();
        loop {
            let page = store.scan(from.clone(), key::pictures().end(), false, AT_A_TIME).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            from = key::successor(last);
            for (key, value) in page {
                if let (Some(id), Ok(bytes)) = (key::companion_in(&key), decode_bytes(&key, &value)) {
                    self.set(&id, Some(&bytes));
                }
            }
        }
    }

    /// The hash of a companion's picture. None if it has no picture.
    pub fn hash(&self, id: &CompanionId) -> Option<Arc<str>> {
        self.0.read().get(id).cloned()
    }

    /// The path of a companion's picture on this server.
    pub fn path(&self, id: &CompanionId) -> Option<String> {
        Some(format!("/pictures/{id}/{}", self.hash(id)?))
    }

    /// The public URL of a companion's picture. None if it has no picture, or the server has no public address with https.
    pub fn public_url(&self, id: &CompanionId, server: &Server) -> Option<Arc<str>> {
        let origin = server.public_origin().filter(|origin| origin.starts_with("https://"))?;
        Some(format!("{origin}{}", self.path(id)?).into())
    }

    /// Sets or removes the hash of a companion's picture.
    pub fn set(&self, id: &CompanionId, picture: Option<&[u8]>) {
        let mut hashes = self.0.write();
        match picture {
            Some(bytes) => drop(hashes.insert(id.clone(), hash(bytes)[..HASH_CHARS].into())),
            None => drop(hashes.remove(id)),
        }
    }
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub fn hash(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest.as_ref().iter().fold(String::new(), |mut hex, byte| {
        // Writing to a String does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_public_only_over_https() {
        let (pictures, mira, mut server) = (Pictures::default(), "mira".into(), crate::settings::samples::server());
        pictures.set(&mira, Some(b"picture"));
        let path = pictures.path(&mira).unwrap();

        let mut public = |url: Option<&str>| {
            server.public_url = url.map(str::to_owned);
            pictures.public_url(&mira, &server)
        };

        assert_eq!((public(None), public(Some("http://talk.example.org"))), (None, None));
        assert_eq!(public(Some("https://talk.example.org")), Some(format!("https://talk.example.org{path}").into()));
        assert!(path.starts_with("/pictures/mira/") && path.len() == 15 + HASH_CHARS, "{path}");
        pictures.set(&mira, None);
        assert_eq!(pictures.path(&mira), None);
    }
}
