//! Marks that words were erased, which stay readable in the store's file until it is compacted.
//!
//! A mark is written in the same batch as what erases, one key for each day and ward. Compaction leaves the marks out of the copy, so they are
//! gone exactly when the words are.

use crate::domain::id::Ward;
use crate::domain::moment::Moment;
use crate::journal::record::encode;
use crate::ports::store::key::{Key, Kind};
use crate::ports::store::{Store, StoreError, Write};

const DAY_MICROS: u64 = 24 * 60 * 60 * 1_000_000;

/// The mark that words are erased in a ward at this moment.
pub fn mark(ward: Ward, at: Moment) -> Write {
    Write::Put(marks(ward).number(at.as_micros() / DAY_MICROS), encode(&()))
}

/// Whether a key is that of a mark.
pub fn is_mark(key: &Key) -> bool {
    let [ward, ..] = *key.as_bytes() else { return false };
    key.as_bytes().starts_with(marks(Ward(ward)).as_bytes())
}

/// The beginning of the day on which the oldest words were erased that are still in the store's file; none: there are no such words.
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
