//! Copies a store into an empty one of any engine, and checks the copy.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{Context, SHA256};

use super::sled::facts::{counts_key, first_key, identity_key, term_key};
use crate::domain::id::Ward;
use crate::ports::store::key::Key;
use crate::ports::store::{Batch, Refusal, Store, StoreError, Term, Value, Write};

/// The number of records that are read and committed together.
const PAGE: usize = 500;

/// The totals of all keys and values of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    pub records: u64,
    /// The bytes of keys and values.
    pub bytes: u64,
    /// SHA-256 over all keys and values with their lengths, in the order of keys, in hexadecimal.
    pub sha256: String,
}

/// A phase of copying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The records of the source are counted.
    Counting,
    Copying,
    /// The copy is read again.
    Checking,
}

/// Why a store was not copied.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("the target has records already: copy into an empty one; nothing was changed")]
    NotEmpty,
    #[error(
        "the copy is not what was copied: {} records with the hash {} became {} with {}; do it again, and keep the source",
        .from.records, .from.sha256, .to.records, .to.sha256
    )]
    Different { from: Box<Sum>, to: Box<Sum> },
    #[error("the source: {0}")]
    Source(StoreError),
    #[error("the target: {0}")]
    Target(StoreError),
    #[error("the target: {0}")]
    Refused(#[from] Refusal),
}

/// Empties a store with an interrupted copy, or accepts one without records, and marks it as an incomplete copy.
///
/// # Errors
/// [`TransferError::NotEmpty`]; an error if the store cannot be read or written.
pub async fn begin(to: &dyn Store) -> Result<(), TransferError> {
    let mut target = Target { store: to, terms: BTreeMap::new() };
    let is_begun = is_unfinished(to).await.map_err(TransferError::Target)?;
    let mut pages = Pages::of(to);
    while let Some(page) = pages.next().await.map_err(TransferError::Target)? {
        if !is_begun && !page.is_empty() {
            return Err(TransferError::NotEmpty);
        }
        target.write(page.into_iter().map(|(key, _)| Write::Remove(key))).await?;
    }
    target.write([Write::Put(mark_key(), Vec::new()), Write::Remove(moved_key())]).await
}

/// Copies everything except the store's records about itself. `progress` receives the number of copied records, and the total
/// once it is known. Until [`finish`], a record marks the copy as incomplete, and the next copy starts over.
///
/// # Errors
/// [`TransferError`]. The source is never changed.
pub async fn copy(
    from: &dyn Store,
    to: &dyn Store,
    mut progress: impl FnMut(Step, u64, Option<u64>),
) -> Result<Sum, TransferError> {
    begin(to).await?;
    let mut target = Target { store: to, terms: BTreeMap::new() };
    let source = sum(from, |done| progress(Step::Counting, done, None)).await.map_err(TransferError::Source)?;
    let all = Some(source.records);
    let (mut records, mut pages) = (0, Pages::of(from));
    while let Some(page) = pages.next().await.map_err(TransferError::Source)? {
        records += page.len() as u64;
        target.write(page.into_iter().map(|(key, value)| Write::Put(key, value))).await?;
        progress(Step::Copying, records, all);
    }
    let copy = sum(to, |done| progress(Step::Checking, done, all)).await.map_err(TransferError::Target)?;
    if source != copy {
        return Err(TransferError::Different { from: source.into(), to: copy.into() });
    }
    Ok(copy)
}

/// Marks a copy as complete. From then on servers start on the copy, so none may start on the source any more.
///
/// # Errors
/// Returns an error if the mark cannot be removed.
pub async fn finish(to: &dyn Store) -> Result<(), TransferError> {
    Target { store: to, terms: BTreeMap::new() }.write([Write::Remove(mark_key())]).await
}

/// Whether a copy into this store was interrupted, so that the store is incomplete.
///
/// # Errors
/// Returns an error if the store cannot be read.
pub async fn is_unfinished(store: &dyn Store) -> Result<bool, StoreError> {
    Ok(store.get(mark_key()).await?.is_some())
}

/// The key of the mark of an incomplete copy.
pub fn mark_key() -> Key {
    first_key().text("copying")
}

/// Marks a store as copied to another one, which servers use from now on.
///
/// # Errors
/// Returns an error if the mark cannot be stored.
pub async fn note_moved(store: &dyn Store) -> Result<(), TransferError> {
    Target { store, terms: BTreeMap::new() }.write([Write::Put(moved_key(), Vec::new())]).await
}

/// Whether servers use a copy of this store.
///
/// # Errors
/// Returns an error if the store cannot be read.
pub async fn is_moved(store: &dyn Store) -> Result<bool, StoreError> {
    Ok(store.get(moved_key()).await?.is_some())
}

/// The key of the mark of a copied store.
fn moved_key() -> Key {
    first_key().text("moved")
}

/// Computes the totals of all records except the store's records about itself.
async fn sum(store: &dyn Store, mut progress: impl FnMut(u64)) -> Result<Sum, StoreError> {
    let (mut records, mut bytes, mut hash) = (0, 0, Context::new(&SHA256));
    let mut pages = Pages::of(store);
    while let Some(page) = pages.next().await? {
        for (key, value) in &page {
            for part in [key.as_bytes(), value] {
                hash.update(&(part.len() as u64).to_be_bytes());
                hash.update(part);
                bytes += part.len() as u64;
            }
        }
        records += page.len() as u64;
        progress(records);
    }
    let sha256 = hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Sum { records, bytes, sha256 })
}

/// The records of a store in the order of keys, without the store's records about itself.
struct Pages<'a> {
    store: &'a dyn Store,
    next: Key,
}

