//! Voice calls in the browser: people talk on the page, and companions answer aloud.

pub mod protocol;
