//! What happens in a channel, as its journal keeps it.
