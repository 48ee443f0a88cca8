//! Puts on record who is in a call.

use super::hearing::Hearing;
use crate::domain::id::PersonId;
use crate::ports::inbound_events::InboundError;
use crate::ports::voice_call::CallEvents;

/// Brings the record in line with the call, for one person.
///
/// # Errors
/// The store does not take it now, or will not.
pub async fn record(hearing: &Hearing, user: &PersonId) -> Result<(), InboundError> {
    let call = &hearing.call;
    let mut recorded = call.recorded().lock().await;
    match (call.author(user), recorded.get(user)) {
        (Some(author), None) => {
            hearing.inbound().joined(call.channel_ref(), author.clone()).await?;
            recorded.insert(user.clone(), author);
        }
        (None, Some(before)) => {
            hearing.inbound().left(call.channel_ref(), before.clone()).await?;
            recorded.remove(user);
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
    Ok(())
}

/// As [`record`], for a person who has left. Tries until the store takes it.
pub async fn settle(hearing: Hearing, user: PersonId) {
    loop {
        match record(&hearing, &user).await {
            Ok(()) => return,
            Err(InboundError::Later { after, .. }) => tokio::time::sleep(after).await,
            Err(error @ InboundError::Broken(_)) => {
                return tracing::error!(%error, "that somebody left a call could not be put on record");
            }
        }
    }
}
