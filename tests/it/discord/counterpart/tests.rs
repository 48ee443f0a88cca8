//! Every rule that the counterpart follows, checked with nothing but sockets.