impl<'a> Pages<'a> {
    fn of(store: &'a dyn Store) -> Self {
        Self { store, next: Key::from_bytes(&[]) }
    }

    async fn next(&mut self) -> Result<Option<Vec<(Key, Value)>>, StoreError> {
        // No kind has this byte, so it is greater than every key.
        let end = Key::from_bytes(&[u8::MAX; 2]);
        let mut page = self.store.scan(self.next.clone(), end, false, PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(None) };
        self.next = Key::from_bytes(&[last.as_bytes(), &[0]].concat());
        let own = [identity_key(), term_key(), counts_key(), mark_key(), moved_key()];
        page.retain(|(key, _)| !own.contains(key));
        Ok(Some(page))
    }
}

/// Writes to the target under its own terms.
struct Target<'a> {
    store: &'a dyn Store,
    terms: BTreeMap<Ward, Term>,
}

impl Target<'_> {
    /// Commits changes that are in the order of keys.
    async fn write(&mut self, writes: impl IntoIterator<Item = Write>) -> Result<(), TransferError> {
        let mut group: Vec<Batch> = Vec::new();
        for write in writes {
            let (Write::Put(key, _) | Write::Remove(key)) = &write;
            let ward = Ward(key.as_bytes().first().copied().unwrap_or_default());
            match group.last_mut().filter(|batch| batch.ward == ward) {
                Some(batch) => batch.writes.push(write),
                None => {
                    let term = self.term(ward).await.map_err(TransferError::Target)?;
                    group.push(Batch { ward, term, append: None, fresh: Vec::new(), writes: vec![write] });
                }
            }
        }
        if group.is_empty() {
            return Ok(());
        }
        for outcome in self.store.commit(group).await.map_err(TransferError::Target)? {
            outcome?;
        }
        Ok(())
    }

    async fn term(&mut self, ward: Ward) -> Result<Term, StoreError> {
        if let Some(term) = self.terms.get(&ward) {
            return Ok(*term);
        }
        let term = self.store.acquire_ward(ward).await?;
        self.terms.insert(ward, term);
        Ok(term)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{append, journal, put, taken, value, writes};
    use crate::memory::{Fault, MemoryStore};
    use crate::ports::store::key::Kind;

    /// A store with records of several wards, and with what a store says about itself.
    async fn filled() -> MemoryStore {
        let store = MemoryStore::new();
        let term = taken(&store).await;
        let own = Write::Put(identity_key(), b"the source".to_vec());
        let batch = Batch { writes: vec![put("a", "1"), own], ..append(term, 0, ["one", "two"]) };
        store.commit(vec![batch]).await.unwrap();
        for ward in [Ward(0), Ward(255)] {
            let term = store.acquire_ward(ward).await.unwrap();
            let many =
                (0..2 * PAGE as u64).map(|number| Write::Put(Key::new(ward, Kind::Picture).number(number), vec![1; 9])).collect();
            store.commit(vec![Batch { ward, term, append: None, fresh: Vec::new(), writes: many }]).await.unwrap();
        }
        store
    }

    #[tokio::test]
    async fn a_copy_holds_every_record_but_what_a_store_says_about_itself() {
        let (from, to) = (filled().await, MemoryStore::new());
        let mut steps = Vec::new();

        let sum = copy(&from, &to, |step, done, all| steps.push((step, done, all))).await.unwrap();
        assert!(is_unfinished(&to).await.unwrap(), "until the source is marked");
        finish(&to).await.unwrap();

        // Two events and where they end, one setting, the pictures.
        assert_eq!(sum.records, 4 + 4 * PAGE as u64);
        for (step, all) in [(Step::Counting, None), (Step::Copying, Some(sum.records)), (Step::Checking, Some(sum.records))] {
            assert_eq!(steps.iter().rfind(|(of, ..)| *of == step), Some(&(step, sum.records, all)));
        }
        assert_eq!(journal(&to).await, ["one", "two"]);
        assert_eq!(value(&to, "a").await.as_deref(), Some("1"));
        assert!(!to.has(|key| *key == identity_key() || *key == mark_key()));
    }

    #[tokio::test]
    async fn a_store_with_records_is_not_copied_into() {
        let (from, to) = (filled().await, MemoryStore::new());
        let term = taken(&to).await;
        to.commit(vec![writes(term, [put("mine", "1")])]).await.unwrap();

        let error = copy(&from, &to, |_, _, _| {}).await.unwrap_err();

        assert!(matches!(error, TransferError::NotEmpty), "{error}");
        assert_eq!(value(&to, "mine").await.as_deref(), Some("1"));
    }

    #[tokio::test]
    async fn an_interrupted_copy_is_marked_and_begins_anew() {
        let (from, to) = (filled().await, MemoryStore::new());
        let failing = copy(&from, &to, |step, _, _| {
            if step == Step::Copying {
                to.fail_next(Fault::Failed);
            }
        })
        .await;
        assert!(matches!(failing, Err(TransferError::Target(_))), "{failing:?}");
        to.reopen();
        assert!(is_unfinished(&to).await.unwrap());
        let term = taken(&to).await;
        to.commit(vec![writes(term, [put("left over", "1")])]).await.unwrap();

        copy(&from, &to, |_, _, _| {}).await.unwrap();
        // It was interrupted once more, after all was there.
        copy(&from, &to, |_, _, _| {}).await.unwrap();
        finish(&to).await.unwrap();

        assert!(!is_unfinished(&to).await.unwrap());
        assert_eq!(value(&to, "left over").await, None);
    }
}
