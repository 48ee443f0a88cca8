//! Puts on record who is in a call.

use super::call::OnRecord;
use super::call_handle::CallHandle;
use crate::domain::id::PersonId;
use crate::ports::inbound_events::InboundError;
use crate::ports::voice_call::CallEvents;

/// Brings the record in line with the call, for one person.
///
/// # Errors
/// The store does not take it now, or will not.
pub async fn record(hearing: &CallHandle, user: &PersonId) -> Result<(), InboundError> {
    let call = &hearing.call;
    let mut recorded = call.recorded().lock().await;
    let author = call.read(|state| state.person(user).and_then(|_| state.author(user)));
    match (author, recorded.get(user)) {
        (Some(author), before) if before.is_none_or(|before| !before.is_sure) => {
            // If this is cancelled or fails, it may be on record all the same.
            recorded.insert(user.clone(), OnRecord { author: author.clone(), is_sure: false });
            hearing.inbound().joined(call.channel_ref(), author.clone()).await?;
            recorded.insert(user.clone(), OnRecord { author, is_sure: true });
        }
        (None, Some(before)) => {
            hearing.inbound().left(call.channel_ref(), before.author.clone()).await?;
            recorded.remove(user);
        }
        (Some(_) | None, _) => {}
    }
    Ok(())
}

/// Has whoever is the first on record greeted. The event has the same id for all, so it is accepted once.
pub async fn welcome(hearing: CallHandle, user: PersonId) {
    let call = &hearing.call;
    if !hearing.context().settings.voice.greeting {
        return;
    }
    let recorded =
        call.recorded().lock().await.get(&user).filter(|recorded| recorded.is_sure).map(|recorded| recorded.author.clone());
    let Some(author) = recorded.filter(|_| !hearing.is_opted_out(&user)) else { return };
    if let Err(error) = hearing.inbound().welcome(call.channel_ref(), &author, call.greeting_id()).await {
        tracing::warn!(%error, "nobody is greeted in a call");
    }
}

/// As [`record`], for a person who has left. Tries until the store takes it.
pub async fn settle(hearing: CallHandle, user: PersonId) {
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

/// As [`settle`], for everybody who is on record.
pub async fn settle_all(hearing: CallHandle) {
    let everybody: Vec<_> = hearing.call.recorded().lock().await.keys().cloned().collect();
    for user in everybody {
        settle(hearing.clone(), user).await;
    }
}

/// Somebody was lost for too long. The channel itself puts that on record.
pub async fn forget(hearing: CallHandle, user: PersonId) {
    let mut recorded = hearing.call.recorded().lock().await;
    if hearing.call.read(|call| call.person(&user).is_none()) {
        recorded.remove(&user);
    }
}
