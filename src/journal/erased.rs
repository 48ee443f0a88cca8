//! Records that text was erased, because erased text stays readable in the store's file until the store is compacted.
//!
//! The mark is written in the same batch as the erasure, with one key for each day and ward. Compaction does not copy the marks,
//! so they disappear exactly when the text does. The time of the last erasure in each ward stays: backups that were made before
//! it contain the text, too.

use crate::domain::id::Ward;
use crate::domain::moment::Moment;
use crate::ports::store::key::{Key, Kind};
use crate::ports::store::{Store, StoreError, Write};
use crate::record::{decode, encode};

const DAY_MICROS: u64 = 24 * 60 * 60 * 1_000_000;

/// When text was last erased. `None`: never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erasures {
    /// For any reason.
    pub last: Option<Moment>,
    /// Because a deletion was requested, as opposed to expiry.
    pub requested: Option<Moment>,
    /// When many events expired at once.
    pub large_expiry: Option<Moment>,
}

/// The writes that record an erasure in a ward at this moment, and whether a deletion was requested.
pub fn erasure_writes(ward: Ward, at: Moment, is_requested: bool) -> impl Iterator<Item = Write> {
    let mark = Write::Put(marks(ward).number(at.as_micros() / DAY_MICROS), encode(&()));
    let times = [Some(last_key(ward)), is_requested.then(|| requested_key(ward))];
    [mark].into_iter().chain(times.into_iter().flatten().map(move |key| Write::Put(key, encode(&at))))
}

/// Whether a key is the key of a mark.
pub fn is_mark(key: &Key) -> bool {
    let [ward, ..] = *key.as_bytes() else { return false };
    key.as_bytes().starts_with(marks(Ward(ward)).as_bytes())
}

/// The beginning of the day of the oldest erasure whose text is still in the store's file. `None`: there is no such text.
///
/// # Errors
/// Returns an error if the store cannot be read.
pub async fn oldest(store: &dyn Store) -> Result<Option<Moment>, StoreError> {
    let mut oldest = None;
    for ward in (0..=u8::MAX).map(Ward) {
        let found = store.scan(marks(ward), marks(ward).end(), false, 1).await?;
        let day = found.first().and_then(|(key, _)| key.last_number());
        oldest = [oldest, day].into_iter().flatten().min();
    }
    Ok(oldest.map(|day| Moment::from_micros(day.saturating_mul(DAY_MICROS))))
}

/// The times of the last erasures. A time that cannot be decoded counts as none.
///
/// # Errors
/// Returns an error if the store cannot be read.
pub async fn last(store: &dyn Store) -> Result<Erasures, StoreError> {
    let mut erasures = Erasures { large_expiry: time(store, large_expiry_key()).await?, ..Erasures::default() };
    for ward in (0..=u8::MAX).map(Ward) {
        erasures.last = erasures.last.max(time(store, last_key(ward)).await?);
        erasures.requested = erasures.requested.max(time(store, requested_key(ward)).await?);
    }
    Ok(erasures)
}

async fn time(store: &dyn Store, key: Key) -> Result<Option<Moment>, StoreError> {
    let found = store.get(key.clone()).await?;
    Ok(found.and_then(|value| decode(&key, &value).ok()))
}

/// Whether this is the key of the time of an erasure.
pub(super) fn is_time(key: &Key) -> bool {
    let [ward, ..] = *key.as_bytes() else { return false };
    [last_key(Ward(ward)), requested_key(Ward(ward)), large_expiry_key()].contains(key)
}

/// The key of the time of the last large expiry, in all wards together.
pub fn large_expiry_key() -> Key {
    Key::new(Ward(0), Kind::Meta).text("large expiry")
}

/// The key of the time of a ward's last erasure.
fn last_key(ward: Ward) -> Key {
    Key::new(ward, Kind::Meta).text("last erased")
}

/// The key of the time of a ward's last requested erasure.
fn requested_key(ward: Ward) -> Key {
    Key::new(ward, Kind::Meta).text("last requested erasure")
}

fn marks(ward: Ward) -> Key {
    Key::new(ward, Kind::Meta).text("erased")
}
