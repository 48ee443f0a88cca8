//! Journals who is in a call.

use super::call::OnRecord;
use super::call_handle::CallHandle;
use crate::domain::id::PersonId;
use crate::ports::inbound_events::InboundError;
use crate::ports::voice_call::CallEvents;

/// Updates the journal to the state of the call, for one person.
///
/// # Errors
/// Returns an error if the store does not accept the event, now or ever.
pub async fn record(hearing: &CallHandle, user: &PersonId) -> Result<(), InboundError> {
    let call = &hearing.call;
    let mut recorded = call.recorded().lock().await;
    let author = call.read(|state| state.person(user).and_then(|_| state.author(user)));
    match (author, recorded.get(user)) {
        (Some(author), before) if before.is_none_or(|before| !before.is_sure) => {
            // If this is cancelled or fails, the entrance may be journaled nevertheless.
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

/// Lets a companion greet the first person whose entrance is journaled. All greetings of a call have the same event id, so only
/// one is accepted.
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

/// As [`record`], but retries until the store accepts the event.
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

/// As [`settle`], for all people who are journaled as present.
pub async fn settle_all(hearing: CallHandle) {
    let everybody: Vec<_> = hearing.call.recorded().lock().await.keys().cloned().collect();
    for user in everybody {
        settle(hearing.clone(), user).await;
    }
}

/// Stops tracking a person whose connection was lost for too long. The channel itself journals that the person has left.
pub async fn forget(hearing: CallHandle, user: PersonId) {
    let mut recorded = hearing.call.recorded().lock().await;
    if hearing.call.read(|call| call.person(&user).is_none()) {
        recorded.remove(&user);
    }
}
