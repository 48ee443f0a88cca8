//! The semantics of a batch, shared by all stores: when it is rejected, and which keys it changes.

use crate::domain::id::Seq;
use crate::ports::store::key::Key;
use crate::ports::store::{Batch, Refusal, Term, Value, Write};

/// Why a store with these values rejects a batch. `None`: it accepts the batch.
///
/// `held` is the current term of the ward, or `Term(0)` if the ward was not acquired since the store was opened.
pub(super) fn refusal<E>(
    batch: &Batch,
    held: Term,
    value: impl Fn(&Key) -> Result<Option<Value>, E>,
    unreadable: impl Fn(String) -> E,
) -> Result<Option<Refusal>, E> {
    if batch.term != held || held == Term::default() {
        return Ok(Some(Refusal::OldTerm { ward: batch.ward, named: batch.term, current: held }));
    }
    if let Some(append) = &batch.append {
        let head = Key::head(batch.ward, append.channel);
        let last = match value(&head)? {
            None => Seq::NONE,
            Some(bytes) => number(&bytes).map(Seq).ok_or_else(|| unreadable(format!("the head {head} holds no number")))?,
        };
        if last != append.after {
            return Ok(Some(Refusal::Gap { channel: append.channel, named: append.after, last }));
        }
    }
    for key in &batch.fresh {
        if let Some(value) = value(key)? {
            return Ok(Some(Refusal::Exists { key: key.clone(), value }));
        }
    }
    Ok(None)
}

/// Every key that a batch changes, in order, with its new value. `None` deletes the key.
pub(super) fn changes(batch: Batch) -> Vec<(Key, Option<Value>)> {
    let mut changes = Vec::with_capacity(batch.writes.len() + batch.append.as_ref().map_or(0, |append| append.records.len() + 1));
    if let Some(append) = batch.append.filter(|append| !append.records.is_empty()) {
        let mut last = append.after;
        for record in append.records {
            last = last.next();
            changes.push((Key::event(batch.ward, append.channel, last), Some(record)));
        }
        changes.push((Key::head(batch.ward, append.channel), Some(last.0.to_be_bytes().to_vec())));
    }
    changes.extend(batch.writes.into_iter().map(|write| match write {
        Write::Put(key, value) => (key, Some(value)),
        Write::Remove(key) => (key, None),
    }));
    changes
}

/// The number of events that a batch appends.
pub(super) fn events(batch: &Batch) -> u64 {
    batch.append.as_ref().map_or(0, |append| append.records.len() as u64)
}

/// Decodes a number in the format of stores: eight bytes, big-endian.
pub(super) fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}
