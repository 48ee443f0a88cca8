//! A server that carries no audio.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::mpsc::{Receiver, Sender};

use crate::ports::audio::{Audio, CodecFailed, Ear, Encoder};
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Expectation, Recognised, Sound, SpeechRecognition};
use crate::ports::speech_synthesis::{Piece, Sentence, SpeechSynthesis};

const SILENT: &str = "silent";

pub struct Silent;

impl Audio for Silent {
    fn ear(&self) -> Result<Box<dyn Ear>, CodecFailed> {
        Err(CodecFailed("this server carries no audio".into()))
    }

    fn encoder(&self) -> Result<Box<dyn Encoder>, CodecFailed> {
        Err(CodecFailed("this server carries no audio".into()))
    }
}

impl SpeechSynthesis for Silent {
    fn provider(&self) -> &'static str {
        SILENT
    }

    fn host(&self) -> Option<Arc<str>> {
        None
    }

    fn say(&self, _: Sentence) -> BoxStream<'static, Result<Piece, NoAnswer>> {
        stream::empty().boxed()
    }
}

#[async_trait]
impl SpeechRecognition for Silent {
    fn provider(&self) -> &'static str {
        SILENT
    }

    fn host(&self) -> Option<Arc<str>> {
        None
    }

    fn recognises_words(&self) -> bool {
        false
    }

    fn has_partials(&self) -> bool {
        false
    }

    async fn listen(&self, _: Expectation, mut sounds: Receiver<Sound>, _: Sender<Recognised>) -> Result<(), NoAnswer> {
        while sounds.recv().await.is_some() {}
        Ok(())
    }
}
