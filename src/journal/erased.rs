//! Marks that text was erased, because erased text stays readable in the store's file until the store is compacted.
//!
//! The mark is written in the same batch as the erasure, with one key for each day and ward. Compaction does not copy the marks, so they
//! disappear exactly when the text does. The time of the last erasure in each ward stays: backups that were made before it contain the text, too.

use crate::domain::id::Ward;
use crate::domain::moment::Moment;
use crate::journal::record::{decode, encode};
use crate::ports::store::key::{Key, Kind};
use crate::ports::store::{Store, StoreError, Write};

const DAY_MICROS: u64 = 24 * 60 * 60 * 1_000_000;

/// Notes that text is erased in a ward at this moment.
pub fn note(ward: Ward, at: Moment) -> [Write; 2] {
    [Write::Put(marks(ward).number(at.as_micros() / DAY_MICROS), encode(&())), Write::Put(last_key(ward), encode(&at))]
}

/// Whether a key is the key of a mark.
pub fn is_mark(key: &Key) -> bool {
    let [ward, ..] = *key.as_bytes() else { return false };
    key.as_bytes().starts_with(marks(Ward(ward)).as_bytes())
}

/// The beginning of the day of the oldest erasure whose text is still in the store's file; none: there is no such text.
///
/// # Errors
/// The store cannot be read.
pub async fn oldest(store: &dyn Store) -> Result<Option<Moment>, StoreError> {
    let mut oldest = None;
    for ward in (0..=u8::MAX).map(Ward) {
        let found = store.scan(marks(ward), marks(ward).end(), false, 1).await?;
        let day = found.first().and_then(|(key, _)| key.last_number());
        oldest = [oldest, day].into_iter().flatten().min();
    }
    Ok(oldest.map(|day| Moment::from_micros(day.saturating_mul(DAY_MICROS))))
}

/// The time of the last erasure; none: nothing was ever erased.
///
/// # Errors
/// The store cannot be read. A time that cannot be decoded counts as none.
pub async fn last(store: &dyn Store) -> Result<Option<Moment>, StoreError> {
    let mut last = None;
    for ward in (0..=u8::MAX).map(Ward) {
        let key = last_key(ward);
        let found = store.get(key.clone()).await?;
        last = last.max(found.and_then(|value| decode(&key, &value).ok()));
    }
    Ok(last)
}

/// The key of the time of a ward's last erasure.
pub(super) fn last_key(ward: Ward) -> Key {
    Key::new(ward, Kind::Meta).text("last erased")
}

fn marks(ward: Ward) -> Key {
    Key::new(ward, Kind::Meta).text("erased")
}
