//! Spans, logs and their export: each name once.
