//! Puts on record who is in a call.

use super::hearing::Hearing;
use crate::domain::id::PersonId;
use crate::ports::inbound_events::InboundError;
use crate::ports::voice_call::CallEvents;

/// Brings the record in line with the call, for one person. Repeats what the store does not take now.
///
/// # Errors
/// The store will not take it.
pub async fn record(hearing: &Hearing, user: &PersonId) -> Result<(), InboundError> {
    let call = &hearing.call;
    let mut recorded = call.recorded().lock().await;
    loop {
        let author = call.author(user);
        let outcome = match (&author, recorded.get(user)) {
            (Some(author), None) => hearing.inbound().joined(call.channel_ref(), author.clone()).await,
            (None, Some(before)) => hearing.inbound().left(call.channel_ref(), before.clone()).await,
            (Some(_), Some(_)) | (None, None) => return Ok(()),
        };
        match (outcome, author) {
            (Ok(_), Some(author)) => drop(recorded.insert(user.clone(), author)),
            (Ok(_), None) => drop(recorded.remove(user)),
            (Err(InboundError::Later { after, .. }), _) => tokio::time::sleep(after).await,
            (Err(error @ InboundError::Broken(_)), _) => return Err(error),
        }
    }
}

/// As [`record`], for a person who has left.
pub async fn settle(hearing: Hearing, user: PersonId) {
    if let Err(error) = record(&hearing, &user).await {
        tracing::error!(%error, "that somebody left a call could not be put on record");
    }
}
