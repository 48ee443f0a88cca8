//! Marks that text was erased, because erased text stays readable in the store's file until the store is compacted.
//!
//! The mark is written in the same batch as the erasure, with one key for each day and ward. Compaction does not copy the marks, so they
//! disappear exactly when the text does.

use crate::domain::id::Ward;
use crate::domain::moment::Moment;
use crate::journal::record::encode;
use crate::ports::store::key::{Key, Kind};
use crate::ports::store::{Store, StoreError, Write};

const DAY_MICROS: u64 = 24 * 60 * 60 * 1_000_000;

/// The mark that text is erased in a ward at this moment.
pub fn mark(ward: Ward, at: Moment) -> Write {
    Write::Put(marks(ward).number(at.as_micros() / DAY_MICROS), encode(&()))
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

fn marks(ward: Ward) -> Key {
    Key::new(ward, Kind::Meta).text("erased")
}
